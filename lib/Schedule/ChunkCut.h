//===- ChunkCut.h - calls to chunks, values to spaces -----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_SCHEDULE_CHUNKCUT_H
#define DROVER_LIB_SCHEDULE_CHUNKCUT_H

#include "drover/Schedule/StepProgram.h"

namespace drover::schedule {

/// Where the calls and values of a microbatch program go.
struct ChunkCut {
  std::vector<uint32_t> chunkOfCall;
  /// Per value: the value whose memory it shares (itself where none), through all in-place calls.
  std::vector<uint32_t> root;
  /// Per root that a call makes: the chunk that makes it, the space it has there, and its offset.
  struct Place {
    Space space = Space::Scratch;
    uint32_t chunk = 0;
    int64_t offset = 0;
  };
  std::vector<Place> places;
};

/// The phase that a call belongs to.
inline size_t phaseOf(const Call &call) { return !call.backward ? 0 : call.weightGradient ? 2 : 1; }

/// Cuts the calls by the layers per chunk, decides the space of every value and packs stash, boundaries and scratch;
/// fills the sizes of `chunks`. A chunk without calls passes its boundaries on.
Result<ChunkCut> cutIntoChunks(const MicrobatchProgram &program, const std::vector<int64_t> &layersPerChunk,
                               std::vector<StepChunk> &chunks);

} // namespace drover::schedule

#endif // DROVER_LIB_SCHEDULE_CHUNKCUT_H
