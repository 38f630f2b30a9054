//===- Train.cpp - the training executable --------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/atomic_file.h"
#include "drover/rt/batch_loader.h"
#include "drover/rt/error.h"
#include "drover/rt/executable.h"
#include "drover/rt/memory_report.h"
#include "drover/rt/nvtx.h"
#include "drover/rt/parameter_writer.h"
#include "drover/rt/step_dump.h"
#include "drover/rt/step_log.h"
#include "drover/rt/text.h"
#include <chrono>
#include <memory>

namespace drover::rt {

namespace {
/// One rank's part of a training run.
class Trainer {
public:
  Trainer(const Program &program, const TrainOptions &options, World &world);

  void run();

private:
  void checkTargets() const;
  const BatchInfo &batchOf(int64_t step) const;
  bool runStep(int64_t step);
  StepOutcome execute(int64_t step, const BatchInfo &batch);
  void report(int64_t step, const StepOutcome &outcome, double seconds);
  void stopAtNonfinite(int64_t step);
  void save(const std::string &path, const HostShards &shards, bool frozen);

  const Program &program;
  const TrainOptions &options;
  OptimizerSettings settings;
  BatchLoader loader;
  RankSetup setup;
  std::unique_ptr<StepLog> log; // of rank 0, or of every rank
  int64_t peakBytes;            // of the rank that needs most
  int64_t consumed = 0;         // sequences
  int64_t updates = 0;          // the optimizer's t
};
} // namespace

static OptimizerSettings settingsOf(const TrainOptions &options) {
  return {options.learningRate, options.minLearningRate, options.weightDecay, options.beta1, options.beta2,
          options.epsilon,      options.gradientClip,    options.warmupSteps, options.steps};
}

Trainer::Trainer(const Program &program, const TrainOptions &options, World &world)
    : program(program), options(options), settings(settingsOf(options)),
      loader(program, options, program.grid.coordinates(world.rank())), setup(program, options, world, options.init),
      peakBytes(setup.rank.maximum(setup.interpreter.arenaBytes() + setup.interpreter.workspaceBytes())) {
  if (options.cudaGraphs)
    setup.interpreter.useGraphs();
  bool first = setup.rank.isFirst();
  if (first)
    checkTargets();
  if (first || (options.logAllRanks && !options.log.empty()))
    log = std::make_unique<StepLog>(first || options.log.empty() ? options.log : fileOfRank(options.log, world.rank()),
                                    first);
  setup.interpreter.initialize([&](const ParameterMemory &memory) {
    initializeParameters(program, setup.rank.plan.place, {options.init, options.model, options.seed, first}, memory);
  });
}

static void checkBatches(const Program &program, const TrainOptions &options) {
  auto check = [&](const char *option, int64_t size) {
    if (!program.findBatch(size))
      fail("--", option, ": global batch ", size, " is not compiled in, expected one of ", program.batchesText());
  };
  if (options.globalBatch)
    check("global-batch", options.globalBatch);
  int64_t before = options.globalBatch ? options.globalBatch : program.batches[0].globalBatch;
  for (const auto &[step, size] : options.batchRamp) {
    check("batch-ramp", size);
    if (step > 1 && size == before)
      fail("--batch-ramp=", step, ":", size, ": changes nothing, the global batch is ", size, " before step ", step);
    before = size;
  }
}

/// What is written at the end must be possible at the start.
void Trainer::checkTargets() const {
  for (const std::string &path :
       {options.saveWeights, options.saveGradients, options.dump ? options.dumpFile : std::string()}) {
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
  World &world = setup.rank.world;
  bool finite = true;
  int64_t step = 0;
  setup.guarded([&] {
    while (finite && step < options.steps) {
      ++step;
      if (step == 1)
        world.setDeadline(options.deadlines.firstStep, "the first step");
      if (step == 2)
        world.setDeadline(options.deadlines.step, "a step");
      finite = runStep(step);
    }
  });
  if (!finite)
    stopAtNonfinite(step);
  world.setDeadline(std::max(options.deadlines.firstStep, options.deadlines.step), "saving");
  if (!options.saveWeights.empty())
    save(options.saveWeights, setup.interpreter.masterShards(), /*frozen=*/true);
  setup.saveAlgorithms(options.saveWeights);
  if (setup.trace)
    setup.trace->finish();
  if (!log)
    return;
  std::map<std::string, int64_t> categories = memoryByCategory(program, setup.interpreter.workspaceBytes());
  log->end(categories, peakBytes, setup.interpreter.arenaBytes() + setup.interpreter.workspaceBytes(),
           setup.device.usedBytes(), describeCounts(setup.rank));
  log->endLine();
  if (setup.rank.isFirst() && (options.verbose || log->onTerminal()))
    printMemoryTable(categories, peakBytes, setup.device.usedBytes());
}

/// False where the run must end, since the gradient norm is not finite.
bool Trainer::runStep(int64_t step) {
  const BatchInfo &batch = batchOf(step);
  NvtxRange range([&] { return concat("step ", step); });
  int64_t startNs = monotonicNs();
  setup.setTracing(step >= options.traceSteps.first && step <= options.traceSteps.second);
  StepOutcome outcome = execute(step, batch);
  consumed += batch.globalBatch;
  updates += outcome.updated;
  int64_t endNs = monotonicNs();
  if (setup.trace && step <= options.traceSteps.second)
    setup.trace->event(TraceWriter::Steps, concat("step ", step), startNs, endNs,
                       concat("\"labels\": ", outcome.labels));
  if (log)
    report(step, outcome, double(endNs - startNs) * 1e-9);
  return outcome.updated || !outcome.labels || options.skipNonfinite;
}

/// Where no label counts there is nothing to learn from: loss 0, no update, the schedule goes on.
StepOutcome Trainer::execute(int64_t step, const BatchInfo &batch) {
  StepWork work;
  work.step = step;
  work.batch = size_t(&batch - program.batches.data());
  work.fillInputs = [&](int64_t microbatch, uint8_t *slot) { loader.fill(slot, consumed, microbatch); };
  work.labels = loader.countLabels(consumed, batch.microbatches);
  work.optimizer = settings;
  work.learningRate = learningRateOf(settings, step);
  work.t = updates + 1;
  std::unique_ptr<StepDump> dump;
  if (options.dump && step == options.dumpStep) {
    dump = std::make_unique<StepDump>(setup.rank, *options.dump);
    work.onCall = [&](const drover_action &action, const CallInfo &call, const std::vector<void *> &operands) {
      dump->addResults(action, call, operands, [&](const uint8_t *from, int64_t bytes, uint8_t *to) {
        setup.interpreter.read(from, bytes, to);
      });
    };
  }
  work.onGradients = [&] {
    if (step == 1 && !options.saveGradients.empty())
      save(options.saveGradients, setup.interpreter.gradientShards(), /*frozen=*/false);
    if (dump) {
      dump->addParameters("parameter", setup.interpreter.masterShards().buckets, /*frozen=*/true);
      dump->addParameters("gradient", setup.interpreter.gradientShards().buckets, /*frozen=*/false);
    }
  };
  StepOutcome outcome = setup.interpreter.run(work);
  if (dump)
    dump->write(options.dumpFile);
  return outcome;
}

void Trainer::report(int64_t step, const StepOutcome &outcome, double seconds) {
  StepReport report;
  report.step = step;
  report.steps = options.steps;
  report.loss = outcome.labels ? outcome.lossSum / double(outcome.labels) : 0;
  report.gradNorm = outcome.gradNorm;
  report.learningRate = learningRateOf(settings, step);
  report.tokens = consumed * program.sequenceLength();
  report.tokensPerSecond = double(batchOf(step).globalBatch * program.sequenceLength()) / seconds;
  report.stepSeconds = seconds;
  if (options.peakFlops > 0)
    report.mfu = report.tokensPerSecond * program.flopsPerToken / (options.peakFlops * double(program.grid.ranks()));
  report.peakBytes = peakBytes;
  report.time = now();
  log->step(report);
}

void Trainer::stopAtNonfinite(int64_t step) {
  std::vector<int64_t> found = setup.rank.all(setup.interpreter.nonfiniteParameter());
  size_t culprit = 0;
  while (culprit < found.size() && found[culprit] < 0)
    ++culprit;
  fail("step ", step, ": the gradient norm is not finite",
       culprit < found.size()
           ? concat(", first in parameter '", program.parameters[size_t(found[culprit])].name, "' on rank ", culprit)
           : std::string(),
       "; nothing was updated (--on-nonfinite=skip goes on)");
}

void Trainer::save(const std::string &path, const HostShards &shards, bool frozen) {
  writeParameters(path, program, setup.rank.plan, setup.rank.worldGroup(), shards.buckets, frozen);
}

void trainRank(const Program &program, const TrainOptions &options, World &world) {
  Trainer(program, options, world).run();
}

void train(const Program &program, const TrainOptions &options) {
  checkBatches(program, options);
  runOnRanks(program, options, [&](World &world) { trainRank(program, options, world); });
}

} // namespace drover::rt
