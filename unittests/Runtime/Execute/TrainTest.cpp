//===- TrainTest.cpp - training against a closed form ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "../TestFiles.h"
#include "../ToyProgram.h"
#include "drover/rt/data_order.h"
#include "drover/rt/executable.h"
#include "drover/rt/safetensors.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

constexpr int64_t V = 7, length = 4;

/// What a wrong implementation would do; the comparison must notice each.
enum class Mutation { None, DecayAfterUpdate, EpsBeforeBiasCorrection, EpsUnderRoot, MeanOfMeans, NormAfterClipping };

struct Reference {
  std::vector<double> losses, norms, rates;
  std::vector<double> table, bias, tableGradient, biasGradient; // gradients of step 1
};

struct Setting {
  int64_t steps = 12, globalBatch = 4, microbatchSize = 2, warmup = 3;
  double lr = 0.1, minLr = 0.01, weightDecay = 0.2, beta1 = 0.9, beta2 = 0.95, eps = 0.02, clip = 0.3;
  int64_t ignored = 3;
};

std::vector<int64_t> makeTokens() {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < 90; ++i)
    tokens.push_back((i * i + i / 5) % V);
  return tokens;
}

/// Softmax cross-entropy of one sequence, in double; gradients are sums times `seed`.
double backward(const std::vector<int64_t> &tokens, int64_t begin, const Setting &setting, double seed,
                const Reference &r, std::vector<double> &gt, std::vector<double> &gb) {
  double loss = 0;
  for (int64_t i = begin; i < begin + length; ++i) {
    int64_t label = tokens[i + 1];
    if (label == setting.ignored)
      continue;
    double p[V], sum = 0;
    for (int64_t v = 0; v < V; ++v)
      sum += p[v] = std::exp(r.table[tokens[i] * V + v] + r.bias[v]);
    for (int64_t v = 0; v < V; ++v) {
      double g = seed * (p[v] / sum - (v == label));
      gt[tokens[i] * V + v] += g;
      gb[v] += g;
    }
    loss -= std::log(p[label] / sum);
  }
  return loss;
}

void update(std::vector<double> &p, std::vector<double> &m, std::vector<double> &v, const std::vector<double> &g,
            const Setting &s, double lr, double decay, double clip, int64_t t, Mutation mutation) {
  double b1 = 1 - std::pow(s.beta1, t), b2 = 1 - std::pow(s.beta2, t);
  for (size_t i = 0; i < p.size(); ++i) {
    double c = clip * g[i];
    if (mutation != Mutation::DecayAfterUpdate)
      p[i] *= 1 - lr * decay;
    m[i] = s.beta1 * m[i] + (1 - s.beta1) * c;
    v[i] = s.beta2 * v[i] + (1 - s.beta2) * c * c;
    double root = mutation == Mutation::EpsUnderRoot              ? std::sqrt(v[i] / b2 + s.eps)
                  : mutation == Mutation::EpsBeforeBiasCorrection ? (std::sqrt(v[i]) + s.eps) / std::sqrt(b2)
                                                                  : std::sqrt(v[i] / b2) + s.eps;
    p[i] -= lr * m[i] / b1 / root;
    if (mutation == Mutation::DecayAfterUpdate)
      p[i] *= 1 - lr * decay;
  }
}

Reference simulate(const std::vector<double> &table, const std::vector<double> &bias, const Setting &s,
                   Mutation mutation = Mutation::None) {
  Reference r;
  r.table = table;
  r.bias = bias;
  std::vector<int64_t> tokens = makeTokens();
  int64_t sequences = (int64_t(tokens.size()) - 1) / length, consumed = 0;
  std::vector<double> mt(table.size()), vt(table.size()), mb(bias.size()), vb(bias.size());
  for (int64_t step = 1; step <= s.steps; ++step) {
    std::vector<double> gt(table.size()), gb(bias.size());
    auto begin = [&](int64_t i) { return (consumed + i) % sequences * length; };
    auto count = [&](int64_t first, int64_t last) {
      int64_t labels = 0;
      for (int64_t i = first; i < last; ++i)
        for (int64_t j = 0; j < length; ++j)
          labels += tokens[begin(i) + j + 1] != s.ignored;
      return labels;
    };
    int64_t labels = count(0, s.globalBatch);
    double loss = 0;
    for (int64_t i = 0; i < s.globalBatch; ++i) {
      int64_t first = i / s.microbatchSize * s.microbatchSize;
      double seed = mutation == Mutation::MeanOfMeans ? 1.0 / double(count(first, first + s.microbatchSize)) /
                                                            double(s.globalBatch / s.microbatchSize)
                                                      : 1.0 / double(labels);
      loss += backward(tokens, begin(i), s, seed, r, gt, gb);
    }
    consumed += s.globalBatch;
    if (step == 1) {
      r.tableGradient = gt;
      r.biasGradient = gb;
    }
    double squares = 0;
    for (auto *g : {&gt, &gb})
      for (double x : *g)
        squares += x * x;
    double norm = std::sqrt(squares), clip = s.clip > 0 ? std::min(1.0, s.clip / (norm + 1e-6)) : 1;
    double lr = step <= s.warmup
                    ? s.lr * double(step) / double(s.warmup)
                    : s.minLr + (s.lr - s.minLr) * 0.5 *
                                    (1 + std::cos(M_PI * double(step - s.warmup) / double(s.steps - s.warmup)));
    r.losses.push_back(loss / double(labels));
    r.norms.push_back(mutation == Mutation::NormAfterClipping ? norm * clip : norm);
    r.rates.push_back(lr);
    update(r.table, mt, vt, gt, s, lr, s.weightDecay, clip, step, mutation);
    update(r.bias, mb, vb, gb, s, lr, 0, clip, step, mutation);
  }
  return r;
}

struct TrainingRun {
  std::vector<nlohmann::json> rows; // the log's step objects
  nlohmann::json lastLine;
  std::map<std::string, std::vector<double>> weights, gradients;
  std::string weightBytes;
};

std::map<std::string, std::vector<double>> readTensors(const std::string &path) {
  SafetensorsFile file(path);
  std::map<std::string, std::vector<double>> result;
  for (const auto &[name, tensor] : file.tensors()) {
    std::vector<float> values(tensor.bytes / 4);
    std::memcpy(values.data(), tensor.data, tensor.bytes);
    result[name].assign(values.begin(), values.end());
  }
  return result;
}

std::vector<double> startTable() {
  std::vector<double> values;
  for (int64_t i = 0; i < V * V; ++i)
    values.push_back(float(std::sin(double(i)) * 0.5));
  return values;
}
std::vector<double> startBias() {
  std::vector<double> values;
  for (int64_t i = 0; i < V; ++i)
    values.push_back(float(0.1 * double(i) - 0.3));
  return values;
}

std::string writeStart(const TemporaryFolder &folder) {
  std::vector<double> table = startTable(), bias = startBias();
  std::vector<float> t(table.begin(), table.end()), b(bias.begin(), bias.end());
  std::string path = folder.path("start.safetensors");
  writeSafetensors(path,
                   {{"model.table.weight", DROVER_F32, {V, V}, t.data()}, {"model.bias", DROVER_F32, {V}, b.data()}});
  return path;
}

std::string writeTokens(const TemporaryFolder &folder, const std::vector<int64_t> &tokens = makeTokens()) {
  return folder.write("tokens.u16", bytesOf(std::vector<uint16_t>(tokens.begin(), tokens.end())));
}

TrainOptions optionsOf(const TemporaryFolder &folder, const Setting &s) {
  TrainOptions options;
  options.data = writeTokens(folder);
  options.init = writeStart(folder);
  options.steps = s.steps;
  options.learningRate = s.lr;
  options.minLearningRate = s.minLr;
  options.warmupSteps = s.warmup;
  options.weightDecay = s.weightDecay;
  options.beta1 = s.beta1;
  options.beta2 = s.beta2;
  options.epsilon = s.eps;
  options.gradientClip = s.clip;
  options.ignoreLabels = {s.ignored};
  options.globalBatch = s.globalBatch;
  options.threads = 2;
  options.log = folder.path("log.jsonl");
  options.saveWeights = folder.path("weights.safetensors");
  options.saveGradients = folder.path("gradients.safetensors");
  options.flightRecorder = folder.path("flight.json");
  return options;
}

TrainingRun runTraining(const ToyProgram &toy, const TrainOptions &options) {
  Program program(toy.program());
  ::testing::internal::CaptureStderr();
  train(program, options);
  ::testing::internal::GetCapturedStderr();
  TrainingRun run;
  std::ifstream log(options.log);
  for (std::string line; std::getline(log, line);) {
    run.lastLine = nlohmann::json::parse(line);
    if (run.lastLine.contains("loss"))
      run.rows.push_back(run.lastLine);
  }
  run.weights = readTensors(options.saveWeights);
  run.weightBytes = readFile(options.saveWeights);
  run.gradients = readTensors(options.saveGradients);
  return run;
}

double relativeDistance(const std::vector<double> &a, const std::vector<double> &b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return a.size() == b.size() ? std::sqrt(difference / norm) : 1e9;
}

/// The largest disagreement as a multiple of what DESIGN section 4, Equality, allows.
double disagreement(const TrainingRun &run, const Reference &reference) {
  if (run.rows.size() != reference.losses.size())
    return 1e9;
  double worst = 0;
  for (size_t i = 0; i < run.rows.size(); ++i) {
    worst = std::max(worst, std::abs(run.rows[i]["loss"].get<double>() / reference.losses[i] - 1) / 1e-5);
    worst = std::max(worst, std::abs(run.rows[i]["grad_norm"].get<double>() / reference.norms[i] - 1) / 1e-5);
    worst = std::max(worst, std::abs(run.rows[i]["lr"].get<double>() / reference.rates[i] - 1) / 1e-12);
  }
  worst = std::max(worst, relativeDistance(run.weights.at("model.table.weight"), reference.table) / 2e-5);
  worst = std::max(worst, relativeDistance(run.weights.at("model.bias"), reference.bias) / 2e-4);
  worst = std::max(worst, relativeDistance(run.gradients.at("model.table.weight"), reference.tableGradient) / 2e-5);
  worst = std::max(worst, relativeDistance(run.gradients.at("model.bias"), reference.biasGradient) / 2e-5);
  return worst;
}

TEST(Train, AgreesWithTheClosedFormAndNotWithItsMutants) {
  TemporaryFolder folder;
  Setting setting;
  TrainingRun run = runTraining(ToyProgram(), optionsOf(folder, setting));
  EXPECT_LT(disagreement(run, simulate(startTable(), startBias(), setting)), 1);
  for (Mutation mutation : {Mutation::DecayAfterUpdate, Mutation::EpsBeforeBiasCorrection, Mutation::EpsUnderRoot,
                            Mutation::MeanOfMeans, Mutation::NormAfterClipping})
    EXPECT_GT(disagreement(run, simulate(startTable(), startBias(), setting, mutation)), 10) << int(mutation);
}

TEST(Train, NumberOfMicrobatchesDoesNotMatter) {
  for (int64_t globalBatch : {2, 4, 8}) {
    TemporaryFolder folder;
    Setting setting;
    setting.globalBatch = globalBatch;
    ToyOptions toy;
    toy.globalBatches = {4, 2, 8};
    TrainingRun run = runTraining(ToyProgram(toy), optionsOf(folder, setting));
    EXPECT_LT(disagreement(run, simulate(startTable(), startBias(), setting)), 1) << globalBatch;
  }
}

TEST(Train, ThreadsAndRunsAreBitwiseEqual) {
  for (bool bfloat : {false, true})
    for (int64_t globalBatch : {4, 8}) { // microbatches of 2
      std::string first;
      for (int threads : {1, 1, 2, 5}) {
        TemporaryFolder folder;
        Setting setting;
        setting.globalBatch = globalBatch;
        TrainOptions options = optionsOf(folder, setting);
        options.threads = threads;
        ToyOptions toy;
        toy.bfloat = bfloat;
        toy.globalBatches = {globalBatch};
        TrainingRun run = runTraining(ToyProgram(toy), options);
        if (first.empty())
          first = run.weightBytes;
        EXPECT_EQ(run.weightBytes, first) << threads << " threads, bfloat " << bfloat << ", batch " << globalBatch;
      }
    }
}

TEST(Train, LogHasExactlyTheKeysOfTheDesign) {
  TemporaryFolder folder;
  Setting setting;
  TrainOptions options = optionsOf(folder, setting);
  options.peakFlops = 1e9;
  TrainingRun run = runTraining(ToyProgram(), options);
  std::vector<std::string> keys;
  for (auto &[key, value] : run.rows[0].items())
    keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"grad_norm", "loss", "lr", "mfu", "peak_bytes", "step", "step_time_s",
                                            "time", "tokens", "tokens_per_s"}));
  EXPECT_EQ(run.rows.back()["tokens"], setting.steps * setting.globalBatch * length);
  EXPECT_NEAR(run.rows[0]["mfu"].get<double>(), run.rows[0]["tokens_per_s"].get<double>() * 100 / 1e9, 1e-12);
  EXPECT_EQ(run.lastLine["memory"]["stash"], 256);
  EXPECT_EQ(run.lastLine["peak_bytes"], run.rows[0]["peak_bytes"]);
}

TEST(Train, SgdAgreesWithItsFormula) {
  TemporaryFolder folder;
  Setting setting;
  setting.steps = 1;
  setting.warmup = 1;
  ToyOptions toy;
  toy.sgd = true;
  TrainingRun run = runTraining(ToyProgram(toy), optionsOf(folder, setting));
  Reference r = simulate(startTable(), startBias(), setting);
  double clip = std::min(1.0, setting.clip / (r.norms[0] + 1e-6));
  std::vector<double> table = startTable();
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = table[i] * (1 - setting.lr * setting.weightDecay) - setting.lr * clip * r.tableGradient[i];
  EXPECT_LT(relativeDistance(run.weights.at("model.table.weight"), table), 1e-6);
}

TEST(Train, FrozenParametersStayAndHaveNoGradient) {
  TemporaryFolder folder;
  ToyOptions toy;
  toy.freezeBias = true;
  TrainingRun run = runTraining(ToyProgram(toy), optionsOf(folder, Setting()));
  EXPECT_EQ(run.weights.at("model.bias"), startBias());
  EXPECT_EQ(run.gradients.count("model.bias"), 0u);
}

TEST(Train, BfloatTracksTheClosedForm) {
  TemporaryFolder folder;
  Setting setting;
  ToyOptions toy;
  toy.bfloat = true;
  TrainingRun run = runTraining(ToyProgram(toy), optionsOf(folder, setting));
  Reference reference = simulate(startTable(), startBias(), setting);
  for (size_t i = 0; i < run.rows.size(); ++i)
    EXPECT_NEAR(run.rows[i]["loss"].get<double>() / reference.losses[i], 1, 5e-3);
  EXPECT_GT(disagreement(run, reference), 1); // rounding does happen
}

TEST(Train, NoLabelThatCountsIsNoUpdate) {
  TemporaryFolder folder;
  TrainOptions options = optionsOf(folder, Setting());
  options.ignoreLabels = {0, 1, 2, 3, 4, 5, 6};
  TrainingRun run = runTraining(ToyProgram(), options);
  EXPECT_EQ(run.rows[0]["loss"], 0);
  EXPECT_EQ(run.weights.at("model.table.weight"), startTable());
  EXPECT_EQ(run.gradients.at("model.bias"), std::vector<double>(V));
}

TEST(Train, NonfiniteNormNamesStepParameterAndRank) {
  TemporaryFolder folder;
  TrainOptions options = optionsOf(folder, Setting());
  std::vector<float> table(V * V, NAN), bias(V);
  options.init = folder.path("nan.safetensors");
  writeSafetensors(options.init, {{"model.table.weight", DROVER_F32, {V, V}, table.data()},
                                  {"model.bias", DROVER_F32, {V}, bias.data()}});
  ToyProgram toy;
  Program program(toy.program());
  expectError([&] { train(program, options); },
              "step 1: the gradient norm is not finite, first in parameter 'model.table.weight' on rank 0");
  // No wait failed: there is nothing in the recorder to look at.
  EXPECT_FALSE(std::filesystem::exists(options.flightRecorder));

  options.skipNonfinite = true;
  TrainingRun run = runTraining(toy, options);
  EXPECT_EQ(run.rows.size(), 12u);
  EXPECT_TRUE(run.rows[0]["grad_norm"].is_null());
  EXPECT_EQ(run.weights.at("model.bias"), std::vector<double>(V));
}

TEST(Train, BatchRampChangesTheGlobalBatch) {
  TemporaryFolder folder;
  ToyOptions toy;
  toy.globalBatches = {2, 8};
  TrainOptions options = optionsOf(folder, Setting());
  options.globalBatch = 0;
  options.steps = 4;
  options.batchRamp = {{3, 8}};
  TrainingRun run = runTraining(ToyProgram(toy), options);
  EXPECT_EQ(run.rows[1]["tokens"], 2 * 2 * length);
  EXPECT_EQ(run.rows[3]["tokens"], (2 * 2 + 2 * 8) * length);
  options.batchRamp = {{3, 4}};
  ToyProgram built(toy);
  Program program(built.program());
  expectError([&] { train(program, options); },
              "--batch-ramp: global batch 4 is not compiled in, expected one of 2, 8");
  options.batchRamp = {{2, 8}, {4, 8}};
  expectError([&] { train(program, options); },
              "--batch-ramp=4:8: changes nothing, the global batch is 8 before step 4");
  options.batchRamp = {{3, 2}};
  expectError([&] { train(program, options); },
              "--batch-ramp=3:2: changes nothing, the global batch is 2 before step 3");
}

TEST(Train, TraceIsValidJson) {
  TemporaryFolder folder;
  TrainOptions options = optionsOf(folder, Setting());
  options.trace = folder.path("trace.json");
  options.traceSteps = {2, 3};
  ToyProgram toy;
  runTraining(toy, options);
  nlohmann::json trace = nlohmann::json::parse(readFile(options.trace));
  int64_t actions = 0;
  for (const auto &event : trace["traceEvents"])
    actions += event["ph"] == "X" && event["tid"] == 0;
  EXPECT_EQ(actions, 2 * int64_t(toy.actions.size()));
}

TEST(Train, TargetsThatCannotBeWrittenAreErrorsAtTheStart) {
  TemporaryFolder folder;
  TrainOptions options = optionsOf(folder, Setting());
  ToyProgram toy;
  Program program(toy.program());
  options.saveWeights = folder.path("none/w.safetensors");
  expectError([&] { train(program, options); }, "none/w.safetensors: cannot create");
  folder.write("file", "");
  options.saveWeights = folder.path("file/w");
  expectError([&] { train(program, options); }, "file/w: cannot create the folder");
  options.saveWeights = folder.path("none/w");
  expectError([&] { train(program, options); }, "none/w: cannot create the folder: No such file or directory");
  EXPECT_FALSE(std::filesystem::exists(folder.path("none")));
  options.saveWeights = "";
  options.log = folder.path("none/log.jsonl");
  expectError([&] { train(program, options); }, "none/log.jsonl: cannot create");
  options.log = "";
  options.flightRecorder = folder.path("none/flight.json");
  expectError([&] { train(program, options); }, "none/flight.json: cannot create");
}

TEST(Train, RefusesOtherRanks) {
  TemporaryFolder folder;
  TrainOptions options = optionsOf(folder, Setting());
  options.ranks = 2;
  ToyProgram toy;
  Program program(toy.program());
  expectError([&] { train(program, options); }, "--ranks=2: the program was compiled for 1");
}

} // namespace
