//===- ArenaState.cpp - who wrote and read which bytes --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ArenaState.h"
#include <algorithm>

using namespace drover::schedule;

std::string drover::schedule::describe(const Content &content) {
  switch (content.kind) {
  case Content::Nothing:
    return "nothing that may be read";
  case Content::Input:
    return joinText("the inputs of microbatch ", content.microbatch);
  case Content::Output:
    return joinText("the outputs of microbatch ", content.microbatch);
  case Content::Stash:
    return joinText("the stash of chunk ", content.index, " for microbatch ", content.microbatch);
  case Content::Kept:
    return joinText("what the weight part of chunk ", content.index, " keeps for microbatch ", content.microbatch);
  case Content::Handed:
    return joinText("what the input part of chunk ", content.index, " hands over for microbatch ", content.microbatch);
  case Content::Boundary:
    return joinText("the input of chunk ", content.index, " for microbatch ", content.microbatch);
  case Content::BoundaryGradient:
    return joinText("the gradient of the input of chunk ", content.index, " for microbatch ", content.microbatch);
  case Content::Parameter:
    return joinText("the parameters of bucket ", content.index);
  case Content::Accumulator:
    return joinText("the accumulators of bucket ", content.index);
  case Content::Gradient:
    return joinText("the reduced gradients of bucket ", content.index);
  case Content::Master:
    return joinText("the masters of bucket ", content.index);
  case Content::Moment1:
    return joinText("the first moments of bucket ", content.index);
  case Content::Moment2:
    return joinText("the second moments of bucket ", content.index);
  case Content::Scratch:
    return joinText("the scratch of chunk ", content.index, " for microbatch ", content.microbatch);
  case Content::Scalars:
    return joinText("the scalars of chunk ", content.index, " for microbatch ", content.microbatch);
  }
  return "";
}

bool ArenaState::isInside(uint64_t action, int64_t begin, int64_t bytes, const Content &content) {
  if (begin >= 0 && bytes >= 0 && begin <= arenaBytes - bytes)
    return true;
  faults.report(faults.describe(stage, action), ": ", describe(content), " at bytes [", begin, ", ", begin + bytes,
                ") of an arena of ", arenaBytes);
  return false;
}

/// The range that begins at `place`, cut there where it must be.
ArenaState::Ranges::iterator ArenaState::split(int64_t place) {
  auto next = ranges.lower_bound(place);
  if (next == ranges.begin() || (next != ranges.end() && next->first == place))
    return next;
  auto before = std::prev(next);
  if (before->second.end <= place)
    return next;
  Range rest = before->second;
  before->second.end = place;
  // A part is no whole content any more.
  before->second.content = rest.content = {};
  return ranges.insert(next, {place, rest});
}

/// What lies over a byte of the arena.
Content ArenaState::contentAt(int64_t place) const {
  auto next = ranges.upper_bound(place);
  return next != ranges.begin() && std::prev(next)->second.end > place ? std::prev(next)->second.content : Content{};
}

void ArenaState::place(int64_t begin, int64_t bytes, Content content) {
  if (begin < 0 || bytes == 0)
    return;
  auto next = ranges.lower_bound(begin + bytes);
  if (next != ranges.begin() && std::prev(next)->second.end > begin)
    return faults.report("stage ", stage, ": ", describe(content), " at bytes [", begin, ", ", begin + bytes, ") and ",
                         describe(std::prev(next)->second.content), " lie in one place");
  Range range;
  range.end = begin + bytes;
  range.content = content;
  ranges[begin] = range;
}

void ArenaState::requireOrder(int64_t earlier, uint64_t later, const Content &old, const Content &content,
                              const char *what) {
  if (earlier < 0 || static_cast<uint64_t>(earlier) == later ||
      order.completesBefore(stage, static_cast<uint64_t>(earlier), later))
    return;
  faults.report(faults.describe(stage, later), " may ", what, " ", describe(content), " before ",
                faults.describe(stage, static_cast<uint64_t>(earlier)), " is done with ", describe(old),
                " in its place");
}

void ArenaState::read(uint64_t action, int64_t begin, int64_t bytes, Content content) {
  if (bytes == 0 || !isInside(action, begin, bytes, content))
    return;
  if (!holds(begin, bytes, content))
    return faults.report(faults.describe(stage, action), " reads ", describe(content), " at byte ", begin, ", where ",
                         describe(contentAt(begin)), " lies");
  auto range = ranges.find(begin);
  ++work.ranges;
  requireOrder(range->second.writer, action, content, content, "read");
  int64_t &reader = range->second.readers[order.stream(stage, action)];
  reader = std::max(reader, static_cast<int64_t>(action) + 1);
}

void ArenaState::write(uint64_t action, int64_t begin, int64_t bytes, Content content) {
  if (bytes == 0 || !isInside(action, begin, bytes, content))
    return;
  auto first = split(begin), last = split(begin + bytes);
  first = ranges.lower_bound(begin);
  for (auto range = first; range != last; ++range, ++work.ranges) {
    requireOrder(range->second.writer, action, range->second.content, content, "write");
    for (int64_t reader : range->second.readers)
      requireOrder(reader - 1, action, range->second.content, content, "write");
  }
  ranges.erase(first, last);
  Range range;
  range.end = begin + bytes;
  range.content = content;
  range.writer = static_cast<int64_t>(action);
  ranges[begin] = range;
}

void ArenaState::release(int64_t begin, int64_t bytes) {
  if (bytes == 0 || begin < 0)
    return;
  auto first = split(begin), last = split(begin + bytes);
  first = ranges.lower_bound(begin);
  for (auto range = first; range != last; ++range, ++work.ranges)
    range->second.content = {};
}
