//===- program.h - the step program that an executable embeds ---*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// docs/step-program.md. Loading checks everything that the interpreter relies on, so that a damaged or foreign
// program is a message, never a wild pointer.
#ifndef DROVER_RT_PROGRAM_H
#define DROVER_RT_PROGRAM_H

#include "drover/rt/abi.h"
#include "drover/rt/dtype.h"
#include "drover/rt/grid.h"
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace drover::rt {

enum class Space {
  Input,
  Parameter,
  Accumulator,
  Stash,
  X,
  Y,
  Dy,
  Dx,
  Scratch,
  Scalar,
  Master,
  Moment1,
  Moment2,
  Output,
  Gradient,
  Kept,
  Handed
};
constexpr int numSpaces = 17;
const char *spaceName(Space space);

/// Spaces whose offsets count elements of a bucket.
constexpr bool isBucketSpace(Space space) {
  return space == Space::Parameter || space == Space::Accumulator || space == Space::Gradient ||
         (space >= Space::Master && space <= Space::Moment2);
}

/// Byte offsets in the scalar space.
constexpr int64_t seedOffset = 0, lossOffset = 8, normOffset = 16, hyperOffset = 64, hyperNoDecayOffset = 128,
                  scalarBytes = 160;

/// `groups` groups of `valid` elements, each padded to `padded`, and padding up to `total` groups.
struct Segment {
  int64_t groups, valid, padded, total;
};

/// A dimension of which a rank holds a part (docs/distributions.md, Padding); over cp the part is two chunks.
struct CutInfo {
  int64_t dim;
  int axis;
  std::vector<Segment> segments; // empty: an even cut
};

struct TensorInfo {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape; // what a rank holds
  int64_t offset;             // in its space
  std::string role, fill;
  std::vector<CutInfo> cuts;

  int64_t elements() const;
  int64_t bytes() const { return elements() * byteSize(dtype); }
};

/// Where the values of a parameter are in the model's files.
struct ParameterSource {
  std::string file;
  uint64_t offset, bytes;
  DType dtype;
  bool transposed;
  double plus;
};

struct ParameterInfo {
  std::string name;
  std::vector<int64_t> shape, localShape; // the model's; what a rank holds, padding included
  std::vector<CutInfo> cuts;              // empty: every rank holds all of it
  int64_t bucket, offset;                 // offset in elements of the bucket
  int64_t elements, localElements;
  bool decay, frozen;
  bool normal;      // initial values: normal, else constant
  double initValue; // standard deviation or constant
  std::vector<std::string> aliases;
  std::optional<ParameterSource> source;
};

/// A range of a bucket whose parameters are reduced and updated alike. Axes are -1 where there is none.
struct SectionInfo {
  int64_t first, elements;
  bool decay, trainable;
  int sumAxis;        // beside cp and dp the gradient is partial over it
  int replicatedAxis; // the parameters are replicated over it
};

struct BucketInfo {
  int64_t elements;
  std::vector<int64_t> chunks; // those that use it; the stage of the first owns it
  std::vector<SectionInfo> sections;
};

struct OperandType {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<CutInfo> cuts;
  std::vector<int> partial; // axes over which it is a pending sum
  bool result = false;      // the body writes it
};

struct BodyInfo {
  std::string name;
  int64_t workspaceBytes;
  std::vector<OperandType> operands; // empty: not known
};

struct OperandInfo {
  Space space;
  int64_t offset; // bytes in the space
  int64_t bucket; // whose range it is, where that is not the chunk's own (a tied parameter); else -1
};

/// Elements of a bucket's accumulators.
struct BucketRange {
  int64_t bucket, offset, elements;
};

struct CallInfo {
  int64_t body, layer; // layer -1: none
  std::vector<OperandInfo> operands;
  bool alwaysAccumulate;           // an earlier call of the phase wrote these accumulators
  std::vector<BucketRange> clears; // zeroed before the call by the first action into the accumulators
};

struct ChunkInfo {
  int64_t bucket = -1;                       // its own
  std::array<int64_t, numSpaces> bytes = {}; // sizes of its spaces, as far as they are given
  std::array<int64_t, 3> scratchBytes = {};  // by phase
  std::vector<std::vector<CallInfo>> phases;
};

/// Byte offset in the arena by space; -1 where the chunk does not use it.
struct Binding {
  std::array<int64_t, numSpaces> offsets;

  Binding() { offsets.fill(-1); }
  int64_t operator[](Space space) const { return offsets[size_t(space)]; }
  int64_t &operator[](Space space) { return offsets[size_t(space)]; }
};

/// What the ranks of one pipeline stage do in a batch.
struct StageInfo {
  int64_t firstAction, numActions, arenaBytes;
  std::vector<Binding> bindings;
  std::vector<Binding> buckets; // where each bucket's lasting spaces lie
  std::vector<uint32_t> waits;
  std::map<std::string, int64_t> memory;
};

struct BatchInfo {
  int64_t globalBatch, microbatches;
  std::vector<StageInfo> stages;
};

/// A communicator that follows from the pipeline: the two ends of an edge, or the holders of a tied bucket.
struct ListedCommunicator {
  int32_t id;
  std::string name;
  std::vector<int64_t> stages;
};

class Program {
public:
  /// Throws Error.
  explicit Program(const drover_program &embedded);

  bool isTraining() const { return task == "train"; }
  /// Its bodies issue kernels on a GPU.
  bool usesGpu() const { return numGpuImages > 0; }
  const drover_action *actions(const StageInfo &stage) const { return allActions.data() + stage.firstAction; }
  drover_body_fn body(int64_t index) const { return bodyFunctions[index]; }
  int64_t stageOf(int64_t chunk) const { return chunk % grid.size(DROVER_AXIS_PP); }
  int64_t ownerStage(int64_t bucket) const { return stageOf(buckets[size_t(bucket)].chunks[0]); }
  /// Over the batches.
  int64_t arenaBytes(int64_t stage) const;
  /// Of the bodies that a stage calls.
  int64_t workspaceBytes(int64_t stage) const;
  /// What a space of a bucket takes on a rank: a shard or all of it.
  int64_t bucketSpaceBytes(int64_t bucket, Space space) const;
  const BatchInfo *findBatch(int64_t globalBatch) const;
  std::string batchesText() const;
  const TensorInfo *inputWithRole(const std::string &role) const;
  /// Sequence length and sequences of a rank's microbatch, from the input with role tokens.
  int64_t sequenceLength() const;
  int64_t microbatchSize() const { return inputWithRole("tokens")->shape[0]; }

  std::string task, optimizer, mask, hash;
  int64_t communicationSms = 0; // that products leave to NCCL
  std::string ncclSettings; // JSON, docs/nccl.md; empty: none
  DType computeDType = DROVER_F32;
  Grid grid;
  std::vector<ListedCommunicator> communicators;
  int64_t zero = 2;
  std::string modelFile, modelSha256;
  int64_t tokensPerMicrobatch = 0, vocabulary = 0, inputBytes = 0, outputBytes = 0;
  double flopsPerToken = 0;
  std::vector<TensorInfo> inputs, outputs;
  std::vector<ParameterInfo> parameters;
  std::vector<BucketInfo> buckets;
  std::vector<BodyInfo> bodies;
  int64_t updateBody = -1, normBody = -1, castBody = -1, addBody = -1;
  int64_t lossChunk = -1;
  std::vector<ChunkInfo> chunks;
  std::vector<BatchInfo> batches;
  const drover_gpu_image *gpuImages = nullptr;
  uint64_t numGpuImages = 0;

private:
  void readMetadata(const char *text, uint64_t bytes);
  void validate();
  void validateParameters() const;
  void validateBuckets() const;
  void validateChunks() const;
  void validateStage(const BatchInfo &batch, int64_t stage) const;

  std::vector<drover_action> allActions;
  const drover_body_fn *bodyFunctions;
  uint32_t numBodies;
};

} // namespace drover::rt

#endif // DROVER_RT_PROGRAM_H
