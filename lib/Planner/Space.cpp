//===- Space.cpp - the layouts of a problem -------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Space.h"
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
} // namespace

Space::Space(const Problem &problem) : problem(problem) {}

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
std::vector<std::vector<int64_t>> Space::layersOf(int64_t chunks) const {
  if (!problem.choices.layersPerChunk.empty())
    return {problem.choices.layersPerChunk};
  std::vector<std::vector<int64_t>> variants = {schedule::spreadLayers(problem.model.layers, chunks)};
  if (chunks < 2)
    return variants;
  std::vector<int64_t> short2 = schedule::spreadLayers(problem.model.layers + 2, chunks);
  if (--short2.front() >= 0 && --short2.back() >= 0 && short2 != variants.front())
    variants.push_back(std::move(short2));
  return variants;
}

void Space::forEachGroup(const std::function<void(const Plan &)> &visit) {
  const Choices &choices = problem.choices;
  Plan plan = problem.rest;
  plan.sequenceLength = problem.sequence;
  plan.globalBatches = {problem.globalBatch};
  for (int64_t tp : divisors(choices.tp, kSearchLimits.tp))
    for (int64_t cp : divisors(choices.cp, kSearchLimits.cp))
      for (int64_t pp : divisors(choices.pp, kSearchLimits.pp)) {
        if (tp * cp * pp > problem.gpus || problem.gpus % (tp * cp * pp) != 0)
          continue;
        plan.tp = tp, plan.cp = cp, plan.pp = pp;
        plan.dp = problem.gpus / (tp * cp * pp);
        if (!choices.dp.empty() && std::find(choices.dp.begin(), choices.dp.end(), plan.dp) == choices.dp.end()) {
          reject("dp", "tp " + number(tp) + ", cp " + number(cp) + " and pp " + number(pp) + " leave dp " +
                           number(plan.dp) + " of " + number(problem.gpus) + " GPUs");
          continue;
        }
        visitGrid(plan, visit);
      }
}

void Space::visitGrid(Plan plan, const std::function<void(const Plan &)> &visit) {
  if (plan.cp > 1 && plan.sequenceLength % (2 * plan.cp) != 0)
    return reject("sequence length", "cp " + number(plan.cp) + " needs a multiple of " + number(2 * plan.cp) +
                                         ", not " + number(plan.sequenceLength) + " tokens");
  if ((plan.sequenceLength / plan.cp) % plan.tp != 0)
    return reject("sequence length", "tp " + number(plan.tp) + " needs a multiple of it in the " +
                                         number(plan.sequenceLength / plan.cp) + " tokens of a cp rank");
  if (plan.tp > problem.model.heads)
    return reject("heads", "tp " + number(plan.tp) + " is above the model's " + number(problem.model.heads) + " heads");
  bool any = false;
  for (int64_t microbatch : orAll(problem.choices.microbatch, countUpTo(kSearchLimits.microbatch))) {
    if (problem.globalBatch % (microbatch * plan.dp) != 0)
      continue;
    any = true;
    plan.microbatch = microbatch;
    visitChunks(plan, visit);
  }
  if (!any)
    reject("global batch",
           number(problem.globalBatch) + " sequences are no multiple of a microbatch times dp " + number(plan.dp));
}

void Space::visitChunks(const Plan &grid, const std::function<void(const Plan &)> &visit) {
  Plan plan = grid;
  auto given = static_cast<int64_t>(problem.choices.layersPerChunk.size());
  bool isFree = problem.choices.chunks.empty() && given == 0;
  std::vector<int64_t> chunks = orAll(problem.choices.chunks, countUpTo(kSearchLimits.chunks));
  if (given > 0 && problem.choices.chunks.empty())
    chunks = {given / plan.pp};
  bool any = false;
  for (int64_t count : chunks) {
    // Chunks beyond the layers, the embedding and the head have nothing to do.
    if ((isFree && count > 1 && plan.pp * count > problem.model.layers + 2) || (given && plan.pp * count != given))
      continue;
    if (isFree && plan.pp > problem.model.layers + 2)
      continue;
    any = true;
    plan.chunks = count;
    for (std::vector<int64_t> &layers : layersOf(plan.pp * count)) {
      plan.layersPerChunk = std::move(layers);
      for (const std::string &recompute : orAll(problem.choices.recompute, {"none", "selective", "full"})) {
        plan.recompute = recompute;
        for (const std::string &overlap : orAll(problem.choices.tpOverlap, {"none", "bulk", "ring"})) {
          if (plan.tp == 1 && overlap != "none" && (problem.choices.tpOverlap.empty() || overlap != "none"))
            continue;
          plan.tpOverlap = overlap;
          visit(plan);
        }
      }
    }
  }
  if (!any)
    reject("layers", "pp " + number(plan.pp) + " has no use for its chunks in " + number(problem.model.layers) +
                         " layers, embedding and head");
}

std::vector<Plan> Space::expand(const Plan &group) const {
  std::vector<Plan> layouts;
  const Choices &choices = problem.choices;
  int64_t microbatches = problem.globalBatch / (group.microbatch * group.dp);
  std::vector<ScheduleKind> kinds = group.chunks == 1
                                        ? std::vector{ScheduleKind::OneForwardOneBackward}
                                        : std::vector{ScheduleKind::Interleaved, ScheduleKind::BreadthFirst};
  std::vector<int64_t> zeros = group.cp * group.dp > 1 ? std::vector<int64_t>{2, 1, 3, 0} : std::vector<int64_t>{2};
  for (ScheduleKind kind : orAll(choices.schedules, kinds)) {
    bool oneChunk = kind == ScheduleKind::OneForwardOneBackward || kind == ScheduleKind::ZeroBubbleH1;
    if (oneChunk && group.chunks > 1)
      continue;
    std::vector<int64_t> runs = {group.pp, 2 * group.pp, microbatches};
    if (kind == ScheduleKind::BreadthFirst)
      runs = {group.pp}; // not looked at
    for (int64_t zero : orAll(choices.zero, zeros)) {
      std::vector<std::vector<int64_t>> seen;
      for (int64_t run : orAll(choices.run, runs)) {
        Plan plan = group;
        plan.kind = kind;
        plan.zero = zero;
        plan.run = {run};
        if (plan.zero == 0 && plan.reduceEvery == "run" && plan.cp * plan.dp > 1)
          continue;
        schedule::Result<std::vector<int64_t>> groups = schedule::groupsOf(plan, microbatches);
        // Groups of one chunk matter to what is exchanged by group only.
        if (!groups || std::find(seen.begin(), seen.end(), *groups) != seen.end())
          continue;
        if (choices.run.empty() && !seen.empty() && plan.chunks == 1 && zero != 3 && plan.reduceEvery == "step")
          continue;
        seen.push_back(*groups);
        layouts.push_back(std::move(plan));
      }
    }
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
  if (choices.schedules.empty())
    add("schedules 1f1b, interleaved and bfs");
  return text;
}
