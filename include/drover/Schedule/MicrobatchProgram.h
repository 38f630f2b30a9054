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

/// Names of drover_collective_kind: all_gather, reduce_scatter, all_reduce, shift.
const char *nameOfCollective(int32_t kind);
std::optional<int32_t> parseCollective(const std::string &name);

/// A collective of a body, in the order of issue (docs/communication.md).
struct BodyCollective {
  uint32_t communicator = 0; // drover_communicator_id
  int32_t kind = 0;          // drover_collective_kind
  DType dtype = DType::F32;
  int64_t bytes = 0;      // of the whole: the larger one of operand and result
  int64_t reduction = -1; // id of the typed reduction that it discharges, -1 for a gather
};

/// Axes of a grid that a tensor's part in a rank can depend on.
enum class GridAxis : uint8_t { None, Tp, Kv, Replica, Cp, Dp };
const char *nameOf(GridAxis axis);
std::optional<GridAxis> parseGridAxis(const std::string &name);

/// `groups` groups of `valid` elements, each padded to `padded`, and groups of padding up to `total`
/// (docs/distributions.md, Padding).
struct Segment {
  int64_t groups = 0, valid = 0, padded = 0, total = 0;
};

/// How a dimension is cut over an axis; several cuts of one dimension are ordered, outermost first.
struct DimCut {
  int64_t dim = 0;
  GridAxis axis = GridAxis::None; // Cp: two chunks a rank
  std::vector<Segment> segments;  // empty: an even cut
};

/// What an operand of a body is, so that a run can write its value down (--dump): arguments, then the results that are
/// not in an argument's memory.
struct BodyOperand {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;    // of the rank's part
  std::vector<DimCut> cut;       // the batch's is not listed
  std::vector<GridAxis> partial; // axes over which it is a pending sum
  bool isResult = false;         // written by the body, and no accumulator
};

struct Body {
  std::string name;
  uint64_t flops = 0; // model FLOPs of one call
  uint64_t bytes = 0; // least bytes moved by one call
  int64_t workspaceBytes = 0;
  std::vector<BodyCollective> collectives;
  std::vector<BodyOperand> operands = {}; // empty: they have no size of their own
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

/// A call of a body. Forward calls come first in the program, then backward calls; where backwards are split, a call
/// of the weight gradient stands anywhere behind the call of the input gradient that it reads.
struct Call {
  uint32_t body = 0;
  int32_t layer = -1;
  bool backward = false;
  std::vector<uint32_t> operands; // values
  std::vector<uint32_t> results;  // values
  std::vector<int32_t> inPlace;   // per result: the operand in whose memory it lives, or -1
  bool weightGradient = false;    // the second part of a split backward
};

struct Input {
  std::string name;
  DType dtype = DType::I64;
  std::vector<int64_t> shape; // of the rank's part
  std::string role;           // tokens, positions, labels, documents, mask, other
  std::string fill;           // tokens, arange, ones, zeros, labels, documents, file:NAME
  int64_t cutDim = -1;        // the dimension of which a rank holds CP's two chunks
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
  std::vector<int64_t> shape;      // the model's
  std::vector<int64_t> localShape; // of the rank's padded part; empty: `shape`
  std::vector<DimCut> cut;         // empty: every rank holds all of it
  /// The axis over which a rank's gradient is partial, beside cp and dp, and the one over which the parameter is
  /// replicated: None, Tp or Replica.
  GridAxis sum = GridAxis::None, replicated = GridAxis::None;
  bool decay = false;
  bool frozen = false;     // no accumulator, no update
  bool initNormal = false; // N(0, initValue), else the constant initValue
  double initValue = 0;
  std::vector<std::string> aliases;
  std::optional<Source> source;

  /// Of the rank's part.
  int64_t elements() const;
};

struct Output {
  std::string name;
  uint32_t value = 0;
  std::vector<int64_t> shape; // of the rank's part
  std::vector<DimCut> cut;
};

struct MicrobatchProgram {
  bool train = false;
  int64_t kv = 0; // groups of kv heads where TP is split into kv times replicas, else 0
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
  int32_t addBody = -1;  // reduced gradients of several runs, on a GPU
  int64_t tokensPerMicrobatch = 0;
  int64_t vocabulary = 0; // token ids and labels are below it

  int32_t numLayers() const;
};

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_MICROBATCHPROGRAM_H
