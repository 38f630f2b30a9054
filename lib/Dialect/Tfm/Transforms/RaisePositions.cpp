//===- RaisePositions.cpp - positions that count --------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Matchers.h"
#include "SampleSizes.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "drover/Interpreter/Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMRAISEPOSITIONS
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {
/// start + step * index along the last dimension, in every row.
struct Counting {
  int64_t start = 0, step = 1;
};

/// How the integers of `value` count, at all sizes tried; nothing where they depend on inputs or do not.
std::optional<Counting> matchCounting(Value value) {
  std::optional<Counting> counting;
  for (const SmallVector<int64_t> &symbols : sampleSizes(value.getDefiningOp())) {
    InterpreterOptions options;
    options.symbols = symbols;
    options.maxElements = int64_t{1} << 24;
    FailureOr<Tensor> tensor = evaluate(value, {}, options);
    if (failed(tensor) || tensor->shape.empty() || tensor->shape.back() < 2)
      return std::nullopt;
    int64_t length = tensor->shape.back();
    if (!counting)
      counting = Counting{tensor->ints[0], tensor->ints[1] - tensor->ints[0]};
    for (int64_t i = 0; i < tensor->size(); ++i)
      if (tensor->ints[i] != counting->start + counting->step * (i % length))
        return std::nullopt;
  }
  return counting;
}

bool dependsOnArguments(Value value) {
  WalkResult result = walkSources(value, [](Value source) {
    return isa<BlockArgument>(source) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted();
}

struct RaisePositions : impl::TfmRaisePositionsBase<RaisePositions> {
  using TfmRaisePositionsBase::TfmRaisePositionsBase;

  void runOnOperation() override {
    llvm::SetVector<Value> positions;
    getOperation().walk([&](Operation *op) {
      Value value;
      if (auto embedding = dyn_cast<EmbeddingOp>(op))
        value = embedding.getIds();
      else if (auto rope = dyn_cast<RopeOp>(op))
        value = rope.getPositions();
      if (value && value.getDefiningOp() && !value.getDefiningOp<IotaOp>() &&
          cast<RankedTensorType>(value.getType()).getRank() > 0)
        positions.insert(value);
    });
    OpBuilder builder(&getContext());
    for (Value value : positions)
      replace(builder, value);
  }

  void replace(OpBuilder &builder, Value value) {
    std::optional<Sizes> sizes = symbolicSizes(value);
    if (!sizes || dependsOnArguments(value))
      return;
    std::optional<Counting> counting = matchCounting(value);
    if (!counting)
      return;
    Operation *op = value.getDefiningOp();
    builder.setInsertionPoint(op);
    Sizes row(sizes->size(), Size(1));
    row.back() = sizes->back();
    Value iota = IotaOp::create(builder, op->getLoc(), tensorType(row, getElementTypeOrSelf(value)), row.size() - 1,
                                counting->start, counting->step, shapeMap(row, op));
    value.replaceAllUsesWith(row == *sizes ? iota : buildBroadcast(builder, op->getLoc(), iota, *sizes));
  }
};
} // namespace
} // namespace drover::tfm
