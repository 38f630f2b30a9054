//===- Plan.cpp - plan options and what they must satisfy -----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/Plan.h"
#include <algorithm>
#include <cstdlib>
#include <numeric>

using namespace drover::schedule;

namespace {
std::string quote(int64_t value) { return std::to_string(value); }

/// Far beyond any schedule in use; the list of actions stays a few megabytes.
constexpr int64_t kMostMicrobatches = 1 << 16;

/// Chunks are numbered in 16 bits.
constexpr int64_t kMostChunks = 1 << 14;
/// Of any one axis and of the chunks of a rank, so that products of them are numbers; and runs of a chunk in a step.
constexpr int64_t kMostOfAnAxis = 1 << 16, kMostRuns = 1 << 20;
/// A few times the largest cluster that anyone plans.
constexpr int64_t kMostRanks = 1 << 22;

/// A non-negative number that is the whole of `text`.
std::optional<int64_t> parseCount(const std::string &text) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::strtoll(text.c_str(), nullptr, 10);
}
} // namespace

Result<std::vector<int64_t>> drover::schedule::parseLayersPerChunk(const std::string &text) {
  // Chunks number PP * V: far below this, which keeps a typing error from filling the memory.
  constexpr int64_t kMostChunks = 1 << 20;
  std::vector<int64_t> layers;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string item = text.substr(begin, end - begin);
    size_t star = item.find('*');
    std::optional<int64_t> count = parseCount(item.substr(0, star));
    std::optional<int64_t> times = star == std::string::npos ? 1 : parseCount(item.substr(star + 1));
    if (!count || !times || *times == 0 || static_cast<int64_t>(layers.size()) + *times > kMostChunks)
      return Error{"layers per chunk '" + text + "' has the entry '" + item +
                   "': expected a count, or count*times, separated by commas"};
    layers.insert(layers.end(), *times, *count);
    begin = end + 1;
  }
  return layers;
}

std::vector<int64_t> drover::schedule::spreadLayers(int64_t numLayers, int64_t numChunks) {
  std::vector<int64_t> layers;
  for (int64_t i = 0; i < numChunks; ++i)
    layers.push_back(numLayers / numChunks + (i < numLayers % numChunks));
  return layers;
}

Result<int64_t> drover::schedule::countMicrobatches(const Plan &plan, int64_t globalBatch) {
  int64_t step = plan.microbatch * plan.dp;
  if (globalBatch <= 0 || globalBatch % step) {
    int64_t below = std::max<int64_t>(0, globalBatch) / step * step, above = below + step;
    return Error{"global batch " + quote(globalBatch) +
                 " is not a multiple of microbatch * dp = " + quote(plan.microbatch) + " * " + quote(plan.dp) +
                 "; accepted near it " + (below ? "are " + quote(below) + " and " : "is ") + quote(above)};
  }
  if (globalBatch / step > kMostMicrobatches)
    return Error{"global batch " + quote(globalBatch) + " is more than " + quote(kMostMicrobatches) +
                 " microbatches; accepted is up to " + quote(kMostMicrobatches * step)};
  if (globalBatch / step * plan.chunks > kMostRuns)
    return Error{"global batch " + quote(globalBatch) + " is " + quote(globalBatch / step) + " microbatches of " +
                 quote(plan.chunks) + " chunks: expected up to " + quote(kMostRuns) + " in all"};
  return globalBatch / step;
}

Result<std::vector<int64_t>> drover::schedule::groupsOf(const Plan &plan, int64_t microbatches) {
  // With zb-h1 weight gradients of one run would come behind input gradients of the next; one chunk has one run.
  if (plan.schedule() == ScheduleKind::BreadthFirst || plan.schedule() == ScheduleKind::ZeroBubbleH1)
    return std::vector<int64_t>{microbatches};
  int64_t run = plan.run.empty() ? plan.pp : plan.run.front();
  int64_t least = std::min(plan.pp, microbatches);
  if (run < least)
    return Error{"run " + quote(run) + " is below min(pp, microbatches) = " + quote(least) +
                 ": a group of fewer microbatches than ranks leaves the pipeline waiting for itself; accepted is " +
                 quote(least) + " or more" + (plan.run.size() > 1 ? " in the first group" : "")};
  if (plan.run.size() <= 1)
    return splitIntoGroups(microbatches, run, plan.pp);
  int64_t sum = std::accumulate(plan.run.begin(), plan.run.end(), int64_t{0});
  if (sum != microbatches)
    return Error{"the groups of --run sum to " + quote(sum) + " microbatches, the global batch has " +
                 quote(microbatches)};
  for (int64_t size : plan.run)
    if (size < 1 || size > run)
      return Error{"a group of --run has " + quote(size) + " microbatches: expected 1 to the first group's " +
                   quote(run)};
  return plan.run;
}

std::optional<Error> drover::schedule::checkPlan(const Plan &plan) {
  const std::pair<const char *, int64_t> counts[] = {
      {"tp", plan.tp}, {"cp", plan.cp}, {"pp", plan.pp}, {"dp", plan.dp}, {"chunks", plan.chunks}};
  for (auto [name, value] : counts)
    if (value < 1 || value > kMostOfAnAxis)
      return Error{std::string(name) + " is " + quote(value) + ": expected 1 to " + quote(kMostOfAnAxis)};
  // Two products, since that of four axes may not be a number.
  if (int64_t inner = plan.tp * plan.cp, outer = plan.pp * plan.dp;
      inner > kMostRanks || outer > kMostRanks || inner * outer > kMostRanks)
    return Error{"tp " + quote(plan.tp) + ", cp " + quote(plan.cp) + ", pp " + quote(plan.pp) + " and dp " +
                 quote(plan.dp) + " are more than " + quote(kMostRanks) + " ranks"};
  if (plan.communicationSms < 0 || plan.communicationSms > kMostCommunicationSms)
    return Error{"communication sms is " + quote(plan.communicationSms) + ": expected 0 to " +
                 quote(kMostCommunicationSms)};
  for (const char *axis : {"tp", "cp", "pp", "dp"})
    if (std::find(plan.order.begin(), plan.order.end(), axis) == plan.order.end())
      return Error{"order is " + plan.order[0] + "," + plan.order[1] + "," + plan.order[2] + "," + plan.order[3] +
                   ": expected tp, cp, pp and dp, innermost first"};
  bool oneChunk =
      plan.schedule() == ScheduleKind::OneForwardOneBackward || plan.schedule() == ScheduleKind::ZeroBubbleH1;
  if (oneChunk && plan.chunks != 1)
    return Error{std::string("schedule ") + nameOf(plan.schedule()) + " has one chunk a rank, not " +
                 quote(plan.chunks) + "; accepted with several are interleaved and bfs"};
  if (!plan.layersPerChunk.empty() && static_cast<int64_t>(plan.layersPerChunk.size()) != plan.pp * plan.chunks)
    return Error{"layers per chunk has " + quote(plan.layersPerChunk.size()) +
                 " entries: expected pp * chunks = " + quote(plan.pp * plan.chunks)};
  if (plan.zero == 0 && plan.reduceEvery == "run" && plan.cp * plan.dp > 1)
    return Error{
        "gradients are reduced every run into shards, which zero 0 has not; accepted with it is to reduce every "
        "step, and with zero 1, 2 and 3 either"};
  if (plan.pp * plan.chunks > kMostChunks)
    return Error{"pp * chunks is " + quote(plan.pp * plan.chunks) + ": expected up to " + quote(kMostChunks)};
  for (size_t i = 0; i < plan.globalBatches.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (plan.globalBatches[i] == plan.globalBatches[j])
        return Error{"global batch " + quote(plan.globalBatches[i]) + " is given twice"};
  if (plan.microbatch > 0)
    for (int64_t globalBatch : plan.globalBatches) {
      Result<int64_t> microbatches = countMicrobatches(plan, globalBatch);
      if (!microbatches)
        return Error{microbatches.error()};
      Result<std::vector<int64_t>> groups = groupsOf(plan, *microbatches);
      if (!groups)
        return Error{groups.error()};
    }
  return std::nullopt;
}
