//===- SlotGuard.cpp - what touches a slot without right ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/slot_guard.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace drover::rt {

static constexpr int64_t guardBytes = 64;
static constexpr int canary = 0xa5;
static constexpr int poison = 0xff; // a NaN in every float type

static bool isSet(const char *variable) {
  const char *value = std::getenv(variable);
  return value && *value && std::strcmp(value, "0") != 0;
}

GuardOptions guardsFromEnvironment() { return {isSet("DROVER_RT_CANARIES"), isSet("DROVER_RT_POISON")}; }

static int64_t roundUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

SlotGuard::SlotGuard(const Program &program, int64_t stage, const GuardOptions &options)
    : program(program), options(options), totalBytes(program.arenaBytes(stage)) {
  if (!options.canaries)
    return;
  for (const BatchInfo &batch : program.batches) {
    const StageInfo &info = batch.stages[size_t(stage)];
    for (size_t bucket = 0; bucket < info.buckets.size(); ++bucket)
      for (int space = 0; space < numSpaces; ++space)
        if (info.buckets[bucket].offsets[size_t(space)] >= 0)
          addSlot(info.buckets[bucket].offsets[size_t(space)], program.bucketSpaceBytes(int64_t(bucket), Space(space)),
                  concat(spaceName(Space(space)), " of bucket ", bucket));
    for (int64_t i = 0; i < info.numActions; ++i) {
      const drover_action &action = program.actions(info)[i];
      if (action.binding < info.bindings.size())
        addBinding(info.bindings[action.binding], action);
    }
  }
  totalBytes = guardBytes;
  for (auto &[offset, slot] : slots) {
    slot.moved = totalBytes;
    totalBytes += roundUp(slot.bytes) + guardBytes;
  }
}

void SlotGuard::addSlot(int64_t offset, int64_t bytes, std::string what) {
  Slot &slot = slots[offset];
  if (slot.what.empty() || bytes > slot.bytes)
    slot.what = std::move(what);
  slot.bytes = std::max(slot.bytes, bytes);
}

void SlotGuard::addBinding(const Binding &binding, const drover_action &action) {
  for (int space = 0; space < numSpaces; ++space)
    if (int64_t offset = binding.offsets[size_t(space)]; offset >= 0)
      addSlot(
          offset, spaceBytes(action, Space(space)),
          concat(spaceName(Space(space)), " of ", action.kind == DROVER_RUN ? "chunk " : "action on ", action.chunk));
}

int64_t SlotGuard::spaceBytes(const drover_action &action, Space space) const {
  bool namesBucket = drover_action_is_of_bucket(action.kind);
  if (space == Space::Scalar)
    return scalarBytes;
  if (action.kind == DROVER_COUNT || action.kind == DROVER_CLIP)
    return 0;
  if (namesBucket)
    return isBucketSpace(space) ? program.bucketSpaceBytes(action.chunk, space) : 0;
  const ChunkInfo &chunk = program.chunks[action.chunk];
  if (isBucketSpace(space))
    return chunk.bucket >= 0 ? program.bucketSpaceBytes(chunk.bucket, space) : 0;
  switch (space) {
  case Space::Input:
    return program.inputBytes;
  case Space::Output:
    return program.outputBytes;
  case Space::Scratch:
    return action.kind == DROVER_RUN && action.phase < 3 ? chunk.scratchBytes[action.phase] : 0;
  default:
    return chunk.bytes[size_t(space)];
  }
}

void SlotGuard::relocate(Binding &binding) const {
  for (int64_t &offset : binding.offsets)
    if (offset >= 0)
      offset = slots.at(offset).moved;
}

StageInfo SlotGuard::relocate(const StageInfo &stage) const {
  StageInfo result = stage;
  if (!options.canaries)
    return result;
  std::vector<bool> used(result.bindings.size());
  for (int64_t i = 0; i < stage.numActions; ++i)
    if (uint32_t binding = program.actions(stage)[i].binding; binding < used.size())
      used[binding] = true;
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i])
      relocate(result.bindings[i]);
  for (Binding &binding : result.buckets)
    relocate(binding);
  return result;
}

void SlotGuard::arm(uint8_t *arena) {
  if (!options.canaries)
    return;
  std::memset(arena, canary, guardBytes);
  for (const auto &[offset, slot] : slots)
    std::memset(arena + slot.moved + slot.bytes, canary, size_t(roundUp(slot.bytes) - slot.bytes + guardBytes));
}

void SlotGuard::check(const uint8_t *arena, int64_t step, const std::string &after) const {
  if (!options.canaries)
    return;
  auto intact = [&](int64_t begin, int64_t end) {
    return std::all_of(arena + begin, arena + end, [](uint8_t byte) { return byte == canary; });
  };
  if (!intact(0, guardBytes))
    fail("step ", step, ", ", after, ": bytes before the first slot have changed");
  for (const auto &[offset, slot] : slots)
    if (!intact(slot.moved + slot.bytes, slot.moved + roundUp(slot.bytes) + guardBytes))
      fail("step ", step, ", ", after, ": bytes behind the slot at byte ", offset, " (", slot.what, ", ", slot.bytes,
           " bytes) have changed");
}

std::vector<ByteRange> SlotGuard::dyingRanges(const drover_action &action, const Binding &binding) const {
  std::vector<ByteRange> ranges;
  for (int space = 0; options.poison && space < numSpaces; ++space) {
    int64_t offset = binding.offsets[size_t(space)];
    if (offset >= 0 && Space(space) != Space::Scalar)
      ranges.push_back({offset, offset + spaceBytes(action, Space(space))});
  }
  return ranges;
}

void SlotGuard::fill(uint8_t *arena, ByteRange range) {
  std::memset(arena + range.begin, poison, size_t(range.end - range.begin));
}

void SlotGuard::releaseScratch(uint8_t *arena, const drover_action &action, const Binding &binding) const {
  if (options.poison && binding[Space::Scratch] >= 0)
    std::memset(arena + binding[Space::Scratch], poison, size_t(spaceBytes(action, Space::Scratch)));
}

} // namespace drover::rt
