//===- Verify.cpp - prove a step program by running its accesses ----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/Verify.h"
#include <algorithm>
#include <map>
#include <set>

using namespace drover::schedule;

namespace {

/// What a range of the arena holds: a value of the microbatch program for one microbatch.
struct Tag {
  int64_t root = -1;       // value, or -1: nothing that may be read
  int64_t microbatch = -1; // -1: of the whole step
};

inline bool operator==(const Tag &a, const Tag &b) { return a.root == b.root && a.microbatch == b.microbatch; }

/// The arena as ranges of tags.
class TaggedArena {
public:
  void write(int64_t begin, int64_t bytes, Tag tag) {
    erase(begin, begin + bytes);
    if (bytes > 0)
      ranges[begin] = {begin + bytes, tag};
  }

  bool holds(int64_t begin, int64_t bytes, Tag tag) const {
    auto range = ranges.find(begin);
    return bytes == 0 || (range != ranges.end() && range->second.end == begin + bytes && range->second.tag == tag);
  }

private:
  struct Range {
    int64_t end;
    Tag tag;
  };

  void erase(int64_t begin, int64_t end) {
    auto range = ranges.upper_bound(begin);
    if (range != ranges.begin() && std::prev(range)->second.end > begin)
      --range;
    // A range that is cut holds no whole value any more.
    while (range != ranges.end() && range->first < end)
      range = ranges.erase(range);
  }

  std::map<int64_t, Range> ranges;
};

class Verifier {
public:
  Verifier(const MicrobatchProgram &program, const StepProgram &step, size_t limit)
      : program(program), step(step), limit(limit) {}

  std::vector<std::string> run();

private:
  void checkBatch();
  void checkBuckets();
  void load(const Binding &binding, const drover_action &action);
  void runPhase(const drover_action &action, const Binding &binding);
  void runCall(const StepCall &call, const drover_action &action, const Binding &binding);
  void accumulate(const StepCall &call, const drover_action &action);
  void checkBucketAction(const drover_action &action);
  void finish();
  int64_t resolve(const Operand &operand, const Binding &binding, int64_t bytes, const std::string &where);
  void checkOverlap(const std::vector<std::pair<int64_t, int64_t>> &ranges, size_t numReads, const std::string &where);
  std::string describe(const drover_action &action) const;
  void report(const std::string &message) {
    if (messages.size() < limit)
      messages.push_back("global batch " + std::to_string(batch->globalBatch) + ", " + message);
  }
  uint32_t rootOf(uint32_t value) const { return roots[value]; }

  const MicrobatchProgram &program;
  const StepProgram &step;
  size_t limit;
  std::vector<uint32_t> roots;
  std::map<int32_t, int64_t> contributionsPerMicrobatch; // by parameter
  std::vector<std::string> messages;

  // State of one batch.
  const Batch *batch = nullptr;
  const Stage *stage = nullptr;
  TaggedArena arena;
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> ran; // chunk, phase, microbatch
  std::map<int32_t, int64_t> contributions;               // by parameter; absent: memory holds anything
  std::set<uint32_t> normed, updated;
};

std::string Verifier::describe(const drover_action &action) const {
  return "action " + std::to_string(action.sequence) + " (chunk " + std::to_string(action.chunk) + ", phase " +
         std::to_string(action.phase) + ", microbatch " + std::to_string(action.microbatch) + ")";
}

std::vector<std::string> Verifier::run() {
  roots.resize(program.values.size());
  for (uint32_t i = 0; i < roots.size(); ++i)
    roots[i] = i;
  for (const Call &call : program.calls) {
    for (size_t r = 0; r < call.results.size(); ++r)
      if (call.inPlace[r] >= 0)
        roots[call.results[r]] = roots[call.operands[call.inPlace[r]]];
    for (uint32_t operand : call.operands)
      if (program.values[roots[operand]].kind == ValueKind::Accumulator)
        ++contributionsPerMicrobatch[program.values[roots[operand]].index];
  }
  for (const Batch &current : step.batches) {
    batch = &current;
    stage = &current.stages.front();
    checkBatch();
  }
  return messages;
}

void Verifier::checkBatch() {
  arena = TaggedArena();
  ran.clear();
  contributions.clear();
  normed.clear();
  updated.clear();
  if (stage->buckets.size() != step.buckets.size())
    return report("places of " + std::to_string(stage->buckets.size()) + " buckets: expected " +
                  std::to_string(step.buckets.size()));
  for (uint64_t i = 0; i < stage->numActions; ++i) {
    const drover_action &action = step.actions[stage->firstAction + i];
    if (action.binding >= stage->bindings.size() ||
        action.chunk >= (action.kind == DROVER_RUN ? step.chunks.size() : step.buckets.size())) {
      report(describe(action) + " names a binding or a chunk that is not there");
      continue;
    }
    if (action.kind == DROVER_RUN)
      runPhase(action, stage->bindings[action.binding]);
    else
      checkBucketAction(action);
  }
  finish();
}

void Verifier::load(const Binding &binding, const drover_action &action) {
  for (uint32_t i = 0; i < program.values.size(); ++i) {
    const Value &value = program.values[i];
    if (value.kind == ValueKind::Input)
      arena.write(binding[Space::Input] + step.inputs[value.index].offset, value.bytes, {i, action.microbatch});
  }
}

void Verifier::runPhase(const drover_action &action, const Binding &binding) {
  if (!ran.insert({action.chunk, action.phase, action.microbatch}).second)
    report(describe(action) + " runs twice");
  if (action.flags & DROVER_ACTION_LOAD)
    load(binding, action);
  for (const StepCall &call : step.chunks[action.chunk].phases[action.phase])
    runCall(call, action, binding);
}

int64_t Verifier::resolve(const Operand &operand, const Binding &binding, int64_t bytes, const std::string &where) {
  const Binding &places = operand.bucket >= 0 ? stage->buckets[operand.bucket] : binding;
  int64_t base = places[operand.space];
  int64_t scale = !isBucketSpace(operand.space) ? 1 : operand.space == Space::Parameter ? bytesOf(step.computeType) : 4;
  int64_t begin = base + operand.offset * scale;
  if (base < 0 || begin < 0 || begin + bytes > stage->arenaBytes || begin % kSlotAlignment) {
    // Scalars share one aligned block.
    if (base >= 0 && operand.space == Space::Scalar)
      return begin;
    report(where + ": an operand in space " + nameOf(operand.space) + " lies at byte " + std::to_string(begin) +
           " of an arena of " + std::to_string(stage->arenaBytes) + ", or the action has no such slot");
    return -1;
  }
  return begin;
}

void Verifier::runCall(const StepCall &call, const drover_action &action, const Binding &binding) {
  const Call &source = program.calls[call.source];
  std::string where = describe(action) + ", body '" + program.bodies[call.body].name + "'";
  if (source.body != call.body)
    return report(where + ": the microbatch program calls another body here");

  std::vector<std::pair<int64_t, int64_t>> ranges;
  std::vector<std::pair<uint32_t, size_t>> results; // value, operand
  for (size_t r = 0; r < source.results.size(); ++r)
    if (source.inPlace[r] < 0)
      results.push_back({source.results[r], source.operands.size() + results.size()});
  if (call.operands.size() != source.operands.size() + results.size())
    return report(where + ": " + std::to_string(call.operands.size()) + " operands, expected " +
                  std::to_string(source.operands.size() + results.size()));

  auto rangeOf = [&](size_t operand, uint32_t value) {
    int64_t bytes = program.values[value].bytes;
    ranges.push_back({resolve(call.operands[operand], binding, bytes, where), bytes});
    return ranges.back().first;
  };
  for (size_t i = 0; i < source.operands.size(); ++i) {
    uint32_t root = rootOf(source.operands[i]);
    const Value &value = program.values[root];
    int64_t begin = rangeOf(i, root);
    bool perMicrobatch = value.kind == ValueKind::Input || value.kind == ValueKind::Result;
    if (begin >= 0 && perMicrobatch && !arena.holds(begin, value.bytes, {root, action.microbatch}))
      report(where + ": operand " + std::to_string(i) + " in space " + nameOf(call.operands[i].space) + " at byte " +
             std::to_string(begin) + " does not hold its value of this microbatch");
  }
  for (auto [value, operand] : results)
    rangeOf(operand, value);
  checkOverlap(ranges, source.operands.size(), where);
  accumulate(call, action);
  for (auto [value, operand] : results)
    if (ranges[operand].first >= 0)
      arena.write(ranges[operand].first, ranges[operand].second, {value, action.microbatch});
}

/// Results overlap nothing; accumulators and parameters are apart by the layout of buckets, which `finish` checks.
void Verifier::checkOverlap(const std::vector<std::pair<int64_t, int64_t>> &ranges, size_t numReads,
                            const std::string &where) {
  for (size_t i = numReads; i < ranges.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      auto [a, aBytes] = ranges[i];
      auto [b, bBytes] = ranges[j];
      if (a >= 0 && b >= 0 && a < b + bBytes && b < a + aBytes)
        report(where + ": operands " + std::to_string(j) + " and " + std::to_string(i) + " overlap at byte " +
               std::to_string(std::max(a, b)));
    }
}

void Verifier::accumulate(const StepCall &call, const drover_action &action) {
  bool first = action.flags & DROVER_ACTION_FIRST;
  const Call &source = program.calls[call.source];
  std::string where = describe(action) + ", body '" + program.bodies[call.body].name + "'";
  for (const BucketRange &range : call.clears)
    for (size_t p = 0; first && p < step.parameters.size(); ++p)
      if (step.parameters[p].bucket == range.bucket && step.parameters[p].offset == range.offset) {
        if (contributions.count(static_cast<int32_t>(p)))
          report(where + ": zeroes the sums of '" + step.parameters[p].parameter.name + "'");
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
      report(where + (adds ? ": adds to the accumulator of '" : ": overwrites the sums of '") +
             program.parameters[value.index].name + (adds ? "', which holds nothing yet" : "'"));
    ++contributions[value.index];
  }
}

void Verifier::checkBucketAction(const drover_action &action) {
  std::string where = describe(action);
  auto isDone = [&] {
    for (size_t p = 0; p < step.parameters.size(); ++p) {
      const PlacedParameter &parameter = step.parameters[p];
      if (parameter.bucket != action.chunk || parameter.parameter.frozen)
        continue;
      auto sum = contributions.find(static_cast<int32_t>(p));
      auto each = contributionsPerMicrobatch.find(static_cast<int32_t>(p));
      int64_t expected = each == contributionsPerMicrobatch.end() ? 0 : each->second * batch->microbatches;
      if ((sum == contributions.end() ? 0 : sum->second) != expected)
        return false;
    }
    return true;
  };
  switch (action.kind) {
  case DROVER_NORM:
    if (!normed.insert(action.chunk).second)
      report(where + ": the norm of a bucket is taken twice");
    if (!isDone())
      report(where + ": the norm is taken before all gradients are there");
    break;
  case DROVER_UPDATE:
    if (!updated.insert(action.chunk).second)
      report(where + ": a bucket is updated twice");
    // Clipping needs the norm over all buckets.
    for (uint32_t b = 0; b < step.buckets.size(); ++b)
      if (step.buckets[b].trainable() && !normed.count(b))
        report(where + ": the update comes before the norm of bucket " + std::to_string(b));
    break;
  case DROVER_GATHER:
    if (!ran.empty())
      report(where + ": parameters are gathered after their first use");
    break;
  default:
    report(where + ": an action of kind " + std::to_string(action.kind) + " on one rank");
  }
}

void Verifier::checkBuckets() {
  std::vector<std::vector<std::pair<int64_t, int64_t>>> ranges(step.buckets.size());
  for (const PlacedParameter &parameter : step.parameters) {
    int64_t end = parameter.offset + parameter.parameter.elements();
    const Bucket &bucket = step.buckets[parameter.bucket];
    auto holds = [&](const Section &section) {
      return section.first <= parameter.offset && end <= section.first + section.elements &&
             section.decay == parameter.parameter.decay && section.trainable != parameter.parameter.frozen;
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
  for (uint32_t chunk = 0; chunk < step.chunks.size(); ++chunk)
    for (uint32_t phase = 0; phase < (step.train ? 2u : 1u); ++phase)
      for (uint32_t m = 0; m < batch->microbatches; ++m)
        if (!ran.count({chunk, phase, m}))
          report("phase " + std::to_string(phase) + " of chunk " + std::to_string(chunk) +
                 " never runs for microbatch " + std::to_string(m));
  for (uint32_t b = 0; b < step.buckets.size(); ++b)
    if (step.train && step.buckets[b].trainable() && !updated.count(b))
      report("bucket " + std::to_string(b) + " is never updated");
}

} // namespace

std::vector<std::string> drover::schedule::verifyStepProgram(const MicrobatchProgram &program, const StepProgram &step,
                                                             size_t limit) {
  return Verifier(program, step, limit).run();
}
