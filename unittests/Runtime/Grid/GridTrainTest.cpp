//===- GridTrainTest.cpp - training over a grid of ranks ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GridRunOptions.h"
#include "drover/rt/npy.h"
#include "drover/rt/safetensors.h"
#include <cmath>
#include <nlohmann/json.hpp>

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

/// Sets a variable of the environment for as long as it lives.
class Variable {
public:
  Variable(const char *name, const char *value) : name(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name); }

private:
  const char *name;
};

/// Keeps progress lines off the test's output.
class QuietStderr {
public:
  QuietStderr() { ::testing::internal::CaptureStderr(); }
  ~QuietStderr() { ::testing::internal::GetCapturedStderr(); }
};

GridOptions layout(int64_t tp, int64_t cp, int64_t pp, int64_t dp, int64_t chunks = 1) {
  GridOptions options;
  options.plan.tp = tp;
  options.plan.cp = cp;
  options.plan.pp = pp;
  options.plan.dp = dp;
  options.plan.chunks = chunks;
  return options;
}

using Tensors = std::map<std::string, std::vector<float>>;

Tensors readTensors(const std::string &path) {
  SafetensorsFile file(path);
  Tensors tensors;
  for (const auto &[name, tensor] : file.tensors()) {
    std::vector<float> values(tensor.bytes / 4);
    std::memcpy(values.data(), tensor.data, tensor.bytes);
    tensors[name] = values;
  }
  return tensors;
}

struct TrainingRun {
  std::vector<nlohmann::json> rows;
  nlohmann::json last;
  Tensors weights, gradients;
  std::string weightBytes;
};

class GridTrainTest : public ::testing::Test {
protected:
  GridTrainTest() : options(gridRunOptions(folder)) {
    options.steps = 4;
    options.minLearningRate = 0.01;
    options.weightDecay = 0.2;
    options.ignoreLabels = {3}; // ranks count different numbers of labels
    options.saveGradients = folder.path("gradients.safetensors");
  }

  TrainingRun run(const GridProgram &toy) {
    Program program(toy.program());
    {
      QuietStderr quiet;
      train(program, options);
    }
    TrainingRun result;
    std::ifstream log(options.log);
    for (std::string line; std::getline(log, line);) {
      result.last = nlohmann::json::parse(line);
      if (result.last.contains("loss"))
        result.rows.push_back(result.last);
    }
    result.weights = readTensors(options.saveWeights);
    result.gradients = readTensors(options.saveGradients);
    result.weightBytes = readFile(options.saveWeights);
    return result;
  }
  TrainingRun run(const GridOptions &grid) { return run(GridProgram(grid)); }

  TemporaryFolder folder;
  TrainOptions options;
};

double norm(const std::vector<float> &values) {
  double sum = 0;
  for (float value : values)
    sum += double(value) * value;
  return std::sqrt(sum);
}

double worstDistance(const Tensors &a, const Tensors &b) {
  double worst = a.size() == b.size() ? 0 : 1e9;
  for (const auto &[name, values] : b) {
    std::vector<float> difference = values;
    for (size_t i = 0; i < values.size(); ++i)
      difference[i] -= a.at(name).at(i);
    worst = std::max(worst, norm(difference) / norm(values));
  }
  return worst;
}

/// The largest disagreement as a multiple of what DESIGN section 4, Equality, allows.
double disagreement(const TrainingRun &a, const TrainingRun &b) {
  double worst = a.rows.size() == b.rows.size() ? 0 : 1e9;
  for (size_t i = 0; i < std::min(a.rows.size(), b.rows.size()); ++i)
    for (const char *key : {"loss", "grad_norm"})
      worst = std::max(worst, std::abs(a.rows[i][key].get<double>() / b.rows[i][key].get<double>() - 1) / 1e-5);
  return std::max({worst, worstDistance(a.weights, b.weights) / 2e-5, worstDistance(a.gradients, b.gradients) / 2e-5});
}

TEST_F(GridTrainTest, EveryAxisAgreesWithOneRank) {
  TrainingRun one = run(layout(1, 1, 1, 1));
  ASSERT_EQ(one.rows.size(), 4u);
  EXPECT_LT(one.rows.back()["loss"].get<double>(), one.rows.front()["loss"].get<double>());
  for (const GridOptions &grid : {layout(1, 1, 1, 2), layout(1, 2, 1, 1), layout(2, 1, 1, 1), layout(1, 1, 2, 1),
                                  layout(1, 1, 2, 1, 2), layout(2, 2, 2, 2), layout(2, 1, 4, 1)}) {
    const drover::schedule::Plan &plan = grid.plan;
    EXPECT_LT(disagreement(run(grid), one), 1) << "tp " << plan.tp << ", cp " << plan.cp << ", pp " << plan.pp
                                               << ", dp " << plan.dp << ", chunks " << plan.chunks;
  }
}

TEST_F(GridTrainTest, ZeroStagesAndReductionsAgree) {
  TrainingRun one = run(layout(1, 1, 1, 1));
  for (int64_t zero = 0; zero < 4; ++zero)
    for (const char *every : {"step", "run"}) {
      GridOptions grid = layout(1, 1, 2, 2);
      grid.plan.zero = zero;
      grid.plan.reduceEvery = zero == 0 ? "step" : every;
      EXPECT_LT(disagreement(run(grid), one), 1) << "zero " << zero << ", every " << every;
    }
}

TEST_F(GridTrainTest, TimingDoesNotMatter) {
  GridOptions grid = layout(2, 1, 2, 2, 2);
  grid.plan.zero = 3;
  std::string normal = run(grid).weightBytes;
  for (const char *timing : {"early", "late"}) {
    Variable variable("DROVER_RT_TIMING", timing);
    EXPECT_EQ(run(grid).weightBytes, normal) << timing;
  }
}

TEST_F(GridTrainTest, SlotsStayWithinTheirBounds) {
  for (const char *guard : {"DROVER_RT_CANARIES", "DROVER_RT_POISON"})
    for (int64_t zero = 0; zero < 4; ++zero) {
      Variable on(guard, "1");
      SCOPED_TRACE(guard + std::to_string(zero));
      GridOptions grid = layout(2, 1, 2, 2, 2);
      grid.plan.zero = zero;
      EXPECT_EQ(run(grid).rows.size(), 4u);
    }
}

/// Whether a program shows that something is missing: by an error, or by other values.
template <typename Fn> bool isSeen(Fn &&fn, const std::string &expected) {
  try {
    return fn() != expected;
  } catch (const Error &) {
    return true;
  }
}

/// What is in flight under late timing gives other values, or none, where it is not waited for. Whether a slot that a
/// send still reads is overwritten too early depends on the receiver: that is for the proof to see.
TEST_F(GridTrainTest, RemovingAnyWaitIsSeen) {
  Variable late("DROVER_RT_TIMING", "late"), poison("DROVER_RT_POISON", "1");
  options.steps = 2;
  options.deadlines = {2, 2, 2};
  GridOptions grid = layout(1, 1, 2, 2);
  grid.plan.zero = 3;
  std::string expected = run(grid).weightBytes;
  GridProgram toy(grid);
  int64_t ran = 0;
  std::set<std::string> seen;
  for (drover::schedule::Stage &stage : toy.step.batches[0].stages)
    for (uint64_t i = 0; i < stage.numActions; ++i)
      for (uint32_t wait = 0; wait < toy.step.actions[stage.firstAction + i].num_waits; ++wait) {
        drover_action &action = toy.step.actions[stage.firstAction + i];
        uint32_t &dropped = stage.waits[action.first_wait + wait];
        uint32_t &last = stage.waits[action.first_wait + action.num_waits - 1];
        uint8_t kind = toy.step.actions[stage.firstAction + dropped].kind;
        if (kind != DROVER_RECEIVE && kind != DROVER_GATHER && kind != DROVER_REDUCE)
          continue;
        std::swap(last, dropped);
        --action.num_waits;
        toy.finish();
        ++ran;
        EXPECT_TRUE(isSeen([&] { return run(toy).weightBytes; }, expected)) << "action " << i << ", wait " << wait;
        seen.insert(drover_action_name(kind));
        ++action.num_waits;
        std::swap(last, dropped);
      }
  EXPECT_GE(ran, 8);
  EXPECT_EQ(seen, (std::set<std::string>{"gather", "receive", "reduce"}));
}

TEST_F(GridTrainTest, ADeadlineNamesWhoIsMissing) {
  GridProgram toy(layout(1, 1, 2, 1));
  drover::schedule::Stage &stage = toy.step.batches[0].stages[0];
  drover_action *begin = toy.step.actions.data() + stage.firstAction, *end = begin + stage.numActions;
  drover_action *send =
      std::find_if(begin, end, [](const drover_action &action) { return action.kind == DROVER_SEND; });
  ASSERT_NE(send, end);
  send->kind = DROVER_FREE;
  send->binding = 0;
  toy.finish();
  options.deadlines = {2, 1, 1};
  try {
    run(toy);
    ADD_FAILURE() << "expected an error";
  } catch (const Error &error) {
    std::string text = error.what();
    // Either end may be the first whose time is up: stage 1 lacks x, stage 0 then its gradient.
    EXPECT_NE(text.find("receive"), std::string::npos) << text;
    EXPECT_NE(text.find("(edge "), std::string::npos) << text;
    EXPECT_NE(text.find(", without rank "), std::string::npos) << text;
    EXPECT_NE(text.find("last actions in"), std::string::npos) << text;
  }
  nlohmann::json dump = nlohmann::json::parse(readFile(folder.path("flight.0.json")));
  EXPECT_EQ(dump["reason"], "error");
  EXPECT_EQ(dump["records"].back()["state"], "started");
}

TEST_F(GridTrainTest, OneTraceAndOneLogOfAllRanks) {
  options.trace = folder.path("trace.json");
  options.logAllRanks = true;
  TrainingRun all = run(layout(2, 1, 2, 2));
  nlohmann::json trace = nlohmann::json::parse(readFile(options.trace));
  std::set<int> ranks, tracks;
  for (const auto &event : trace["traceEvents"]) {
    ranks.insert(event["pid"].get<int>());
    if (event.contains("tid"))
      tracks.insert(event["tid"].get<int>());
  }
  EXPECT_EQ(ranks.size(), 8u);
  EXPECT_TRUE(tracks.count(TraceWriter::Operations + DROVER_COMM_TP));
  EXPECT_TRUE(tracks.count(TraceWriter::Actions + DROVER_STREAM_REDUCE));
  EXPECT_TRUE(std::filesystem::exists(folder.path("log.7.jsonl")));
  std::set<std::string> names;
  for (const auto &entry : all.last["communication"])
    names.insert(entry["name"].get<std::string>() + " " + entry["kind"].get<std::string>());
  EXPECT_TRUE(names.count("tp all_reduce"));
  EXPECT_TRUE(names.count("fsdp reduce_scatter"));
}

TEST_F(GridTrainTest, RandomWeightsDoNotDependOnTheLayout) {
  options.steps = 1;
  options.learningRate = options.minLearningRate = options.weightDecay = 0;
  std::string one = run(layout(1, 1, 1, 1)).weightBytes;
  EXPECT_EQ(run(layout(2, 2, 2, 2)).weightBytes, one);
  options.init = folder.write("start.safetensors", one);
  EXPECT_EQ(run(layout(2, 1, 4, 1)).weightBytes, one);
}

TEST_F(GridTrainTest, DumpsOfLayoutsHaveEqualNamesAndValues) {
  options.dump = "(forward|backward)\\.layer\\.1|gradient\\.layer|parameter\\.table";
  options.dumpStep = 2;
  options.dumpFile = folder.path("dump.safetensors");
  run(layout(1, 1, 1, 1));
  Tensors one = readTensors(options.dumpFile);
  EXPECT_TRUE(one.count("forward.layer.1.layer.0.sequence.15"));
  EXPECT_TRUE(one.count("backward.layer.1.layer_grad.0.sequence.0"));
  EXPECT_TRUE(one.count("gradient.layer.2.scale"));
  EXPECT_TRUE(one.count("parameter.table"));
  EXPECT_FALSE(one.count("parameter.layer.0.in"));
  for (const GridOptions &grid : {layout(1, 1, 1, 2), layout(2, 1, 2, 2)}) {
    run(grid);
    EXPECT_LT(worstDistance(readTensors(options.dumpFile), one), 2e-5);
  }
  options.dump = "no such name";
  EXPECT_THROW(run(layout(1, 1, 2, 1)), Error);
}

TEST_F(GridTrainTest, NonfiniteGradientsNameTheParameterAndARank) {
  options.learningRate = 1e30;
  options.weightDecay = 0;
  options.gradientClip = 0;
  try {
    run(layout(1, 1, 2, 2));
    ADD_FAILURE() << "expected an error";
  } catch (const Error &error) {
    std::string text = error.what();
    EXPECT_NE(text.find("the gradient norm is not finite, first in parameter '"), std::string::npos) << text;
    EXPECT_NE(text.find("' on rank "), std::string::npos) << text;
  }
}

TEST_F(GridTrainTest, ForwardAgreesWithOneRank) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 16; ++i)
    ids.push_back(i * 3 % gridVocabulary);
  auto logits = [&](GridOptions grid, int64_t rows) {
    grid.train = false;
    GridProgram toy(grid);
    Program program(toy.program());
    ForwardOptions forwardOptions;
    forwardOptions.init = "random";
    forwardOptions.outputDir = folder.path("out");
    forwardOptions.threads = 1;
    forwardOptions.flightRecorder = folder.path("flight.json");
    writeNpy(folder.path("ids.npy"), DROVER_I64, {rows, gridLength}, ids.data());
    forwardOptions.inputs = {{"input_ids", folder.path("ids.npy")}};
    forward(program, forwardOptions);
    NpyFile file(folder.path("out/logits.npy"));
    EXPECT_EQ(file.shape(), (std::vector<int64_t>{rows, gridLength, gridVocabulary}));
    std::vector<float> values(size_t(rows * gridLength * gridVocabulary));
    file.read(DROVER_F32, values.data());
    return values;
  };
  std::vector<float> one = logits(layout(1, 1, 1, 1), 2);
  for (const GridOptions &grid : {layout(2, 1, 1, 1), layout(1, 1, 2, 1), layout(1, 1, 2, 2)}) {
    std::vector<float> values = logits(grid, 2);
    for (size_t i = 0; i < one.size(); ++i)
      EXPECT_NEAR(values[i], one[i], 1e-5);
  }
  // Each dp rank its own sequences, and two chunks of each.
  std::vector<float> four = logits(layout(1, 2, 1, 1), 4), split = logits(layout(1, 1, 1, 2), 4);
  for (size_t i = 0; i < four.size(); ++i) {
    EXPECT_NEAR(split[i], four[i], 1e-5);
    if (i < one.size())
      EXPECT_NEAR(four[i], one[i], 1e-5);
  }
}

} // namespace
