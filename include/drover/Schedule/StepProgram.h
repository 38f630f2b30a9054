//===- StepProgram.h - the step program as data -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// docs/step-program.md in structs. One rank's program: chunks of body calls, and per global batch a list of
// actions with the places of their slots.
#ifndef DROVER_SCHEDULE_STEPPROGRAM_H
#define DROVER_SCHEDULE_STEPPROGRAM_H

#include "drover/Schedule/MicrobatchProgram.h"
#include "drover/Schedule/Plan.h"
#include <array>

namespace drover::schedule {

enum class Space : uint8_t {
  Input = 0,
  Parameter = 1,
  Accumulator = 2,
  Stash = 3,
  X = 4,
  Y = 5,
  DY = 6,
  DX = 7,
  Scratch = 8,
  Scalar = 9,
  Master = 10,
  Moment1 = 11,
  Moment2 = 12,
  Output = 13
};
constexpr size_t kNumSpaces = 14;
const char *nameOf(Space space);

/// Offsets of such a space are in elements of a bucket, of the others in bytes.
inline bool isBucketSpace(Space space) {
  return space == Space::Parameter || space == Space::Accumulator || space == Space::Master ||
         space == Space::Moment1 || space == Space::Moment2;
}

/// Bytes of the scalar space and the places in it.
constexpr int64_t kScalarBytes = 160, kSeedOffset = 0, kLossOffset = 8, kNormOffset = 16, kHyperOffset = 64;

struct Operand {
  Space space = Space::Scratch;
  int64_t offset = 0;
  int32_t bucket = -1; // where it is not the chunk's own: a parameter tied to another chunk's
};

inline bool operator==(const Operand &a, const Operand &b) {
  return a.space == b.space && a.offset == b.offset && a.bucket == b.bucket;
}

/// A range of a bucket's accumulators.
struct BucketRange {
  int32_t bucket = 0;
  int64_t offset = 0, elements = 0;
};

struct StepCall {
  uint32_t body = 0;
  int32_t layer = -1;
  std::vector<Operand> operands;
  /// The accumulators hold sums even in the first action into the bucket: an earlier call of the phase wrote them.
  bool alwaysAccumulate = false;
  /// Ranges to zero before the call in the first action into the bucket.
  std::vector<BucketRange> clears;
  /// The call of the microbatch program that this is; for `verify` and the printer, not serialized.
  uint32_t source = 0;
};

struct StepChunk {
  std::array<std::vector<StepCall>, 3> phases;
  int64_t stashBytes = 0, xBytes = 0, yBytes = 0, dyBytes = 0, dxBytes = 0;
  std::array<int64_t, 3> scratchBytes = {0, 0, 0};
};

struct PlacedParameter {
  Parameter parameter;
  int32_t bucket = 0;
  int64_t offset = 0; // elements
};

/// Flat and padded: parameters with decay, those without, then frozen ones (which have no gradient).
struct Bucket {
  int64_t decayElements = 0;
  int64_t trainableElements = 0;
  int64_t elements = 0; // with the frozen ones
  int32_t chunk = 0;
};

struct PlacedTensor {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  int64_t offset = 0;
};

/// Byte offset in the arena of each space, -1 where the action does not use it.
struct Binding {
  std::array<int64_t, kNumSpaces> offsets;
  Binding() { offsets.fill(-1); }
  int64_t &operator[](Space space) { return offsets[static_cast<size_t>(space)]; }
  int64_t operator[](Space space) const { return offsets[static_cast<size_t>(space)]; }
};

inline bool operator==(const Binding &a, const Binding &b) { return a.offsets == b.offsets; }

/// Peak bytes of each category.
struct Memory {
  int64_t parameters = 0, gradients = 0, optimizer = 0, stash = 0, boundary = 0, scratch = 0, workspace = 0, inputs = 0,
          logits = 0;
};

struct Batch {
  int64_t globalBatch = 0, microbatches = 0;
  std::vector<int64_t> groups;
  uint64_t firstAction = 0, numActions = 0;
  std::vector<Binding> bindings;
  std::vector<Binding> buckets; // places of each bucket's spaces
  std::vector<uint32_t> waits;
  int64_t arenaBytes = 0;
  Memory memory;
};

struct ModelFile {
  std::string file, sha256, kind;
};

struct StepProgram {
  bool train = false;
  DType computeType = DType::F32;
  Plan plan;
  ModelFile model;
  int64_t tokensPerMicrobatch = 0, vocabulary = 0;
  double flopsPerToken = 0;
  std::vector<PlacedTensor> inputs; // parallel to inputInfo
  std::vector<Input> inputInfo;
  int64_t inputBytes = 0;
  std::vector<PlacedTensor> outputs;
  int64_t outputBytes = 0;
  std::vector<PlacedParameter> parameters;
  std::vector<Bucket> buckets;
  std::vector<Body> bodies;
  int32_t updateBody = -1, normBody = -1, castBody = -1;
  int32_t lossChunk = -1; // whose forward leaves the loss in the scalar space
  std::vector<StepChunk> chunks;
  std::vector<Batch> batches;
  std::vector<drover_action> actions;
};

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_STEPPROGRAM_H
