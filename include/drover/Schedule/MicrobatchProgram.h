//===- MicrobatchProgram.h - one microbatch's body calls --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The `@microbatch` function (docs/body-abi.md) as plain structs: what the step program is built from.
#ifndef DROVER_SCHEDULE_MICROBATCHPROGRAM_H
#define DROVER_SCHEDULE_MICROBATCHPROGRAM_H

#include "drover/Schedule/Types.h"
#include <vector>

namespace drover::schedule {

struct Body {
  std::string name;
  uint64_t flops = 0; // model FLOPs of one call
  uint64_t bytes = 0; // least bytes moved by one call
  int64_t workspaceBytes = 0;
};

enum class ValueKind {
  Input,       // index: into inputs
  Seed,        // tensor<f32>, one over the number of labels that count
  Parameter,   // index: into parameters
  Accumulator, // index: into parameters
  Result       // of a call
};

struct Value {
  ValueKind kind = ValueKind::Result;
  int32_t index = -1;
  DType dtype = DType::F32;
  int64_t bytes = 0;
  bool logits = false; // counted under "logits" in the memory report
};

/// A call of a body. Forward calls come first in the program, then backward calls.
struct Call {
  uint32_t body = 0;
  int32_t layer = -1;
  bool backward = false;
  std::vector<uint32_t> operands; // values
  std::vector<uint32_t> results;  // values
  std::vector<int32_t> inPlace;   // per result: the operand in whose memory it lives, or -1
};

struct Input {
  std::string name;
  DType dtype = DType::I64;
  std::vector<int64_t> shape;
  std::string role; // tokens, positions, labels, documents, mask, other
  std::string fill; // tokens, arange, ones, zeros, labels, documents, file:NAME
};

/// Where a parameter's values are in the model's file (#tfm.source).
struct Source {
  std::string file;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  DType dtype = DType::F32;
  bool transposed = false;
  double plus = 0;
};

struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  bool decay = false;
  bool frozen = false;     // no accumulator, no update
  bool initNormal = false; // N(0, initValue), else the constant initValue
  double initValue = 0;
  std::vector<std::string> aliases;
  std::optional<Source> source;

  int64_t elements() const;
};

struct Output {
  std::string name;
  uint32_t value = 0;
  std::vector<int64_t> shape;
};

struct MicrobatchProgram {
  bool train = false;
  DType computeType = DType::F32;
  std::vector<Body> bodies;
  std::vector<Value> values;
  std::vector<Call> calls;
  std::vector<Input> inputs;
  std::vector<Parameter> parameters;
  std::vector<Output> outputs; // of the forward task
  int64_t loss = -1;           // value (f64) of the training task
  int32_t updateBody = -1;
  int32_t normBody = -1;
  int32_t castBody = -1; // master to compute dtype, where they differ
  int64_t tokensPerMicrobatch = 0;
  int64_t vocabulary = 0; // token ids and labels are below it

  int32_t numLayers() const;
};

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_MICROBATCHPROGRAM_H
