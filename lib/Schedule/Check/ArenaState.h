//===- ArenaState.h - who wrote and read which bytes ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_SCHEDULE_CHECK_ARENASTATE_H
#define DROVER_LIB_SCHEDULE_CHECK_ARENASTATE_H

#include "ActionOrder.h"
#include <map>

namespace drover::schedule {

/// What a slot holds: a kind of content, of a chunk or a bucket, of one microbatch (or of the step).
struct Content {
  enum Kind : uint8_t {
    Nothing,
    Input,
    Output,
    Stash,
    Kept,
    Handed,
    Boundary,
    BoundaryGradient,
    Parameter,
    Accumulator,
    Gradient,
    Master,
    Moment1,
    Moment2,
    Scratch, // of one action, as are the scalars
    Scalars
  };
  Kind kind = Nothing;
  uint32_t index = 0;
  uint32_t microbatch = 0;
};

inline bool operator==(const Content &a, const Content &b) {
  return a.kind == b.kind && a.index == b.index && a.microbatch == b.microbatch;
}

/// "the stash of chunk 1 for microbatch 0".
std::string describe(const Content &content);

/// The arena of one stage as ranges with one content each. Actions are taken in the order of the list; a pair of
/// conflicting accesses that `order` does not order either is a race.
class ArenaState {
public:
  ArenaState(size_t stage, int64_t bytes, const ActionOrder &order, Faults &faults, CheckWork &work)
      : stage(stage), arenaBytes(bytes), order(order), faults(faults), work(work) {}

  /// Lays content that was there before the step, apart from what else was.
  void place(int64_t begin, int64_t bytes, Content content);
  /// Whether the range holds this and nothing else.
  bool holds(int64_t begin, int64_t bytes, Content content) const {
    auto range = ranges.find(begin);
    return bytes == 0 ||
           (range != ranges.end() && range->second.end == begin + bytes && range->second.content == content);
  }
  void read(uint64_t action, int64_t begin, int64_t bytes, Content content);
  void write(uint64_t action, int64_t begin, int64_t bytes, Content content);
  /// Nothing may read the range until it is written again.
  void release(int64_t begin, int64_t bytes);

private:
  struct Range {
    int64_t end = 0;
    Content content;
    int64_t writer = -1;                                  // action, or before the step
    std::array<int64_t, DROVER_NUM_STREAMS> readers = {}; // by stream: last reading action + 1, or 0
  };
  using Ranges = std::map<int64_t, Range>;

  bool isInside(uint64_t action, int64_t begin, int64_t bytes, const Content &content);
  Ranges::iterator split(int64_t place);
  Content contentAt(int64_t place) const;
  void requireOrder(int64_t earlier, uint64_t later, const Content &old, const Content &content, const char *what);

  size_t stage;
  int64_t arenaBytes;
  const ActionOrder &order;
  Faults &faults;
  CheckWork &work;
  Ranges ranges;
};

} // namespace drover::schedule

#endif // DROVER_LIB_SCHEDULE_CHECK_ARENASTATE_H
