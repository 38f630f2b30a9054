//===- Train.cpp - the training executable --------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/atomic_file.h"
#include "drover/rt/batch_loader.h"
#include "drover/rt/error.h"
#include "drover/rt/executable.h"
#include "drover/rt/interpreter.h"
#include "drover/rt/memory_report.h"
#include "drover/rt/parameter_store.h"
#include "drover/rt/step_log.h"
#include "drover/rt/text.h"
#include "drover/rt/thread_pool.h"
#include <chrono>
#include <cmath>
#include <memory>

namespace drover::rt {

namespace {
class Trainer {
public:
  Trainer(const Program &program, const TrainOptions &options);

  void run();

private:
  void checkBatches() const;
  void checkTargets() const;
  const BatchInfo &batchOf(int64_t step) const;
  StepOutcome runStep(int64_t step, const BatchInfo &batch, int64_t labels);
  void report(int64_t step, const StepOutcome &outcome, int64_t labels, double seconds);
  void stopAtNonfinite(int64_t step, const BatchInfo &batch) const;
  std::vector<const float *> buckets(Space space, const BatchInfo &batch) const;
  void saveGradients(const BatchInfo &batch, bool counted);

  const Program &program;
  const TrainOptions &options;
  OptimizerSettings settings;
  BatchLoader loader;
  drover_pool pool;
  FlightRecorder recorder;
  std::unique_ptr<TraceWriter> trace;
  Interpreter interpreter;
  StepLog log;
  int64_t consumed = 0; // sequences
  int64_t updates = 0;  // the optimizer's t
};
} // namespace

static OptimizerSettings settingsOf(const TrainOptions &options) {
  return {options.learningRate, options.minLearningRate, options.weightDecay, options.beta1, options.beta2,
          options.epsilon,      options.gradientClip,    options.warmupSteps, options.steps};
}

Trainer::Trainer(const Program &program, const TrainOptions &options)
    : program(program), options(options), settings(settingsOf(options)), loader(program, options),
      pool(threadsOf(options.threads, program.ranks)), recorder(program.hash, 0, options.flightRecorder),
      trace(options.trace.empty() ? nullptr : std::make_unique<TraceWriter>(options.trace, 0)),
      interpreter(program, &pool, recorder, trace.get()), log(options.log) {
  checkBatches();
  checkTargets();
  ParameterMemory memory{{}, DROVER_F32};
  for (size_t bucket = 0; bucket < program.buckets.size(); ++bucket)
    memory.buckets.push_back(interpreter.bucketMemory(program.batches[0], int64_t(bucket), Space::Master));
  initializeParameters(program, {options.init, options.model, options.seed}, memory);
}

void Trainer::checkBatches() const {
  auto check = [&](const char *option, int64_t size) {
    if (!program.findBatch(size))
      fail("--", option, ": global batch ", size, " is not compiled in, expected one of ", program.batchesText());
  };
  if (options.globalBatch)
    check("global-batch", options.globalBatch);
  for (const auto &[step, size] : options.batchRamp)
    check("batch-ramp", size);
}

/// What is written at the end must be possible at the start.
void Trainer::checkTargets() const {
  for (const std::string &path : {options.saveWeights, options.saveGradients}) {
    if (path.empty())
      continue;
    if (isTensorFile(path))
      checkCanCreateFile(path);
    else
      checkCanCreateFilesIn(path);
  }
}

const BatchInfo &Trainer::batchOf(int64_t step) const {
  int64_t size = options.globalBatch ? options.globalBatch : program.batches[0].globalBatch;
  for (const auto &[first, rampSize] : options.batchRamp)
    if (step >= first)
      size = rampSize;
  return *program.findBatch(size);
}

static double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void Trainer::run() {
  recorder.install();
  try {
    for (int64_t step = 1; step <= options.steps; ++step) {
      const BatchInfo &batch = batchOf(step);
      int64_t startNs = monotonicNs();
      interpreter.setTracing(trace && step >= options.traceSteps.first && step <= options.traceSteps.second);
      int64_t labels = loader.countLabels(consumed, batch.globalBatch);
      StepOutcome outcome = runStep(step, batch, labels);
      consumed += batch.globalBatch;
      int64_t endNs = monotonicNs();
      if (trace && step <= options.traceSteps.second)
        trace->event(TraceWriter::Steps, concat("step ", step), startNs, endNs, concat("\"labels\": ", labels));
      report(step, outcome, labels, double(endNs - startNs) * 1e-9);
      if (labels && !outcome.updated && !options.skipNonfinite)
        stopAtNonfinite(step, batch);
    }
  } catch (const Error &error) {
    log.endLine();
    bool dumped = recorder.dump("error");
    fail(error.what(), dumped ? "; last actions in " + recorder.file() : "");
  }
  if (trace)
    trace->finish();
  std::map<std::string, int64_t> categories = memoryByCategory(program, interpreter.workspaceBytes());
  log.memory(categories, interpreter.arenaBytes() + interpreter.workspaceBytes());
  log.endLine();
  if (options.verbose || log.onTerminal())
    printMemoryTable(categories, interpreter.arenaBytes() + interpreter.workspaceBytes());
  if (!options.saveWeights.empty())
    writeTensors(options.saveWeights, listParameters(program, buckets(Space::Master, program.batches[0]), true));
}

/// Where no label counts there is nothing to learn from: loss 0, no update, the schedule goes on.
StepOutcome Trainer::runStep(int64_t step, const BatchInfo &batch, int64_t labels) {
  StepWork work;
  work.onGradients = [&] {
    if (step == 1 && !options.saveGradients.empty())
      saveGradients(batch, labels > 0);
  };
  if (labels == 0) {
    work.onGradients();
    return {};
  }
  work.step = step;
  work.batch = &batch;
  work.fillInputs = [&](int64_t microbatch, uint8_t *slot) { loader.fill(slot, consumed, microbatch); };
  work.seed = float(1.0 / double(labels));
  work.optimizer = settings;
  work.learningRate = learningRateOf(settings, step);
  work.t = updates + 1;
  StepOutcome outcome = interpreter.run(work);
  updates += outcome.updated;
  return outcome;
}

void Trainer::report(int64_t step, const StepOutcome &outcome, int64_t labels, double seconds) {
  StepReport report;
  report.step = step;
  report.steps = options.steps;
  report.loss = labels ? outcome.lossSum / double(labels) : 0;
  report.gradNorm = outcome.gradNorm;
  report.learningRate = learningRateOf(settings, step);
  report.tokens = consumed * program.sequenceLength();
  report.tokensPerSecond = double(batchOf(step).globalBatch * program.sequenceLength()) / seconds;
  report.stepSeconds = seconds;
  if (options.peakFlops > 0)
    report.mfu = report.tokensPerSecond * program.flopsPerToken / options.peakFlops;
  report.peakBytes = interpreter.arenaBytes() + interpreter.workspaceBytes();
  report.time = now();
  log.step(report);
}

void Trainer::stopAtNonfinite(int64_t step, const BatchInfo &batch) const {
  std::string parameter = interpreter.nonfiniteParameter(batch);
  fail("step ", step, ": the gradient norm is not finite",
       parameter.empty() ? std::string() : ", first in parameter '" + parameter + "'",
       " on rank 0; nothing was updated (--on-nonfinite=skip goes on)");
}

std::vector<const float *> Trainer::buckets(Space space, const BatchInfo &batch) const {
  std::vector<const float *> result;
  for (size_t bucket = 0; bucket < program.buckets.size(); ++bucket)
    result.push_back(reinterpret_cast<const float *>(interpreter.bucketMemory(batch, int64_t(bucket), space)));
  return result;
}

void Trainer::saveGradients(const BatchInfo &batch, bool counted) {
  if (counted)
    return writeTensors(options.saveGradients, listParameters(program, buckets(Space::Accumulator, batch), false));
  std::vector<std::vector<float>> zeros;
  std::vector<const float *> pointers;
  for (const BucketInfo &bucket : program.buckets)
    pointers.push_back(zeros.emplace_back(size_t(bucket.elements)).data());
  writeTensors(options.saveGradients, listParameters(program, pointers, false));
}

void train(const Program &program, const TrainOptions &options) {
  checkRanks(options.ranks, program.ranks);
  Trainer(program, options).run();
}

} // namespace drover::rt
