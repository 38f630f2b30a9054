//===- ProjectionTest.cpp -------------------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/Projection.h"
#include "drover/Planner/PublishedRuns.h"
#include "gtest/gtest.h"

using namespace drover;
using namespace drover::planner;

namespace {
cluster::Cluster smallCluster() {
  cluster::Cluster cluster;
  cluster.name = "small";
  cluster::Device &device = cluster.device;
  device.name = "device";
  device.peak = {1e13, 1e15, 1e15, 2e15};
  device.memoryBandwidth = 3e12;
  device.sms = 128;
  device.spread = 0.01;
  device.contention = 0.1;
  device.launchSeconds = 4e-6;
  device.attention = {{"flash2", 0.4, 0.7, 400, 1.3, 64}, {"unfused", 0.2, 0.9, 0, 1, 16}};
  cluster::Level server, across;
  server.name = "server", server.members = 8, server.bandwidth = 450e9, server.latency = 1e-6;
  across.name = "cluster", across.members = 64, across.bandwidth = 50e9, across.latency = 3e-6;
  cluster.levels = {server, across};
  return cluster;
}

cost::ModelShape smallModel() {
  cost::ModelShape shape;
  shape.layers = 32, shape.hidden = 4096, shape.heads = 32, shape.kvHeads = 8, shape.headSize = 128;
  shape.ffnHidden = 14336, shape.vocabulary = 128256, shape.gated = true;
  return shape;
}

Layout layoutOf(int64_t tp, int64_t cp, int64_t pp, int64_t dp, int64_t batch) {
  Layout layout;
  layout.plan.tp = tp, layout.plan.cp = cp, layout.plan.pp = pp, layout.plan.dp = dp;
  layout.plan.microbatch = 1, layout.plan.sequenceLength = 4096, layout.plan.globalBatches = {batch};
  return layout;
}

TEST(Projection, partsAddUpToTheStep) {
  cluster::Cluster cluster = smallCluster();
  for (Layout layout : {layoutOf(1, 1, 1, 8, 64), layoutOf(4, 2, 4, 2, 32), layoutOf(8, 1, 8, 4, 64)})
    for (int64_t zero : {0, 1, 2, 3})
      for (bool fine : {false, true}) {
        layout.plan.zero = zero;
        Software software;
        software.fineBuckets = fine;
        schedule::Result<Projection> projection = project(smallModel(), cluster, layout, software);
        ASSERT_TRUE(projection) << projection.error();
        EXPECT_NEAR(projection->breakdown.total(), projection->stepSeconds, 1e-9 * projection->stepSeconds);
        for (auto [name, seconds] : partsOf(projection->breakdown))
          EXPECT_GE(seconds, -1e-9) << name;
        EXPECT_LT(projection->mfu(), 1);
        EXPECT_GE(projection->hfu(), 0.99 * projection->mfu());
      }
}

// As `drover check` has it: (PP - 1) / (V M), though the head makes the last stage longer.
TEST(Projection, bubbleRatioIsOfTheScheduleAlone) {
  Layout layout = layoutOf(1, 1, 4, 2, 16);
  layout.plan.chunks = 2;
  schedule::Result<Projection> projection = project(smallModel(), smallCluster(), layout, {});
  ASSERT_TRUE(projection) << projection.error();
  EXPECT_DOUBLE_EQ(projection->bubbleRatio, 3.0 / 16);
  EXPECT_GT(projection->breakdown.bubble, 0);
}

// Documents make attention cheaper, and uneven over CP and DP.
TEST(Projection, documentsAreFewerPairsUnevenlySpread) {
  Layout layout = layoutOf(1, 4, 1, 8, 64);
  cluster::Cluster cluster = smallCluster();
  schedule::Result<Projection> whole = project(smallModel(), cluster, layout);
  auto with = [&](double mean, double deviation) {
    Software software;
    cost::DocumentLengths lengths;
    lengths.mean = mean, lengths.deviation = deviation;
    software.documents = std::make_shared<cost::DocumentLoads>(lengths);
    return project(smallModel(), cluster, layout, software);
  };
  schedule::Result<Projection> even = with(1024, 0), uneven = with(1024, 1);
  ASSERT_TRUE(whole && even && uneven);
  EXPECT_LT(even->breakdown.attention, whole->breakdown.attention);
  EXPECT_LT(even->stepSeconds, whole->stepSeconds);
  // The same work, without what waits.
  double slowest = whole->breakdown.imbalance / (whole->stepSeconds - whole->breakdown.imbalance);
  EXPECT_GT(uneven->breakdown.imbalance, 1.5 * slowest * uneven->stepSeconds);
  EXPECT_NEAR(uneven->breakdown.total(), uneven->stepSeconds, 1e-9 * uneven->stepSeconds);
  EXPECT_LT(even->hardwareFlops, whole->hardwareFlops);
}

TEST(Projection, everyReductionOfAStepCounts) {
  Layout layout = layoutOf(1, 1, 4, 16, 256);
  layout.plan.zero = 2, layout.plan.chunks = 2, layout.plan.run = {4};
  schedule::Result<Projection> once = project(smallModel(), smallCluster(), layout);
  layout.plan.reduceEvery = "run"; // four runs of four microbatches
  schedule::Result<Projection> fourTimes = project(smallModel(), smallCluster(), layout);
  ASSERT_TRUE(once && fourTimes);
  EXPECT_GT(fourTimes->breakdown.dpExposed, 1.5 * once->breakdown.dpExposed);
  Software software; // beside nothing
  software.dpOverlap = Software::DpOverlap::None;
  schedule::Result<Projection> fourAlone = project(smallModel(), smallCluster(), layout, software);
  layout.plan.reduceEvery = "step";
  schedule::Result<Projection> onceAlone = project(smallModel(), smallCluster(), layout, software);
  ASSERT_TRUE(onceAlone && fourAlone);
  // A gather in bf16 and a reduction in f32 against a gather and four.
  EXPECT_NEAR(fourAlone->breakdown.dpExposed / onceAlone->breakdown.dpExposed, 3, 0.05);
}

TEST(Projection, recomputeShowsInHardwareFlopsOnly) {
  Layout layout = layoutOf(1, 1, 1, 8, 64);
  schedule::Result<Projection> none = project(smallModel(), smallCluster(), layout);
  layout.plan.recompute = "full";
  schedule::Result<Projection> full = project(smallModel(), smallCluster(), layout);
  ASSERT_TRUE(none && full);
  EXPECT_DOUBLE_EQ(none->causalFlops, full->causalFlops);
  EXPECT_NEAR(none->hardwareFlops / none->causalFlops, 1, 1e-9);
  EXPECT_GT(full->hardwareFlops, 1.2 * none->hardwareFlops);
  EXPECT_GT(full->stepSeconds, 1.15 * none->stepSeconds);
}

TEST(Projection, errors) {
  cost::ModelShape shape = smallModel();
  shape.kvHeads = 5;
  EXPECT_EQ(project(shape, smallCluster(), layoutOf(1, 1, 1, 8, 64)).error(),
            "the model's kv heads (5) do not divide its heads (32)");
  shape.kvHeads = 0;
  EXPECT_EQ(project(shape, smallCluster(), layoutOf(1, 1, 1, 8, 64)).error(),
            "the model's number of kv heads is 0: expected a positive one");
  Software software;
  software.attention = "triton";
  EXPECT_EQ(project(smallModel(), smallCluster(), layoutOf(1, 1, 1, 8, 64), software).error(),
            "the device 'device' lists no rates for the attention kernel 'triton'");
  Layout layout = layoutOf(1, 1, 1, 8, 64);
  layout.plan.sequenceLength = 0;
  EXPECT_EQ(project(smallModel(), smallCluster(), layout).error(),
            "a projection needs the microbatch, the sequence length and the global batch");
}

TEST(Projection, embeddingAndHeadCountAsALayerWhereThatIsEven) {
  schedule::Plan plan;
  plan.pp = 16, plan.chunks = 8;
  cost::ModelShape shape = smallModel();
  shape.layers = 126;
  std::vector<int64_t> layers = layersOfChunks(shape, plan);
  EXPECT_EQ(layers.size(), 128u);
  EXPECT_EQ(layers.front(), 0);
  EXPECT_EQ(layers[1], 1);
  EXPECT_EQ(layers.back(), 0);
}

const char *const kRow =
    "id,layers,hidden,heads,kv_heads,ffn_hidden,gated_mlp,vocab,seq_len,global_batch_seqs,micro_batch,gpus,gpu_type,tp,"
    "precision,step_time_s,source,notes\n";

TEST(PublishedRuns, readsARow) {
  auto table = parseTable(std::string(kRow) +
                          "a,32,4096,32,8,14336,y,128256,8192,128.0,1,8,G,2,bf16,12.5,\"org/repo x @ 1\",\"a, b\"\n");
  ASSERT_TRUE(table) << table.error();
  schedule::Result<PublishedRun> run = readRun(table->front());
  ASSERT_TRUE(run) << run.error();
  EXPECT_EQ(run->layout.plan.dp, 4);
  EXPECT_EQ(run->stepSeconds, 12.5);
  EXPECT_EQ(originOf(run->source), "org/repo");
  EXPECT_EQ(originOf("arXiv 2205.05198 Table 5"), "arXiv 2205.05198");
}

const char *const kFields = "32,4096,32,8,14336,y,128256,8192,128,1,8,G,2,bf16,";

PublishedRun runOf(const std::string &columns, const std::string &values, const std::string &notes = "") {
  std::string header = kRow;
  header.insert(header.find('\n'), "," + columns);
  schedule::Result<PublishedRun> run =
      readRun(parseTable(header + "a," + kFields + ",s," + notes + "," + values)->front());
  EXPECT_TRUE(run) << run.error();
  return run ? *run : PublishedRun();
}

TEST(PublishedRuns, aStepsTimeFollowsFromTokensASecond) {
  EXPECT_DOUBLE_EQ(runOf("tok_s_gpu", "10000").stepSeconds, 128 * 8192 / (8 * 10000.));
  PublishedRun none = runOf("tok_s_gpu", "");
  EXPECT_EQ(none.stepSeconds, 0);
  EXPECT_EQ(none.noSeconds, "no step time, no tokens a second and no TFLOP/s");
}

TEST(PublishedRuns, aPeakIsInTheUnitThatTheRowNames) {
  EXPECT_DOUBLE_EQ(runOf("peak_mem_gb", "60").peakBytes, 60e9);
  EXPECT_DOUBLE_EQ(runOf("peak_mem_gb", "60", "max allocated GiB").peakBytes, 60. * 1024 * 1024 * 1024);
  PublishedRun offloaded = runOf("peak_mem_gb", "60", "activation offload ratio alpha=0.5");
  EXPECT_EQ(offloaded.peakBytes, 0);
  EXPECT_EQ(offloaded.noPeak, "activations are kept in the host's memory");
  EXPECT_GT(runOf("peak_mem_gb", "60", "activation offload ratio alpha=0.00").peakBytes, 0);
}

TEST(PublishedRuns, memoryIsThatOfAPlanButForWhatItsSoftwareDoes) {
  PublishedRun run = runOf("gradient_bytes,fsdp_or_zero,sequence_parallel,elementwise", "4,dist-opt,y,fused");
  schedule::Result<std::vector<StageMemory>> memory = memoryOf(run);
  ASSERT_TRUE(memory) << memory.error();
  ASSERT_EQ(memory->size(), 1u);
  const StageMemory &held = memory->front();
  auto parameters = static_cast<double>(run.shape.parameters()) / 2; // TP 2
  EXPECT_NEAR(held.weights / (2 * parameters), 1, 0.01);
  EXPECT_NEAR(held.gradients / (4 * parameters), 1, 0.01) << "reduced where they were summed up";
  EXPECT_NEAR(held.optimizer / (12 * parameters / 4), 1, 0.01) << "over DP 4";
  auto heldBy = [](const PublishedRun &other) { return memoryOf(other)->front(); };
  PublishedRun halved = run;
  halved.software.gradientBytes = 2;
  EXPECT_DOUBLE_EQ(heldBy(halved).gradients, held.gradients / 2);
  PublishedRun fused = run;
  fused.software.fusedLoss = true; // 4 + 2 bytes less a logit of TP 2
  EXPECT_NEAR(held.workspace - heldBy(fused).workspace, 6. * 8192 * 128256 / 2, 0.3e9);
  PublishedRun compiled = run;
  compiled.compiled = true;
  EXPECT_LT(heldBy(compiled).stash, held.stash);
  PublishedRun whole = run;
  whole.software.sequenceParallel = false;
  EXPECT_GT(heldBy(whole).stash, held.stash);
  PublishedRun recomputed = run;
  recomputed.software.recompute = cost::Recompute::Layers;
  EXPECT_LT(heldBy(recomputed).stash, held.stash / 3);
  PublishedRun sharded = run; // gathered layer by layer
  sharded.layout.plan.zero = 3;
  EXPECT_EQ(heldBy(sharded).weights, 0);
  EXPECT_LT(heldBy(sharded).gathered, held.weights / 4);
}

TEST(PublishedRuns, errors) {
  auto faultOf = [](const std::string &line) { return readRun(parseTable(std::string(kRow) + line)->front()).error(); };
  EXPECT_EQ(faultOf("a,x,4096,32,8,14336,y,128256,8192,128,1,8,G,2,bf16,12.5,s,"),
            "column layers is 'x': expected a number");
  EXPECT_EQ(faultOf("a,32,4096,32,8,14336,y,128256,8192,128,1,9,G,2,bf16,12.5,s,"),
            "9 GPUs are not a multiple of TP x CP x PP (2)");
  EXPECT_EQ(faultOf("a,32,4096,32,8,14336,y,128256,8192,128,1,8,G,2,int8,12.5,s,"),
            "precision 'int8': expected bf16, fp16 or fp8");
  EXPECT_EQ(faultOf("a,32,4096,32,8,14336,y,128256,8192,128,1,8,G,2,bf16,x,s,"),
            "column step_time_s is 'x': expected a number");
  EXPECT_EQ(faultOf("a,32,4096,32,8,14336,y,128256,8192,128,1,8,G,2,bf16,1,s,LoRA"), "frozen weights (LoRA)");
  EXPECT_EQ(faultOf("a,32,4096,32,8,14336,?,128256,8192,128,1,8,G,2,bf16,1,s,"),
            "column gated_mlp is '?': expected one of y, n");
  EXPECT_EQ(faultOf("a,32,4096,32,8,14336,y,128256,8192,128,1,8,G,2,bf16,-1,s,"),
            "column step_time_s is '-1': expected a number above 0");
  auto faultOfColumn = [](const std::string &column, const std::string &value) {
    std::string table = kRow;
    table.insert(table.find('\n'), "," + column);
    return readRun(parseTable(table + "a,32,4096,32,8,14336,y,128256,8192,128,1,8,G,2,bf16,1,s,," + value)->front())
        .error();
  };
  EXPECT_EQ(faultOfColumn("attention", "zebra"),
            "column attention is 'zebra': expected one of flash3, flash2, triton, unfused, fused (flash3 or cuDNN)");
  EXPECT_EQ(faultOfColumn("tp_overlap", "maybe"), "column tp_overlap is 'maybe': expected one of y, n");
  EXPECT_EQ(faultOfColumn("dp_overlap", "q"), "column dp_overlap is 'q': expected one of y, n, gradients only");
  EXPECT_EQ(faultOfColumn("elementwise", "x"), "column elementwise is 'x': expected one of fused, eager");
  EXPECT_EQ(faultOfColumn("gradient_bytes", "3"), "column gradient_bytes is '3': expected 2 or 4");
  EXPECT_EQ(faultOfColumn("fsdp_or_zero", "zebra"),
            "column fsdp_or_zero is 'zebra': expected one of none, DDP, dist-opt, ZeRO, FSDP, HSDP in it");
  EXPECT_EQ(faultOfColumn("peak_mem_gb", "0"), "column peak_mem_gb is '0': expected a number above 0");
  EXPECT_EQ(faultOf("a,1e9,4096,32,8,14336,y,128256,8192,128,1,8,G,2,bf16,1,s,"),
            "column layers is '1e9': expected up to 10000");
  EXPECT_EQ(faultOf("a,32,4097,32,8,14336,y,128256,8192,128,1,8,G,2,bf16,1,s,"),
            "column hidden is '4097': expected a multiple of the 32 heads");
  EXPECT_EQ(faultOfColumn("dp", "2"), "column dp is 2: 8 GPUs by TP x CP x PP (2) leave 4");
  EXPECT_EQ(parseTable("id,a\n1\n").error(), "row 1 has 1 fields: expected 2");
  EXPECT_EQ(parseTable("id,a\n1,\"x\n").error(), "a quoted field does not end");
}
} // namespace
