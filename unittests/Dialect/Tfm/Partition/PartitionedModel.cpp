//===- PartitionedModel.cpp - a training step, whole and cut ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "PartitionedModel.h"
#include "drover/Dialect/Tfm/IR/Gradients.h"
#include "drover/Dialect/Tfm/IR/Partition.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "drover/Interpreter/RankInterpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace drover;
using drover::tfm::Grid;
using drover::tfm::TfmDialect;

MLIRContext &testContext() {
  static MLIRContext *instance = [] {
    DialectRegistry registry;
    registry.insert<arith::ArithDialect, func::FuncDialect, math::MathDialect, shard::ShardDialect, tfm::TfmDialect>();
    tfm::registerUpstreamGradients(registry);
    tfm::registerUpstreamPartitionRules(registry);
    auto *context = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
    context->loadAllAvailableDialects();
    return context;
  }();
  return *instance;
}

OwningOpRef<ModuleOp> trainingStep(const ModelShape &shape, const StepOptions &options) {
  std::string text = modelText(shape);
  auto module = parseSourceString<ModuleOp>(text, &testContext());
  if (!module) {
    ADD_FAILURE() << text;
    return module;
  }
  PassManager manager(&testContext());
  tfm::TfmAttachLossOptions loss;
  loss.documents = options.documents;
  tfm::TfmDifferentiateOptions differentiate;
  differentiate.recompute = options.recompute;
  tfm::TfmApplyComputeDtypeOptions dtype;
  dtype.dtype = options.computeType;
  if (!options.forward)
    manager.addPass(tfm::createTfmAttachLoss(loss));
  manager.addPass(tfm::createTfmApplyComputeDtype(dtype));
  manager.addPass(tfm::createTfmOutline());
  if (!options.forward)
    manager.addPass(tfm::createTfmDifferentiate(differentiate));
  if (options.split)
    manager.addPass(tfm::createTfmSplitBackward());
  manager.addPass(tfm::createTfmVerifyMicrobatch());
  EXPECT_TRUE(succeeded(manager.run(*module)));
  return module;
}

LogicalResult partitionStep(ModuleOp module, const Layout &layout) {
  tfm::TfmPartitionOptions options;
  options.tp = layout.tp;
  options.cp = layout.cp;
  options.dp = layout.dp;
  PassManager manager(&testContext());
  manager.addPass(tfm::createTfmPartition(options));
  manager.addPass(tfm::createTfmVerifyDistributions());
  if (layout.rings) {
    manager.addNestedPass<func::FuncOp>(tfm::createTfmRingOverlap());
    manager.addPass(tfm::createTfmVerifyDistributions());
  }
  manager.addPass(tfm::createTfmVerifyMicrobatch());
  return manager.run(module);
}

static func::FuncOp microbatchOf(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("microbatch"); }

static std::string nameOf(DictionaryAttr attrs) {
  if (attrs)
    for (StringRef attr : {TfmDialect::kInputAttr, TfmDialect::kParameterAttr, TfmDialect::kOutputAttr})
      if (auto name = attrs.getAs<StringAttr>(attr))
        return name.str();
  auto name = attrs ? attrs.getAs<StringAttr>(TfmDialect::kAccumulatorAttr) : StringAttr();
  return name ? "gradient of " + name.str() : "seed";
}

/// Numbers that no symmetry of a model hides, the same in every form of it: `index` is the place in the whole tensor.
static Tensor valueFor(const std::string &name, ElementKind kind, ArrayRef<int64_t> shape, int64_t vocabulary,
                       const StepOptions &options) {
  Tensor tensor(kind, shape);
  unsigned salt = 0;
  for (char c : name)
    salt = (salt * 31 + static_cast<unsigned char>(c)) % 1009;
  int64_t length = shape.size() > 1 ? shape[1] : 1;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (name == "input_ids")
      tensor.ints[i] = (5 * i + 3 + i / 7) % vocabulary;
    else if (name == "labels")
      tensor.ints[i] = options.ignoredLabels && (i % 3 == 1 || i < 5) ? -1 : (7 * i + 1) % vocabulary;
    else if (name == "document_ids")
      tensor.ints[i] = i % length / 5;
    else if (name == "position_ids")
      tensor.ints[i] = i % length;
    else if (name == "attention_mask")
      tensor.ints[i] = i % length != 3;
    else if (name == "seed")
      tensor.floats[i] = 0.03125;
    else if (StringRef(name).starts_with("gradient of"))
      tensor.floats[i] = 0;
    else
      tensor.floats[i] = 0.4 * std::sin(0.7 + 1.3 * salt + 2.17 * i + 0.03 * salt * i);
  }
  return tensor;
}

/// The vocabulary: rows of the table, in the whole model.
static int64_t vocabularyOf(func::FuncOp microbatch) {
  for (unsigned index = 0; index < microbatch.getNumArguments(); ++index)
    if (nameOf(microbatch.getArgAttrDict(index)) == "embed.weight") {
      if (auto shape = microbatch.getArgAttrOfType<DenseI64ArrayAttr>(index, TfmDialect::kGlobalShapeAttr))
        return shape[0];
      return cast<RankedTensorType>(microbatch.getArgumentTypes()[index]).getDimSize(0);
    }
  return 1;
}

static InterpreterOptions exactly() {
  InterpreterOptions options;
  options.exact = true;
  return options;
}

StepResults runWhole(ModuleOp module, const StepOptions &options) {
  func::FuncOp microbatch = microbatchOf(module);
  std::vector<Tensor> arguments;
  for (auto [index, type] : llvm::enumerate(microbatch.getArgumentTypes()))
    arguments.push_back(valueFor(nameOf(microbatch.getArgAttrDict(index)), *elementKind(type),
                                 cast<RankedTensorType>(type).getShape(), vocabularyOf(microbatch), options));
  SmallVector<Tensor> results;
  std::string reason;
  EXPECT_TRUE(succeeded(interpret(microbatch, arguments, results, exactly(), &reason))) << reason;
  StepResults named;
  for (auto [index, tensor] : llvm::enumerate(results))
    named[nameOf(microbatch.getResultAttrDict(index))] = tensor;
  return named;
}

FailureOr<StepResults> runRanks(ModuleOp module, const StepOptions &options, std::string &reason) {
  func::FuncOp microbatch = microbatchOf(module);
  Grid grid(module->getAttrOfType<DictionaryAttr>(TfmDialect::kGridAttr));
  std::vector<std::vector<Tensor>> arguments(grid.numRanks()), results;
  for (auto [index, argumentType] : llvm::enumerate(microbatch.getArgumentTypes())) {
    auto type = cast<RankedTensorType>(argumentType);
    tfm::Distribution distribution = tfm::Distribution::of(type);
    SmallVector<int64_t> shape;
    for (auto [dim, size] : llvm::enumerate(type.getShape()))
      shape.push_back(distribution.globalSize(dim, size, grid));
    Tensor whole = valueFor(nameOf(microbatch.getArgAttrDict(index)), *elementKind(type), shape,
                            vocabularyOf(microbatch), options);
    for (int64_t rank = 0; rank < grid.numRanks(); ++rank)
      arguments[rank].push_back(takePart(whole, type, grid, rank));
  }
  if (failed(interpretRanks(microbatch, grid, arguments, results, exactly(), &reason)))
    return failure();
  StepResults named;
  for (auto [index, type] : llvm::enumerate(microbatch.getResultTypes())) {
    std::vector<Tensor> parts;
    for (std::vector<Tensor> &own : results)
      parts.push_back(own[index]);
    std::string name = nameOf(microbatch.getResultAttrDict(index));
    FailureOr<Tensor> whole = putTogether(parts, cast<RankedTensorType>(type), grid, reason);
    if (failed(whole)) {
      reason = name + ": " + reason;
      return failure();
    }
    named[name] = *whole;
  }
  return named;
}

std::pair<double, std::string> worstDifference(const StepResults &expected, const StepResults &actual) {
  std::pair<double, std::string> worst(0, "");
  if (expected.size() != actual.size())
    return {1, "number of results"};
  for (const auto &[name, tensor] : expected) {
    auto found = actual.find(name);
    if (found == actual.end() || found->second.shape != tensor.shape)
      return {1, name + " has another shape"};
    double scale = 0, difference = 0;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      scale = std::max(scale, std::abs(tensor.asDouble(i)));
      difference = std::max(difference, std::abs(tensor.asDouble(i) - found->second.asDouble(i)));
    }
    // Gradients that are zero in exact arithmetic are compared with the size of rounding errors.
    double relative = difference / std::max(scale, 1e-6);
    if (!(relative <= worst.first))
      worst = {relative, name};
  }
  return worst;
}
