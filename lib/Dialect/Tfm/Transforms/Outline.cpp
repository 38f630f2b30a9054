//===- Outline.cpp - structurally equal layers become one body --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "OutlineAnalysis.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMOUTLINE
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {

struct Outline : impl::TfmOutlineBase<Outline> {
  using TfmOutlineBase::TfmOutlineBase;

  void runOnOperation() override {
    func::FuncOp model = lookupFunction(getOperation(), "model");
    if (!model || failed(checkStraightLine(model)))
      return signalPassFailure();
    if (Operation *other = getOperation().lookupSymbol("microbatch")) {
      other->emitError("stands in the way of the function @microbatch that outlining makes");
      return signalPassFailure();
    }
    eraseDeadOperations(model.getBody().front());
    outline(model);
  }

private:
  LogicalResult checkStraightLine(func::FuncOp model);
  void outline(func::FuncOp model);
  std::string bodyName(OutlineAnalysis::Part::Kind kind);
  func::FuncOp makeBody(const BodyShape &shape, StringRef name, Location loc);

  unsigned numLayerBodies = 0;
};

std::string Outline::bodyName(OutlineAnalysis::Part::Kind kind) {
  if (kind == OutlineAnalysis::Part::Prologue)
    return "embed";
  if (kind == OutlineAnalysis::Part::Epilogue)
    return "head";
  unsigned number = numLayerBodies++;
  return number ? "layer_" + std::to_string(number) : "layer";
}

LogicalResult Outline::checkStraightLine(func::FuncOp model) {
  for (Operation &op : model.getBody().front().without_terminator()) {
    if (op.getNumRegions() || !isMemoryEffectFree(&op))
      return op.emitOpError("cannot be part of a body: it has regions or side effects");
    for (Type type : op.getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && !tensor.hasStaticShape())
        return op.emitOpError("has a result of type ") << type << "; tfm-specialize comes before";
  }
  return success();
}

func::FuncOp Outline::makeBody(const BodyShape &shape, StringRef name, Location loc) {
  OpBuilder builder(&getContext());
  auto type = builder.getFunctionType(ValueRange(shape.operands).getTypes(), ValueRange(shape.results).getTypes());
  auto body = func::FuncOp::create(builder, loc, name, type);
  body.setPrivate();
  body->setAttr(TfmDialect::kBodyAttr, builder.getStringAttr(TfmDialect::kForwardPhase));
  Block *block = body.addEntryBlock();
  IRMapping mapping;
  mapping.map(shape.operands, block->getArguments());
  builder.setInsertionPointToStart(block);
  for (Operation *op : shape.operations)
    builder.clone(*op, mapping);
  SmallVector<Value> results;
  for (Value result : shape.results)
    results.push_back(mapping.lookup(result));
  func::ReturnOp::create(builder, loc, results);
  return body;
}

void Outline::outline(func::FuncOp model) {
  OutlineAnalysis analysis(model, /*findRepetitions=*/!whole);
  SymbolTable symbols(getOperation());
  Block &block = model.getBody().front();
  OpBuilder builder(block.getTerminator());

  std::map<std::vector<uintptr_t>, func::FuncOp> bodies;
  llvm::MapVector<Operation *, int64_t> layersOf;
  IRMapping mapping;
  int64_t layer = 0;
  Operation *previousBody = model;
  for (const OutlineAnalysis::Part &part : analysis.takeParts()) {
    BodyShape shape = analysis.shapeOf(part.segment);
    Location loc = shape.operations.empty() ? model.getLoc() : shape.operations.front()->getLoc();
    func::FuncOp &body = bodies[shape.key];
    if (!body) {
      body = makeBody(shape, bodyName(part.kind), loc);
      symbols.insert(body, std::next(previousBody->getIterator()));
      previousBody = body;
      ++numBodies;
    }
    SmallVector<Value> operands;
    for (Value operand : shape.operands)
      operands.push_back(mapping.lookupOrDefault(operand));
    auto call = func::CallOp::create(builder, loc, body, operands);
    if (part.kind == OutlineAnalysis::Part::Layer) {
      call->setAttr(TfmDialect::kLayerAttr, builder.getI64IntegerAttr(layer++));
      ++layersOf[body];
      ++numLayers;
    }
    mapping.map(shape.results, call.getResults());
  }

  Operation *terminator = block.getTerminator();
  for (OpOperand &operand : terminator->getOpOperands())
    operand.set(mapping.lookupOrDefault(operand.get()));
  eraseDeadOperations(block);
  symbols.remove(model);
  model.setName("microbatch");
  symbols.insert(model, model->getIterator());
  model->setAttr(TfmDialect::kMicrobatchAttr, builder.getUnitAttr());
  if (!report)
    return;
  InFlightDiagnostic remark = emitRemark(model.getLoc(), "outlined ");
  remark << layer << (layer == 1 ? " layer into " : " layers into ") << layersOf.size()
         << (layersOf.size() == 1 ? " body:" : " bodies:");
  for (auto [body, count] : layersOf)
    remark << " @" << cast<func::FuncOp>(body).getName() << " x" << count;
}

} // namespace
} // namespace drover::tfm
