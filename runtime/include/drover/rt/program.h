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
  Gradient
};
constexpr int numSpaces = 15;
const char *spaceName(Space space);

/// Byte offsets in the scalar space.
constexpr int64_t seedOffset = 0, lossOffset = 8, normOffset = 16, hyperOffset = 64, hyperNoDecayOffset = 128,
                  scalarBytes = 160;

struct TensorInfo {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  int64_t offset; // in its space
  std::string role, fill;

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
  std::vector<int64_t> shape;
  int64_t bucket, offset, elements; // offset in elements of the bucket
  bool decay, frozen;
  bool normal;      // initial values: normal, else constant
  double initValue; // standard deviation or constant
  std::vector<std::string> aliases;
  std::optional<ParameterSource> source;
};

struct BucketInfo {
  int64_t elements, decayElements, trainableElements, chunk;
};

struct BodyInfo {
  std::string name;
  int64_t workspaceBytes;
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
  std::vector<std::vector<CallInfo>> phases;
};

/// Byte offset in the arena by space; -1 where the chunk does not use it.
struct Binding {
  std::array<int64_t, numSpaces> offsets;
  int64_t workspace = -1; // -1: beside the arena

  Binding() { offsets.fill(-1); }
  int64_t operator[](Space space) const { return offsets[size_t(space)]; }
  int64_t &operator[](Space space) { return offsets[size_t(space)]; }
};

struct BatchInfo {
  int64_t globalBatch, microbatches, firstAction, numActions, arenaBytes;
  std::vector<Binding> bindings;
  std::vector<Binding> buckets; // where each bucket's spaces lie
  std::map<std::string, int64_t> memory;
};

class Program {
public:
  /// Throws Error.
  explicit Program(const drover_program &embedded);

  bool isTraining() const { return task == "train"; }
  const drover_action *actions(const BatchInfo &batch) const { return allActions + batch.firstAction; }
  drover_body_fn body(int64_t index) const { return bodyFunctions[index]; }
  /// The bucket of a chunk, or -1.
  int64_t bucketOf(int64_t chunk) const;
  int64_t arenaBytes() const;
  int64_t workspaceBytes() const;
  const BatchInfo *findBatch(int64_t globalBatch) const;
  std::string batchesText() const;
  const TensorInfo *inputWithRole(const std::string &role) const;
  /// Sequence length and sequences of a microbatch, from the input with role tokens.
  int64_t sequenceLength() const { return inputWithRole("tokens")->shape[1]; }
  int64_t microbatchSize() const { return inputWithRole("tokens")->shape[0]; }

  std::string task, optimizer, mask, hash;
  DType computeDType = DROVER_F32;
  int64_t ranks = 1;
  std::string modelFile, modelSha256;
  int64_t tokensPerMicrobatch = 0, vocabulary = 0, inputBytes = 0, outputBytes = 0;
  double flopsPerToken = 0;
  std::vector<TensorInfo> inputs, outputs;
  std::vector<ParameterInfo> parameters;
  std::vector<BucketInfo> buckets;
  std::vector<BodyInfo> bodies;
  int64_t updateBody = -1, normBody = -1, castBody = -1;
  std::vector<ChunkInfo> chunks;
  std::vector<BatchInfo> batches;

private:
  void readMetadata(const char *text, uint64_t bytes);
  void validate();
  void validateParameters() const;
  void validateActions(const BatchInfo &batch) const;
  void bindBuckets(BatchInfo &batch) const;

  const drover_action *allActions;
  uint64_t numActions;
  const drover_body_fn *bodyFunctions;
  uint32_t numBodies;
};

} // namespace drover::rt

#endif // DROVER_RT_PROGRAM_H
