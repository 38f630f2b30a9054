//===- JoinPads.cpp - sums of paddings as concatenations --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The gradient of a packed projection is the sum of its slices' gradients, each padded with zeros: when the slices
// tile the tensor, every element has one addend, and the sum is a concatenation.
//===----------------------------------------------------------------------===//
#include "BodyPlan.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

namespace {
/// A padding along one dimension, perhaps widened before or after.
struct Part {
  Value value;
  int64_t axis, offset, size;
};
} // namespace

static Value stripExtension(Value value, bool &widened) {
  auto extension = value.getDefiningOp<arith::ExtFOp>();
  if (!extension)
    return value;
  widened = true;
  return extension.getIn();
}

static std::optional<Part> matchPart(Value value, bool &widened) {
  auto pad = stripExtension(value, widened).getDefiningOp<tfm::PadOp>();
  if (!pad || llvm::any_of(pad.getStrides(), [](int64_t stride) { return stride != 1; }))
    return std::nullopt;
  ArrayRef<int64_t> inner = shapeOf(pad.getInput()), outer = shapeOf(pad.getResult());
  std::optional<Part> part;
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] == outer[i])
      continue;
    if (part)
      return std::nullopt;
    part = Part{stripExtension(pad.getInput(), widened), static_cast<int64_t>(i), pad.getOffsets()[i], inner[i]};
  }
  return part;
}

/// The addends of a tree of sums whose inner sums have no other reader.
static void collectAddends(arith::AddFOp sum, SmallVectorImpl<Value> &addends) {
  for (Value operand : sum->getOperands()) {
    auto inner = operand.getDefiningOp<arith::AddFOp>();
    if (inner && operand.hasOneUse())
      collectAddends(inner, addends);
    else
      addends.push_back(operand);
  }
}

static bool joinSum(arith::AddFOp sum) {
  SmallVector<Value> addends;
  collectAddends(sum, addends);
  SmallVector<Part> parts;
  unsigned widenedParts = 0;
  for (Value addend : addends) {
    bool widened = false;
    std::optional<Part> part = matchPart(addend, widened);
    if (!part)
      return false;
    widenedParts += widened;
    parts.push_back(*part);
  }
  llvm::sort(parts, [](const Part &a, const Part &b) { return a.offset < b.offset; });
  int64_t next = 0, axis = parts.front().axis;
  Type narrow = elementTypeOf(parts.front().value);
  for (const Part &part : parts) {
    if (part.axis != axis || part.offset != next || elementTypeOf(part.value) != narrow)
      return false;
    next += part.size;
  }
  if (next != shapeOf(sum.getResult())[axis] || (widenedParts != 0 && widenedParts != parts.size()))
    return false;
  OpBuilder builder(sum);
  SmallVector<Value> inputs;
  for (const Part &part : parts)
    inputs.push_back(part.value);
  auto type = cast<RankedTensorType>(sum.getType()).clone(narrow);
  Value joined = tfm::ConcatOp::create(builder, sum.getLoc(), type, inputs, axis);
  for (Operation *user : llvm::make_early_inc_range(sum->getUsers()))
    if (auto truncation = dyn_cast<arith::TruncFOp>(user); truncation && truncation.getType() == type) {
      truncation.replaceAllUsesWith(joined);
      truncation.erase();
    }
  if (joined.getType() != sum.getType())
    joined = arith::ExtFOp::create(builder, sum.getLoc(), sum.getType(), joined);
  sum.replaceAllUsesWith(joined);
  return true;
}

void lower::joinPads(func::FuncOp func) {
  // From the outermost sum inwards.
  SmallVector<arith::AddFOp> sums(func.getOps<arith::AddFOp>());
  for (arith::AddFOp sum : llvm::reverse(sums))
    if (!sum->use_empty())
      joinSum(sum);
}
