//===- PartitionTest.cpp - a step on all ranks is the step ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Loss and every gradient of the partitioned step, executed on all ranks in lock-step, against the whole step, in exact
// arithmetic.
//===----------------------------------------------------------------------===//
#include "PartitionedModel.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <gtest/gtest.h>

using namespace mlir;

namespace {

void check(ModelShape shape, const Layout &layout, const StepOptions &options = {}) {
  SCOPED_TRACE(testing::Message() << "tp " << layout.tp << " cp " << layout.cp << " dp " << layout.dp << " heads "
                                  << shape.heads << " kv " << shape.kvHeads << " vocabulary " << shape.vocabulary
                                  << " width " << shape.width << " recompute " << options.recompute
                                  << (layout.rings ? " in rings" : ""));
  OwningOpRef<ModuleOp> cut = trainingStep(shape, options);
  ASSERT_TRUE(cut);
  // The whole step sees the microbatches of all DP ranks as one.
  shape.batch *= layout.dp;
  OwningOpRef<ModuleOp> whole = trainingStep(shape, options);
  ASSERT_TRUE(whole);
  LogicalResult status = partitionStep(*cut, layout);
  if (getenv("DROVER_PRINT_PARTITION"))
    cut->print(llvm::errs());
  ASSERT_TRUE(succeeded(status));
  std::string reason;
  FailureOr<StepResults> actual = runRanks(*cut, options, reason);
  ASSERT_TRUE(succeeded(actual)) << reason;
  auto [difference, name] = worstDifference(runWhole(*whole, options), *actual);
  EXPECT_LT(difference, 1e-10) << name;
}

constexpr Layout kLayouts[] = {{2, 1}, {4, 1}, {1, 2}, {1, 4}, {2, 2}, {4, 2}, {2, 4}, {4, 4}};

void checkAll(const ModelShape &shape, const StepOptions &options = {}) {
  for (Layout layout : kLayouts)
    for (bool rings : {false, true}) {
      ModelShape fitting = shape;
      fitting.length = 8 * layout.cp > 16 ? 32 : 16;
      layout.rings = rings;
      if (!rings || layout.tp > 1)
        check(fitting, layout, options);
      if (testing::Test::HasFatalFailure())
        return;
    }
}

TEST(Partition, PlainLlama) { checkAll({}); }

TEST(Partition, KvHeadsOfEveryCount) {
  for (int64_t kvHeads = 1; kvHeads <= 4; ++kvHeads)
    for (int64_t group : {1, 2, 3}) {
      ModelShape shape;
      shape.layers = 1;
      shape.kvHeads = kvHeads;
      shape.heads = kvHeads * group;
      checkAll(shape);
    }
}

TEST(Partition, OddVocabulariesAndWidths) {
  for (auto [vocabulary, width] : {std::pair<int64_t, int64_t>(17, 13), {19, 10}, {13, 15}}) {
    ModelShape shape;
    shape.layers = 1;
    shape.vocabulary = vocabulary;
    shape.width = width;
    checkAll(shape);
    shape.tied = true;
    checkAll(shape);
  }
}

TEST(Partition, Gpt2) {
  ModelShape shape;
  shape.kvHeads = 4;
  shape.layerNorm = shape.bias = shape.tied = shape.fusedQkv = shape.positionTable = true;
  shape.activation = ModelShape::Activation::Gelu;
  shape.vocabulary = 17;
  checkAll(shape);
  shape.heads = shape.kvHeads = 3;
  checkAll(shape);
  shape.heads = shape.kvHeads = 2;
  checkAll(shape);
}

TEST(Partition, FusedProjectionsWithFewKvHeads) {
  for (int64_t kvHeads : {1, 2, 3}) {
    ModelShape shape;
    shape.layers = 1;
    shape.kvHeads = kvHeads;
    shape.heads = 3 * kvHeads;
    shape.fusedQkv = shape.fusedGateUp = true;
    shape.width = 11;
    checkAll(shape);
  }
}

TEST(Partition, BiasesAndHeadNorms) {
  for (bool layerNorm : {false, true})
    for (int64_t kvHeads : {1, 2, 4}) {
      ModelShape shape;
      shape.layers = 1;
      shape.kvHeads = kvHeads;
      shape.layerNorm = layerNorm;
      shape.bias = shape.qkNorm = true;
      checkAll(shape);
    }
}

TEST(Partition, ActivationsThatAreNotZeroAtZero) {
  ModelShape shape;
  shape.layers = 1;
  shape.activation = ModelShape::Activation::Exp;
  shape.width = 13;
  checkAll(shape);
}

TEST(Partition, ScaledEmbeddings) {
  ModelShape shape;
  shape.scaledEmbedding = shape.tied = true;
  shape.kvHeads = 1;
  checkAll(shape);
}

TEST(Partition, ParallelAttentionAndMlp) {
  ModelShape shape;
  shape.parallel = shape.layerNorm = shape.bias = true;
  shape.kvHeads = 1;
  checkAll(shape);
}

TEST(Partition, DocumentsAndIgnoredLabels) {
  for (bool positions : {false, true}) {
    ModelShape shape;
    shape.positionInput = positions;
    shape.batch = 2;
    StepOptions options;
    options.documents = options.ignoredLabels = true;
    checkAll(shape, options);
    shape.positionTable = true;
    checkAll(shape, options);
  }
}

TEST(Partition, MasksOfKeysAndScores) {
  ModelShape shape;
  shape.layers = 1;
  shape.keyMask = true;
  checkAll(shape);
  shape.floatMask = true;
  checkAll(shape);
}

TEST(Partition, RecomputeModes) {
  for (const char *recompute : {"none", "selective", "full"}) {
    StepOptions options;
    options.recompute = recompute;
    ModelShape shape;
    shape.kvHeads = 1;
    checkAll(shape, options);
    shape.kvHeads = 4;
    shape.layerNorm = shape.bias = shape.tied = shape.fusedQkv = shape.positionTable = true;
    shape.activation = ModelShape::Activation::Gelu;
    checkAll(shape, options);
  }
}

// Each part of a backward has collectives of its own; together they are the whole one.
TEST(Partition, SplitBackwards) {
  for (const char *computeType : {"f32", "bf16"})
    for (const char *recompute : {"none", "selective", "full"}) {
      StepOptions options;
      options.split = true;
      options.recompute = recompute;
      options.computeType = computeType;
      ModelShape shape;
      shape.kvHeads = 1;
      shape.width = 13;
      checkAll(shape, options);
      shape.heads = shape.kvHeads = 4;
      shape.vocabulary = 17;
      shape.layerNorm = shape.bias = shape.tied = shape.fusedQkv = shape.positionTable = true;
      shape.activation = ModelShape::Activation::Gelu;
      checkAll(shape, options);
    }
  StepOptions options;
  options.split = options.documents = options.ignoredLabels = true;
  ModelShape shape;
  shape.layers = 1;
  shape.parallel = shape.qkNorm = shape.fusedGateUp = shape.fusedQkv = true;
  shape.heads = 6;
  shape.kvHeads = 2;
  checkAll(shape, options);
  check(shape, {2, 2, 2}, options);
}

// In exact arithmetic the casts do nothing: that the partition is right and well-typed where activations are narrow.
TEST(Partition, ReducedPrecision) {
  for (int64_t kvHeads : {1, 2, 4}) {
    StepOptions options;
    options.computeType = "bf16";
    ModelShape shape;
    shape.kvHeads = kvHeads;
    shape.vocabulary = 17;
    checkAll(shape, options);
    shape.parallel = shape.bias = shape.qkNorm = true;
    checkAll(shape, options);
    shape.heads = kvHeads;
    shape.layerNorm = shape.tied = shape.fusedQkv = shape.positionTable = true;
    checkAll(shape, options);
  }
}

TEST(Partition, LogitsOfTheForwardTask) {
  StepOptions options;
  options.forward = true;
  ModelShape shape;
  shape.vocabulary = 17;
  checkAll(shape, options);
}

TEST(Partition, DataParallel) {
  for (const Layout &layout :
       {Layout{1, 1, 2}, Layout{2, 1, 2}, Layout{2, 2, 2}, Layout{2, 2, 2, true}, Layout{1, 2, 4}}) {
    ModelShape shape;
    check(shape, layout);
    shape.batch = 2;
    shape.layerNorm = shape.bias = shape.tied = shape.fusedQkv = shape.positionTable = true;
    shape.kvHeads = 4;
    StepOptions options;
    options.documents = options.ignoredLabels = true;
    check(shape, layout, options);
  }
}

} // namespace
