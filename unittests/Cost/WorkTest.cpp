//===- WorkTest.cpp -------------------------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Work of bodies against `drover check --task=train --compute-dtype=bf16 --json` of models/*.json: what it printed for
// these layouts stands here, exactly.
#include "drover/Cost/Work.h"
#include "gtest/gtest.h"

using namespace drover::cost;
using drover::cluster::Axis;

namespace {
ModelShape llama8b() {
  ModelShape shape;
  shape.layers = 32, shape.hidden = 4096, shape.heads = 32, shape.kvHeads = 8, shape.headSize = 128;
  shape.ffnHidden = 14336, shape.vocabulary = 128256, shape.gated = true;
  return shape;
}

ModelShape gpt2() {
  ModelShape shape;
  shape.layers = 12, shape.hidden = 768, shape.heads = 12, shape.kvHeads = 12, shape.headSize = 64;
  shape.ffnHidden = 3072, shape.vocabulary = 50257, shape.positionRows = 1024;
  shape.tied = shape.layerNorm = shape.biases = true;
  return shape;
}

struct Expected {
  double flops, tpGather, tpScatter, cpGather, cpScatter; // a rank's, of one microbatch
};

void expectWork(ModelShape shape, int64_t sequence, int64_t tp, int64_t cp, Recompute recompute, Expected expected) {
  Sizes sizes;
  sizes.tp = tp, sizes.cp = cp, sizes.sequence = sequence, sizes.recompute = recompute;
  double flops = 0, tpGather = 0, tpScatter = 0, cpGather = 0, cpScatter = 0;
  for (BodyKind body : {BodyKind::Embed, BodyKind::Layer, BodyKind::Head})
    for (BodyPhase phase : {BodyPhase::Forward, BodyPhase::Backward}) {
      Work work = workOf(shape, sizes, body, phase);
      double times = body == BodyKind::Layer ? static_cast<double>(shape.layers) : 1;
      flops += times * flopsOf(work);
      tpGather += times * sentBytes(work, Axis::TP, CollectiveKind::AllGather, tp);
      tpScatter += times * sentBytes(work, Axis::TP, CollectiveKind::ReduceScatter, tp);
      cpGather += times * sentBytes(work, Axis::CP, CollectiveKind::AllGather, cp);
      cpScatter += times * sentBytes(work, Axis::CP, CollectiveKind::ReduceScatter, cp);
    }
  EXPECT_DOUBLE_EQ(flops, expected.flops);
  EXPECT_DOUBLE_EQ(tpGather, expected.tpGather);
  EXPECT_DOUBLE_EQ(tpScatter, expected.tpScatter);
  EXPECT_DOUBLE_EQ(cpGather, expected.cpGather);
  EXPECT_DOUBLE_EQ(cpScatter, expected.cpScatter);
}

TEST(Work, equalsTheProgramOfLlama) {
  ModelShape shape = llama8b();
  expectWork(shape, 8192, 1, 1, Recompute::None, {421651971833856.0, 0, 0, 0, 0});
  expectWork(shape, 8192, 4, 1, Recompute::None, {105412992958464.0, 9814671360, 6543114240, 0, 0});
  expectWork(shape, 8192, 4, 2, Recompute::None, {52706496479232.0, 4907335680, 3271557120, 268435456, 268435456});
  expectWork(shape, 8192, 4, 1, Recompute::Selective, {109811576340480.0, 9814671360, 6543114240, 0, 0});
  // FSDP spreads parameters over CP too: check's CP lines have a gather of 2007764992 and a reduction of
  // 4015529984 bytes in them, which are no body's.
  expectWork(shape, 8192, 4, 2, Recompute::Full,
             {66427037941760.0, 4907335680, 4076863488, 2276200448.0 - 2007764992, 4283965440.0 - 4015529984});
}

TEST(Work, equalsTheProgramOfGpt2) {
  ModelShape shape = gpt2();
  expectWork(shape, 1024, 1, 1, Recompute::None, {817019486208.0, 0, 0, 0, 0});
  expectWork(shape, 1024, 4, 1, Recompute::None, {204258410496.0, 88473600, 58982400, 0, 0});
  expectWork(shape, 1024, 4, 2, Recompute::None, {102129205248.0, 44236800, 29491200, 9437184, 9437184});
  expectWork(shape, 1024, 4, 1, Recompute::Selective, {209094967296.0, 88473600, 58982400, 0, 0});
  expectWork(shape, 1024, 4, 2, Recompute::Full,
             {128924516352.0, 44236800, 36569088, 41180160.0 - 31742976, 72923136.0 - 63485952});
}
} // namespace
