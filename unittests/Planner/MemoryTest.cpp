//===- MemoryTest.cpp - memory against the executable's -------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/Memory.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <numeric>

using namespace drover;
using namespace drover::planner;

namespace {

cost::ModelShape makeShape(int64_t layers, int64_t hidden, int64_t ffn, int64_t heads, int64_t kvHeads,
                           int64_t vocabulary) {
  cost::ModelShape shape;
  shape.layers = layers;
  shape.hidden = hidden;
  shape.heads = heads;
  shape.kvHeads = kvHeads;
  shape.headSize = hidden / heads;
  shape.ffnHidden = ffn;
  shape.vocabulary = vocabulary;
  return shape;
}

enum Model { kLlama, kGpt, k405B };
cost::ModelShape shapeOf(Model model) {
  if (model == kGpt) {
    cost::ModelShape shape = makeShape(8, 1024, 4096, 8, 8, 4096);
    shape.tied = shape.layerNorm = shape.biases = true;
    shape.positionRows = 8192;
    return shape;
  }
  cost::ModelShape shape =
      model == kLlama ? makeShape(8, 1024, 4096, 8, 4, 4096) : makeShape(126, 16384, 53248, 128, 8, 128256);
  shape.gated = true;
  return shape;
}

struct Case {
  const char *options;
  Model model;
  std::array<int64_t, 4> grid; // tp, cp, pp, dp
  int64_t chunks, microbatch, microbatches;
  std::vector<int64_t> run;
  const char *computeType, *recompute;
  int64_t zero;
  const char *reduceEvery;
  std::array<int64_t, 2> peaks; // bytes of the first and of the fullest stage, as `drover check --json` has them
  const char *layersPerChunk, *schedule;
  int64_t sequence;
};

schedule::Plan planOf(const Case &test, int64_t layers) {
  schedule::Plan plan;
  plan.tp = test.grid[0], plan.cp = test.grid[1], plan.pp = test.grid[2], plan.dp = test.grid[3];
  plan.chunks = test.chunks;
  plan.microbatch = test.microbatch;
  plan.sequenceLength = test.sequence;
  plan.globalBatches = {test.microbatches * test.microbatch * plan.dp};
  plan.run = test.run;
  plan.computeType = test.computeType;
  plan.recompute = test.recompute;
  plan.zero = test.zero;
  plan.reduceEvery = test.reduceEvery;
  plan.kind = schedule::parseScheduleKind(test.schedule);
  plan.layersPerChunk = *test.layersPerChunk ? *schedule::parseLayersPerChunk(test.layersPerChunk)
                                             : schedule::spreadLayers(layers, plan.pp * plan.chunks);
  return plan;
}

// Llama and GPT-2 shapes with layers of a small and 405B of its full size; `drover check MODEL --task=train` with the
// options.
const Case kCases[] = {
    {"one rank", kLlama, {1, 1, 1, 1}, 1, 1, 1, {}, "bf16", "none", 2, "step", {2682857664, 2682857664}, "", "", 1024},
    {"--tp=2", kLlama, {2, 1, 1, 1}, 1, 1, 1, {}, "bf16", "none", 2, "step", {1344743616, 1344743616}, "", "", 1024},
    {"--tp=4 --pp=2",
     kLlama,
     {4, 1, 2, 1},
     1,
     1,
     2,
     {},
     "bf16",
     "none",
     2,
     "step",
     {370917568, 370917568},
     "",
     "",
     1024},
    {"--cp=2 --pp=2 --chunks=2",
     kLlama,
     {1, 2, 2, 1},
     2,
     1,
     2,
     {},
     "bf16",
     "none",
     2,
     "step",
     {946061504, 946061504},
     "",
     "",
     1024},
    {"--tp=2 --cp=2 --dp=2",
     kLlama,
     {2, 2, 1, 2},
     1,
     1,
     1,
     {},
     "bf16",
     "none",
     2,
     "step",
     {739498176, 739498176},
     "",
     "",
     1024},
    {"--pp=4 --chunks=2 --dp=2 --zero=1 --global-batch=16",
     kLlama,
     {1, 1, 4, 2},
     2,
     1,
     8,
     {},
     "bf16",
     "none",
     1,
     "step",
     {843604160, 843604160},
     "",
     "",
     1024},
    {"--pp=4 --chunks=2 --dp=2 --zero=2 --global-batch=16",
     kLlama,
     {1, 1, 4, 2},
     2,
     1,
     8,
     {},
     "bf16",
     "none",
     2,
     "step",
     {843604160, 843604160},
     "",
     "",
     1024},
    {"--pp=4 --chunks=2 --dp=2 --zero=3 --global-batch=16 --run=4",
     kLlama,
     {1, 1, 4, 2},
     2,
     1,
     8,
     {4},
     "bf16",
     "none",
     3,
     "step",
     {843604160, 843604160},
     "",
     "",
     1024},
    {"--pp=2 --dp=2 --zero=0 --global-batch=16",
     kLlama,
     {1, 1, 2, 2},
     1,
     1,
     8,
     {},
     "bf16",
     "none",
     0,
     "step",
     {1464254656, 1464254656},
     "",
     "",
     1024},
    {"--pp=2 --recompute=full --global-batch=8",
     kLlama,
     {1, 1, 2, 1},
     1,
     1,
     8,
     {},
     "bf16",
     "full",
     2,
     "step",
     {1275289792, 1275289792},
     "",
     "",
     1024},
    {"--pp=2 --chunks=4 --recompute=selective --dp=2 --global-batch=16",
     kLlama,
     {1, 1, 2, 2},
     4,
     1,
     8,
     {},
     "bf16",
     "selective",
     2,
     "step",
     {1233305792, 1233305792},
     "",
     "",
     1024},
    {"--tp=2 --pp=2 --compute-dtype=f32",
     kLlama,
     {2, 1, 2, 1},
     1,
     1,
     2,
     {},
     "f32",
     "none",
     2,
     "step",
     {797212864, 797212864},
     "",
     "",
     1024},
    {"--pp=4 --chunks=2 --layers-per-chunk=0,2,1,1,1,1,2,0 --dp=2 --global-batch=16",
     kLlama,
     {1, 1, 4, 2},
     2,
     1,
     8,
     {},
     "bf16",
     "none",
     2,
     "step",
     {428110016, 1170854080},
     "0,2,1,1,1,1,2,0",
     "",
     1024},
    {"--microbatch=2 --dp=2 --global-batch=8",
     kLlama,
     {1, 1, 1, 2},
     1,
     2,
     2,
     {},
     "bf16",
     "none",
     2,
     "step",
     {2412542144, 2412542144},
     "",
     "",
     1024},
    {"--pp=4 --schedule=bfs --chunks=2 --global-batch=8",
     kLlama,
     {1, 1, 4, 1},
     2,
     1,
     8,
     {},
     "bf16",
     "none",
     2,
     "step",
     {1093312704, 1093312704},
     "",
     "bfs",
     1024},
    {"--tp=8 --pp=2",
     kLlama,
     {8, 1, 2, 1},
     1,
     1,
     2,
     {},
     "bf16",
     "none",
     2,
     "step",
     {200229056, 200229056},
     "",
     "",
     1024},
    {"--pp=2 --dp=4 --chunks=2 --reduce-every=run --run=2 --global-batch=16 --zero=3",
     kLlama,
     {1, 1, 2, 4},
     2,
     1,
     4,
     {2},
     "bf16",
     "none",
     3,
     "run",
     {864485568, 864485568},
     "",
     "",
     1024},
    {"--chunks=4 --dp=2",
     kLlama,
     {1, 1, 1, 2},
     4,
     1,
     1,
     {},
     "bf16",
     "none",
     2,
     "step",
     {1753700544, 1753700544},
     "",
     "",
     1024},
    {"--chunks=4 --dp=2 --zero=3 --recompute=full",
     kLlama,
     {1, 1, 1, 2},
     4,
     1,
     1,
     {},
     "bf16",
     "full",
     3,
     "step",
     {1476638912, 1476638912},
     "",
     "",
     1024},
    {"one rank", kGpt, {1, 1, 1, 1}, 1, 1, 1, {}, "bf16", "none", 2, "step", {2257727680, 2257727680}, "", "", 1024},
    {"--tp=2 --pp=2", kGpt, {2, 1, 2, 1}, 1, 1, 2, {}, "bf16", "none", 2, "step", {747974848, 747974848}, "", "", 1024},
    {"--pp=4 --dp=2 --global-batch=16",
     kGpt,
     {1, 1, 4, 2},
     1,
     1,
     8,
     {},
     "bf16",
     "none",
     2,
     "step",
     {735752384, 735752384},
     "",
     "",
     1024},
    {"--cp=2 --recompute=full",
     kGpt,
     {1, 2, 1, 1},
     1,
     1,
     1,
     {},
     "bf16",
     "full",
     2,
     "step",
     {1627365568, 1627365568},
     "",
     "",
     1024},
    {"--pp=2 --chunks=2 --dp=2 --zero=3 --global-batch=8",
     kGpt,
     {1, 1, 2, 2},
     2,
     1,
     4,
     {},
     "bf16",
     "none",
     3,
     "step",
     {1138843840, 1138843840},
     "",
     "",
     1024},
    {"--pp=4 --schedule=zb-h1 --global-batch=8",
     kLlama,
     {1, 1, 4, 1},
     1,
     1,
     8,
     {},
     "bf16",
     "none",
     2,
     "step",
     {946217152, 1080215744},
     "",
     "zb-h1",
     1024},
    {"--tp=2 --pp=2 --schedule=zb-h1 --recompute=full --global-batch=8",
     kLlama,
     {2, 1, 2, 1},
     1,
     1,
     8,
     {},
     "bf16",
     "full",
     2,
     "step",
     {731062464, 835922112},
     "",
     "zb-h1",
     1024},
    {"--pp=4 --dp=2 --schedule=zb-h1 --global-batch=16",
     kGpt,
     {1, 1, 4, 2},
     1,
     1,
     8,
     {},
     "bf16",
     "none",
     2,
     "step",
     {753578176, 753578176},
     "",
     "zb-h1",
     1024},
    {"--cp=2 --pp=2 --schedule=zb-h1 --recompute=selective --global-batch=4",
     kLlama,
     {1, 2, 2, 1},
     1,
     1,
     4,
     {},
     "bf16",
     "selective",
     2,
     "step",
     {1126338752, 1174583488},
     "",
     "zb-h1",
     1024},
    {"--tp=8 --pp=16 --chunks=8 --layers-per-chunk=0,1*126,0 --dp=128 --seq-len=8192 --global-batch=2048",
     k405B,
     {8, 1, 16, 128},
     8,
     1,
     16,
     {},
     "bf16",
     "none",
     2,
     "step",
     {49328582848, 55327752384},
     "0,1*126,0",
     "",
     8192},
    {"--tp=8 --cp=16 --pp=16 --chunks=8 --layers-per-chunk=0,1*126,0 --dp=8 --seq-len=131072 --global-batch=128",
     k405B,
     {8, 16, 16, 8},
     8,
     1,
     16,
     {},
     "bf16",
     "none",
     2,
     "step",
     {49328582848, 55327752384},
     "0,1*126,0",
     "",
     131072},
    {"--tp=8 --pp=16 --chunks=8 --dp=128 --seq-len=8192 --global-batch=2048 --zero=3",
     k405B,
     {8, 1, 16, 128},
     8,
     1,
     16,
     {},
     "bf16",
     "none",
     3,
     "step",
     {52190347456, 52190347456},
     "",
     "",
     8192},
    {"--tp=16 --pp=8 --chunks=4 --dp=128 --seq-len=8192 --global-batch=2048 --recompute=full",
     k405B,
     {16, 1, 8, 128},
     4,
     1,
     16,
     {},
     "bf16",
     "full",
     2,
     "step",
     {24579178688, 24579178688},
     "",
     "",
     8192},
    {"--tp=8 --pp=16 --dp=16 --seq-len=8192 --global-batch=512",
     k405B,
     {8, 1, 16, 16},
     1,
     1,
     32,
     {},
     "bf16",
     "none",
     2,
     "step",
     {71115735232, 71115735232},
     "",
     "",
     8192},
};

TEST(Memory, isTheExecutablesWithinTwoPercent) {
  for (const Case &test : kCases) {
    cost::ModelShape shape = shapeOf(test.model);
    schedule::Plan plan = planOf(test, shape.layers);
    schedule::Result<ReplayProgram> program = ReplayProgram::build(plan, test.microbatches, chunkShapeOf(shape, plan));
    ASSERT_TRUE(program) << program.error();
    std::vector<StageMemory> memory = memoryOf(shape, plan, *program);
    double most = 0;
    for (const StageMemory &stage : memory) {
      most = std::max(most, stage.total());
      double sum = 0;
      for (auto [name, bytes] : partsOf(stage))
        sum += bytes;
      EXPECT_DOUBLE_EQ(sum, stage.total());
    }
    auto first = static_cast<double>(test.peaks[0]), fullest = static_cast<double>(test.peaks[1]);
    EXPECT_NEAR(memory.front().total(), first, 0.02 * first) << test.options;
    EXPECT_NEAR(most, fullest, 0.02 * fullest) << test.options;
  }
}

TEST(Memory, lowerBoundIsBelowThePeakAndNearIt) {
  double nearest = 0;
  for (const Case &test : kCases) {
    cost::ModelShape shape = shapeOf(test.model);
    schedule::Plan plan = planOf(test, shape.layers);
    schedule::Result<std::vector<int64_t>> groups = schedule::groupsOf(plan, test.microbatches);
    ASSERT_TRUE(groups) << groups.error();
    double least = leastMemoryOf(shape, plan, *groups), peak = static_cast<double>(test.peaks[1]);
    EXPECT_LE(least, 1.0001 * peak) << test.options;
    nearest = std::max(nearest, least / peak);
  }
  EXPECT_GT(nearest, 0.85);
}

TEST(Memory, headsThatTpDoesNotDivideArePadded) {
  // DESIGN section 3: 6 query and 3 kv heads become 8 and 4 at TP2 and TP4.
  cost::ModelShape shape = makeShape(2, 384, 1024, 6, 3, 1000);
  EXPECT_EQ(localWidths(shape, 1).heads, 6);
  EXPECT_EQ(localWidths(shape, 2).heads, 4);
  EXPECT_EQ(localWidths(shape, 2).keyValue, 2 * 64);
  EXPECT_EQ(localWidths(shape, 4).heads, 2);
  EXPECT_EQ(localWidths(shape, 4).keyValue, 64);
  EXPECT_EQ(localWidths(shape, 3).vocabulary, 334);
}

} // namespace
