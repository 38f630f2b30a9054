//===- Verifier.h - what actions leave in memory ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_SCHEDULE_VERIFIER_H
#define DROVER_LIB_SCHEDULE_VERIFIER_H

#include "drover/Schedule/Access.h"
#include "drover/Schedule/Check.h"
#include "drover/Schedule/Verify.h"
#include <map>
#include <set>

namespace drover::schedule {

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

  /// What lies wholly in [begin, begin + bytes) of another arena now lies at `place` too.
  void copy(const TaggedArena &from, int64_t begin, int64_t bytes, int64_t place) {
    erase(place, place + bytes);
    for (auto range = from.ranges.lower_bound(begin); range != from.ranges.end() && range->second.end <= begin + bytes;
         ++range)
      ranges[range->first - begin + place] = {range->second.end - begin + place, range->second.tag};
  }

  void erase(int64_t begin, int64_t end) {
    auto range = ranges.upper_bound(begin);
    if (range != ranges.begin() && std::prev(range)->second.end > begin)
      --range;
    // A range that is cut holds no whole value any more.
    while (range != ranges.end() && range->first < end)
      range = ranges.erase(range);
  }

private:
  struct Range {
    int64_t end;
    Tag tag;
  };

  std::map<int64_t, Range> ranges;
};

/// Runs the accesses of a step program, action by action.
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
  void checkAction(const drover_action &action, const drover_action *before);
  void touch(Space space, const drover_action &action, int64_t place);
  std::tuple<Space, uint32_t, uint32_t> slotOf(Space space, const drover_action &action) const;
  void receive(const drover_action &send, const drover_action &action, const Binding &binding);
  void free(const drover_action &action, const Binding &binding);
  int64_t bytesIn(Space space, const drover_action &action) const;
  void checkBucketAction(const drover_action &action, const Binding &binding);
  bool isComplete(uint32_t bucket) const;
  template <typename Function> void forEachTrained(uint32_t bucket, Function check) const;
  void finish();
  /// The beginning of a report, put together only where there is one.
  struct Where {
    const Verifier &verifier;
    const drover_action &action;
    uint32_t body;
    std::string operator()() const {
      return verifier.describe(action) + ", body '" + verifier.program.bodies[body].name + "'";
    }
  };
  int64_t resolve(const Operand &operand, const Binding &binding, int64_t bytes, const Where &where);
  void checkOverlap(const std::vector<std::pair<int64_t, int64_t>> &ranges, size_t numReads, const Where &where);
  std::string describe(const drover_action &action) const;
  void report(const std::string &message) {
    if (messages.size() < limit)
      messages.push_back((batch ? faultPrefix(*batch) : "") + message);
  }
  uint32_t rootOf(uint32_t value) const { return roots[value]; }

  const MicrobatchProgram &program;
  const StepProgram &step;
  size_t limit;
  std::vector<uint32_t> roots;
  std::map<std::pair<int32_t, int32_t>, int64_t> contributionsPerMicrobatch; // by stage and parameter
  std::vector<std::string> messages;

  /// A slot between its first use and its release.
  struct LiveSlot {
    int64_t end;
    std::tuple<Space, uint32_t, uint32_t> what; // kind, chunk, microbatch
  };

  /// What the ranks of one stage hold.
  struct StageState {
    TaggedArena arena;
    std::map<int32_t, int64_t> contributions; // by parameter; absent: memory holds anything
    std::map<int32_t, int64_t> reduced;       // by parameter: contributions that a reduction took
    std::set<uint32_t> reducedBuckets;
    std::set<uint32_t> dyingAccumulators; // buckets whose accumulators were reduced and not yet freed
    std::map<uint32_t, int64_t> gathered; // by bucket: place of its parameters
    std::map<int64_t, LiveSlot> live;     // by place
    uint32_t lastSequence = 0;
  };

  // State of one batch.
  const Batch *batch = nullptr;
  const Stage *stage = nullptr; // of the action that runs
  uint32_t stageIndex = 0, sender = 0;
  std::vector<StageState> states;
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> ran; // chunk, phase, microbatch
  std::set<uint32_t> normed, updated;
  bool counted = false, clipped = false;
};

} // namespace drover::schedule

#endif // DROVER_LIB_SCHEDULE_VERIFIER_H
