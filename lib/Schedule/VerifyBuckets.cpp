//===- VerifyBuckets.cpp - each gradient counts once ----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Verifier.h"
#include <algorithm>

using namespace drover::schedule;

void Verifier::accumulate(const StepCall &call, const drover_action &action) {
  bool first = action.flags & DROVER_ACTION_FIRST;
  const Call &source = program.calls[call.source];
  Where where{*this, action, call.body};
  std::map<int32_t, int64_t> &contributions = states[stageIndex].contributions;
  for (const BucketRange &range : call.clears)
    for (size_t p = 0; first && p < step.parameters.size(); ++p)
      if (step.parameters[p].bucket == range.bucket && step.parameters[p].offset == range.offset) {
        if (contributions.count(static_cast<int32_t>(p)))
          report(where() + ": zeroes the sums of '" + step.parameters[p].parameter.name + "'");
        contributions[static_cast<int32_t>(p)] = 0;
      }
  bool adds = call.alwaysAccumulate || !first;
  for (uint32_t operand : source.operands) {
    const Value &value = program.values[rootOf(operand)];
    if (value.kind != ValueKind::Accumulator)
      continue;
    auto sum = contributions.find(value.index);
    bool holdsSum = sum != contributions.end();
    if (adds != holdsSum)
      report(where() + (adds ? ": adds to the accumulator of '" : ": overwrites the sums of '") +
             program.parameters[value.index].name + (adds ? "', which holds nothing yet" : "'"));
    ++contributions[value.index];
  }
}

/// Calls `check` with each trained parameter of a bucket.
template <typename Function> void Verifier::forEachTrained(uint32_t bucket, Function check) const {
  for (size_t p = 0; p < step.parameters.size(); ++p)
    if (step.parameters[p].bucket == static_cast<int32_t>(bucket) && !step.parameters[p].parameter.frozen)
      check(static_cast<int32_t>(p));
}

/// Whether all contributions of a step to a bucket are where its norm is taken.
bool Verifier::isComplete(uint32_t bucket) const {
  bool complete = true;
  bool reduces = needsReduce(step, step.buckets[bucket]);
  forEachTrained(bucket, [&](int32_t parameter) {
    for (int32_t holder : step.stagesOf(step.buckets[bucket])) {
      const StageState &state = states[holder];
      const std::map<int32_t, int64_t> &sums = reduces ? state.reduced : state.contributions;
      auto sum = sums.find(parameter);
      auto each = contributionsPerMicrobatch.find({holder, parameter});
      int64_t expected = each == contributionsPerMicrobatch.end() ? 0 : each->second * batch->microbatches;
      complete &= (sum == sums.end() ? 0 : sum->second) == expected;
    }
  });
  return complete;
}

void Verifier::checkBucketAction(const drover_action &action, const Binding &binding) {
  std::string where = describe(action);
  StageState &state = states[stageIndex];
  const Bucket &bucket = step.buckets[action.chunk];
  switch (action.kind) {
  case DROVER_NORM:
    if (!normed.insert(action.chunk).second)
      report(where + ": the norm of a bucket is taken twice");
    if (!isComplete(action.chunk))
      report(where + ": the norm is taken before all gradients are there");
    break;
  case DROVER_UPDATE:
    if (!updated.insert(action.chunk).second)
      report(where + ": a bucket is updated twice");
    // Clipping needs the norm over all buckets.
    for (uint32_t b = 0; b < step.buckets.size(); ++b)
      if (step.buckets[b].trainable() && !normed.count(b))
        report(where + ": the update comes before the norm of bucket " + std::to_string(b));
    if (step.grid.ranks() > 1 && !clipped)
      report(where + ": the update comes before the norm is known to all ranks");
    break;
  case DROVER_GATHER:
    if (!state.gathered.insert({action.chunk, binding[Space::Parameter]}).second)
      report(where + ": parameters are gathered that are there");
    break;
  case DROVER_REDUCE: {
    bool adds = action.flags & DROVER_ACTION_ADD;
    if (adds != (state.reducedBuckets.count(action.chunk) > 0))
      report(where + (adds ? ": adds to a gradient that is not there" : ": overwrites a reduced gradient"));
    state.reducedBuckets.insert(action.chunk);
    if (hasDynamicAccumulators(step, bucket) && !state.dyingAccumulators.insert(action.chunk).second)
      report(where + ": the accumulators of the reduction before are not free");
    forEachTrained(action.chunk, [&](int32_t parameter) {
      auto sum = state.contributions.find(parameter);
      if (sum == state.contributions.end())
        return;
      state.reduced[parameter] += sum->second;
      state.contributions.erase(sum);
    });
    if (!needsReduce(step, bucket))
      report(where + ": nothing is to be reduced");
    break;
  }
  default:
    report(where + ": no action is of kind " + std::to_string(action.kind));
  }
}

void Verifier::checkBuckets() {
  for (size_t b = 0; b < step.buckets.size(); ++b) {
    int64_t end = 0;
    bool isAlike = true;
    for (const Section &section : step.buckets[b].sections) {
      isAlike &= section.first == end && section.trainable == step.buckets[b].trainable();
      end += section.elements;
    }
    if (!isAlike || end != step.buckets[b].elements)
      report("the sections of bucket " + std::to_string(b) + " do not cover its " +
             std::to_string(step.buckets[b].elements) + " elements one behind the other, all trained or none");
  }
  std::vector<std::vector<std::pair<int64_t, int64_t>>> ranges(step.buckets.size());
  for (const PlacedParameter &parameter : step.parameters) {
    int64_t end = parameter.offset + parameter.parameter.elements();
    const Bucket &bucket = step.buckets[parameter.bucket];
    auto holds = [&](const Section &section) {
      return section.first <= parameter.offset && end <= section.first + section.elements &&
             section.decay == parameter.parameter.decay && section.trainable != parameter.parameter.frozen &&
             section.sum == parameter.parameter.sum && section.replicated == parameter.parameter.replicated;
    };
    if (std::none_of(bucket.sections.begin(), bucket.sections.end(), holds) || parameter.offset % kBucketAlignment)
      report("parameter '" + parameter.parameter.name + "' at element " + std::to_string(parameter.offset) +
             " lies in no section of its bucket that is treated as it must be");
    ranges[parameter.bucket].push_back({parameter.offset, end});
  }
  for (auto &bucket : ranges) {
    std::sort(bucket.begin(), bucket.end());
    for (size_t i = 1; i < bucket.size(); ++i)
      if (bucket[i].first < bucket[i - 1].second)
        report("two parameters overlap at element " + std::to_string(bucket[i].first));
  }
}

void Verifier::finish() {
  checkBuckets();
  bool isSplit = step.plan.schedule() == ScheduleKind::ZeroBubbleH1;
  uint32_t numPhases = !step.train ? 1 : isSplit ? 3 : 2;
  for (StageState &state : states) {
    for (const auto &[place, slot] : state.live)
      report("a slot in space " + std::string(nameOf(std::get<0>(slot.what))) + " at byte " + std::to_string(place) +
             " is never freed");
    if (!state.dyingAccumulators.empty())
      report("accumulators of bucket " + std::to_string(*state.dyingAccumulators.begin()) + " are never freed");
    for (auto [bucket, place] : state.gathered)
      if (hasDynamicParameters(step, step.buckets[bucket]))
        report("parameters of bucket " + std::to_string(bucket) + " are never freed");
  }
  if (step.train && step.grid.ranks() > 1 && !counted)
    report("labels are never counted");
  for (uint32_t chunk = 0; chunk < step.chunks.size(); ++chunk)
    for (uint32_t phase = 0; phase < numPhases; ++phase)
      for (uint32_t m = 0; m < batch->microbatches; ++m)
        if (!ran.count({chunk, phase, m}))
          report("phase " + std::to_string(phase) + " of chunk " + std::to_string(chunk) +
                 " never runs for microbatch " + std::to_string(m));
  for (uint32_t b = 0; b < step.buckets.size(); ++b)
    if (step.train && step.buckets[b].trainable() && !updated.count(b))
      report("bucket " + std::to_string(b) + " is never updated");
}
