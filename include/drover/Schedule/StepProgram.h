//===- StepProgram.h - the step program as data -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// docs/step-program.md in structs: chunks of body calls, and per global batch and pipeline stage a list of actions
// with the places of their slots. What differs by the other axes is arithmetic on a rank's coordinates.
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
  Output = 13,
  Gradient = 14,
  Kept = 15,
  Handed = 16
};
constexpr size_t kNumSpaces = 17;
const char *nameOf(Space space);

/// Offsets of such a space are in elements of a bucket, of the others in bytes.
inline bool isBucketSpace(Space space) {
  return space == Space::Parameter || space == Space::Accumulator || space == Space::Master ||
         space == Space::Moment1 || space == Space::Moment2 || space == Space::Gradient;
}

/// Bytes of the scalar space and the places in it.
constexpr int64_t kScalarBytes = 160, kSeedOffset = 0, kLossOffset = 8, kNormOffset = 16, kHyperOffset = 64;

struct Operand {
  Space space = Space::Scratch;
  int64_t offset = 0;
  int32_t bucket = -1; // where it is not the chunk's own: a parameter that is tied or frozen
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
  int32_t bucket = -1; // its own
  int64_t stashBytes = 0, keptBytes = 0, handedBytes = 0, xBytes = 0, yBytes = 0, dyBytes = 0, dxBytes = 0;
  std::array<int64_t, 3> scratchBytes = {0, 0, 0};
};

struct PlacedParameter {
  Parameter parameter;
  int32_t bucket = 0;
  int64_t offset = 0; // elements
};

/// A range of a bucket whose elements are updated and reduced alike.
struct Section {
  int64_t first = 0, elements = 0;
  bool decay = false, trainable = true;
  GridAxis sum = GridAxis::None, replicated = GridAxis::None; // as in Parameter
};

/// Flat and padded. A chunk's trainable parameters are one bucket; its frozen ones another (no gradient, no update);
/// a parameter that several chunks use has one of its own.
struct Bucket {
  int64_t elements = 0;
  std::vector<int32_t> chunks; // that use it
  std::vector<Section> sections;

  bool trainable() const { return !sections.empty() && sections.front().trainable; }
  bool isShared() const { return chunks.size() > 1; }
};

struct PlacedTensor {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape; // of the rank's part
  int64_t offset = 0;
  std::vector<DimCut> cut; // of outputs
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

/// The program of the ranks of one pipeline stage.
struct Stage {
  uint64_t firstAction = 0, numActions = 0;
  std::vector<Binding> bindings;
  std::vector<Binding> buckets; // places of each bucket's lasting spaces; none where the stage does not hold it
  std::vector<uint32_t> waits;  // places in the list of actions
  int64_t arenaBytes = 0;
  Memory memory;
};

struct Batch {
  int64_t globalBatch = 0, microbatches = 0;
  std::vector<int64_t> groups;
  std::vector<Stage> stages;
};

/// The ranks: TP * CP * PP * DP, numbered by `order`, innermost axis first.
struct Grid {
  int64_t tp = 1, cp = 1, pp = 1, dp = 1;
  int64_t kv = 0; // groups of kv heads where tp is split into kv times replicas, else 0
  std::array<std::string, 4> order = {"tp", "cp", "pp", "dp"};

  int64_t ranks() const { return tp * cp * pp * dp; }
  int64_t fsdp() const { return cp * dp; }
};

/// A group of stages; those over the other axes have fixed numbers (docs/step-program.md, Communicators).
struct Communicator {
  uint32_t id = 0;
  bool isTie = false;
  int32_t from = -1, to = -1;  // of an edge
  bool forward = true;         // an edge for boundary tensors, else for their gradients
  std::vector<int32_t> stages; // of a tie
};

struct ModelFile {
  std::string file, sha256, kind;
};

struct StepProgram {
  bool train = false;
  DType computeType = DType::F32;
  Plan plan;
  Grid grid;
  std::vector<Communicator> communicators;
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
  int32_t updateBody = -1, normBody = -1, castBody = -1, addBody = -1;
  int32_t lossChunk = -1; // whose forward leaves the loss in the scalar space
  std::vector<StepChunk> chunks;
  std::vector<Batch> batches;
  std::vector<drover_action> actions;

  int32_t stageOf(uint32_t chunk) const { return static_cast<int32_t>(chunk % static_cast<uint32_t>(grid.pp)); }
  /// The stages that hold a bucket, ascending.
  std::vector<int32_t> stagesOf(const Bucket &bucket) const;
  /// The stage that has the optimizer state of a bucket.
  int32_t ownerOf(const Bucket &bucket) const { return stageOf(bucket.chunks.front()); }
  /// Whether optimizer state and reduced gradients are shards over CP and DP, rather than whole buckets.
  bool isSharded() const { return plan.zero > 0 && grid.fsdp() > 1; }
  int64_t shardElements(const Bucket &bucket) const {
    return isSharded() ? bucket.elements / grid.fsdp() : bucket.elements;
  }
};

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_STEPPROGRAM_H
