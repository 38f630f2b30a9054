//===- Space.cpp - the layouts of a problem -------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Space.h"
#include "drover/Schedule/PlanWords.h"
#include <algorithm>

using namespace drover;
using namespace drover::planner;
using schedule::Plan;
using schedule::ScheduleKind;

namespace {
std::string number(int64_t value) { return std::to_string(value); }

template <typename T> std::vector<T> orAll(const std::vector<T> &chosen, std::vector<T> all) {
  return chosen.empty() ? all : chosen;
}

std::vector<int64_t> countUpTo(int64_t limit) {
  std::vector<int64_t> values;
  for (int64_t value = 1; value <= limit; ++value)
    values.push_back(value);
  return values;
}
/// For messages: `1, 2 or 4`.
std::string joined(const std::vector<int64_t> &values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i)
    text += (i == 0 ? "" : i + 1 == values.size() ? " or " : ", ") + number(values[i]);
  return text;
}
} // namespace

Space::Space(const Problem &problem)
    : problem(problem), recomputes(orAll(problem.choices.recompute, schedule::planWordsOf("recompute").accepted)),
      tpOverlaps(orAll(problem.choices.tpOverlap, schedule::planWordsOf("tp_overlap").accepted)) {}

void Space::reject(const char *constraint, const std::string &example) {
  Rejection &rejection = rejections[constraint];
  if (rejection.count++ == 0)
    rejection.example = example;
}

/// The chosen ones, or all up to the limit, that divide the GPUs.
std::vector<int64_t> Space::divisors(const std::vector<int64_t> &chosen, int64_t limit) const {
  std::vector<int64_t> values;
  for (int64_t value : orAll(chosen, countUpTo(std::min(limit, problem.gpus))))
    if (problem.gpus % value == 0)
      values.push_back(value);
  return values;
}

/// Even; and with the first and last chunk a layer short, for the embedding and the head (arXiv 2407.21783, section
/// 3.3.2).
void Space::findLayers(int64_t chunks) {
  std::vector<std::vector<int64_t>> &found = variants[chunks];
  if (!found.empty())
    return;
  if (!problem.choices.layersPerChunk.empty()) {
    found = {problem.choices.layersPerChunk};
    return;
  }
  found = {schedule::spreadLayers(problem.model.layers, chunks)};
  if (chunks < 2)
    return;
  std::vector<int64_t> shortEnds = schedule::spreadLayers(problem.model.layers + 2, chunks);
  if (--shortEnds.front() >= 0 && --shortEnds.back() >= 0 && shortEnds != found.front())
    found.push_back(std::move(shortEnds));
}

void Space::forEachGroup(const std::function<void(const LayoutGroup &)> &visit) {
  const Choices &choices = problem.choices;
  for (int64_t tp : divisors(choices.tp, kSearchLimits.tp))
    for (int64_t cp : divisors(choices.cp, kSearchLimits.cp))
      for (int64_t pp : divisors(choices.pp, kSearchLimits.pp)) {
        if (tp * cp * pp > problem.gpus || problem.gpus % (tp * cp * pp) != 0)
          continue;
        int64_t dp = problem.gpus / (tp * cp * pp);
        if (!choices.dp.empty() && std::find(choices.dp.begin(), choices.dp.end(), dp) == choices.dp.end()) {
          reject("dp", "tp " + number(tp) + ", cp " + number(cp) + " and pp " + number(pp) + " leave dp " + number(dp) +
                           " of " + number(problem.gpus) + " GPUs");
          continue;
        }
        LayoutGroup group;
        group.tp = static_cast<int32_t>(tp), group.cp = static_cast<int32_t>(cp);
        group.pp = static_cast<int32_t>(pp), group.dp = static_cast<int32_t>(dp);
        visitGrid(group, visit);
      }
}

void Space::visitGrid(LayoutGroup group, const std::function<void(const LayoutGroup &)> &visit) {
  if (group.cp > 1 && problem.sequence % (2 * group.cp) != 0)
    return reject("sequence length", "cp " + number(group.cp) + " needs a multiple of " + number(2 * group.cp) +
                                         ", not " + number(problem.sequence) + " tokens");
  if ((problem.sequence / group.cp) % group.tp != 0)
    return reject("sequence length", "tp " + number(group.tp) + " needs a multiple of it in the " +
                                         number(problem.sequence / group.cp) + " tokens of a cp rank");
  if (group.tp > problem.model.heads)
    return reject("heads",
                  "tp " + number(group.tp) + " is above the model's " + number(problem.model.heads) + " heads");
  bool any = false;
  for (int64_t microbatch : orAll(problem.choices.microbatch, countUpTo(kSearchLimits.microbatch))) {
    if (problem.globalBatch % (microbatch * group.dp) != 0)
      continue;
    any = true;
    group.microbatch = static_cast<int32_t>(microbatch);
    visitChunks(group, visit);
  }
  if (!any) {
    const std::vector<int64_t> &given = problem.choices.microbatch;
    reject("global batch", number(problem.globalBatch) + " sequences are no multiple of " +
                               (given.empty() ? "a microbatch" : "microbatch " + joined(given)) + " times dp " +
                               number(group.dp));
  }
}

void Space::visitChunks(LayoutGroup group, const std::function<void(const LayoutGroup &)> &visit) {
  auto given = static_cast<int64_t>(problem.choices.layersPerChunk.size());
  bool isFree = problem.choices.chunks.empty() && given == 0;
  std::vector<int64_t> chunks = orAll(problem.choices.chunks, countUpTo(kSearchLimits.chunks));
  if (given > 0 && problem.choices.chunks.empty())
    chunks = {given / group.pp};
  bool any = false, anyOverlap = false;
  for (int64_t count : chunks) {
    // Chunks beyond the layers, the embedding and the head have nothing to do.
    if ((isFree && group.pp * count > problem.model.layers + 2) || (given && group.pp * count != given))
      continue;
    any = true;
    group.chunks = static_cast<int32_t>(count);
    findLayers(group.pp * count);
    for (group.layers = 0; group.layers < variants[group.pp * count].size(); ++group.layers)
      for (group.recompute = 0; group.recompute < recomputes.size(); ++group.recompute)
        for (group.tpOverlap = 0; group.tpOverlap < tpOverlaps.size(); ++group.tpOverlap)
          if (group.tp > 1 || tpOverlapOf(group) == "none") {
            anyOverlap = true;
            visit(group);
          }
  }
  if (!any && given > 0)
    reject("layers",
           "layers per chunk has " + number(given) + " entries, which pp " + number(group.pp) +
               (problem.choices.chunks.empty() ? " does not divide"
                                               : " with " + joined(problem.choices.chunks) + " chunks a rank has not"));
  else if (!any)
    reject("layers", "pp " + number(group.pp) + " has no use for its chunks in " + number(problem.model.layers) +
                         " layers, embedding and head");
  else if (!anyOverlap)
    reject("tp overlap", tpOverlaps.front() + " is nothing for tp " + number(group.tp));
}

Plan Space::planOf(const LayoutGroup &group) const {
  Plan plan = problem.rest;
  plan.sequenceLength = problem.sequence;
  plan.globalBatches = {problem.globalBatch};
  plan.tp = group.tp, plan.cp = group.cp, plan.pp = group.pp, plan.dp = group.dp;
  plan.microbatch = group.microbatch;
  plan.chunks = group.chunks;
  plan.layersPerChunk = layersOf(group);
  plan.recompute = recomputeOf(group);
  plan.tpOverlap = tpOverlapOf(group);
  return plan;
}

/// Weight gradients fill a pipeline's bubbles; without one there are none.
bool Space::hasSplit(const LayoutGroup &group) const {
  const std::vector<ScheduleKind> &kinds = problem.choices.schedules;
  if (kinds.empty())
    return group.chunks == 1 && group.pp > 1;
  return group.chunks == 1 && std::find(kinds.begin(), kinds.end(), ScheduleKind::ZeroBubbleH1) != kinds.end();
}

std::vector<Space::Opening> Space::openingsOf(const LayoutGroup &group, bool mostSharded) const {
  const Choices &choices = problem.choices;
  int64_t microbatches = microbatchesOf(group), pp = group.pp;
  bool sharded = group.cp * group.dp > 1;
  // A run of all microbatches is bfs's.
  std::vector<ScheduleKind> usual = {group.chunks == 1 ? ScheduleKind::OneForwardOneBackward
                                                       : ScheduleKind::Interleaved};
  if (hasSplit(group) && choices.schedules.empty())
    usual.push_back(ScheduleKind::ZeroBubbleH1);
  std::vector<Opening> openings;
  for (ScheduleKind kind : orAll(choices.schedules, usual)) {
    bool oneChunk = kind == ScheduleKind::OneForwardOneBackward || kind == ScheduleKind::ZeroBubbleH1;
    if (oneChunk && group.chunks > 1)
      continue;
    std::vector<int64_t> zeros =
        orAll(choices.zero, sharded ? std::vector<int64_t>{0, 1, 2, 3} : std::vector<int64_t>{2});
    if (mostSharded)
      zeros = {*std::max_element(zeros.begin(), zeros.end())};
    for (int64_t zero : zeros) {
      if (zero == 0 && sharded && problem.rest.reduceEvery == "run")
        continue;
      // Groups of one chunk matter to what is exchanged by group only; all microbatches are one group to bfs and to a
      // split backward.
      bool anyRun = (group.chunks == 1 && zero != 3 && problem.rest.reduceEvery == "step") ||
                    kind == ScheduleKind::BreadthFirst || kind == ScheduleKind::ZeroBubbleH1;
      std::vector<std::vector<int64_t>> seen;
      for (int64_t run :
           orAll(choices.run, anyRun ? std::vector<int64_t>{pp} : std::vector<int64_t>{pp, 2 * pp, microbatches})) {
        if (run < std::min(pp, microbatches) && kind != ScheduleKind::BreadthFirst)
          continue;
        std::vector<int64_t> groups = schedule::splitIntoGroups(microbatches, run, pp);
        if (std::find(seen.begin(), seen.end(), groups) != seen.end())
          continue;
        seen.push_back(std::move(groups));
        openings.push_back({kind, run, zero});
      }
    }
  }
  return openings;
}

int64_t Space::countLayouts(const LayoutGroup &group) const { return static_cast<int64_t>(openingsOf(group).size()); }

std::vector<Plan> Space::expand(const LayoutGroup &group, bool mostSharded) const {
  std::vector<Opening> openings = openingsOf(group, mostSharded);
  std::vector<Plan> layouts;
  layouts.reserve(openings.size());
  const Plan common = planOf(group);
  for (const Opening &opening : openings) {
    Plan &plan = layouts.emplace_back(common);
    plan.kind = opening.kind;
    plan.run = {opening.run};
    plan.zero = opening.zero;
  }
  return layouts;
}

std::string Space::describeLimits() const {
  const Choices &choices = problem.choices;
  std::string text;
  auto add = [&](const std::string &part) { text += (text.empty() ? "" : ", ") + part; };
  auto addLimit = [&](const char *name, const std::vector<int64_t> &chosen, int64_t limit, int64_t natural) {
    if (chosen.empty() && natural > limit)
      add(std::string(name) + " up to " + number(limit));
  };
  addLimit("tp", choices.tp, kSearchLimits.tp, std::min(problem.gpus, problem.model.heads));
  addLimit("cp", choices.cp, kSearchLimits.cp, std::min(problem.gpus, problem.sequence / 2));
  addLimit("pp", choices.pp, kSearchLimits.pp, std::min(problem.gpus, problem.model.layers + 2));
  if (choices.layersPerChunk.empty())
    addLimit("chunks", choices.chunks, kSearchLimits.chunks, problem.model.layers + 2);
  addLimit("microbatch", choices.microbatch, kSearchLimits.microbatch, problem.globalBatch);
  if (choices.run.empty())
    add("runs of pp, 2 pp and all microbatches");
  return text;
}
