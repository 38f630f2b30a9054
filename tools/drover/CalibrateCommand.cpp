//===- CalibrateCommand.cpp - drover calibrate ----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CommandContext.h"
#include "MeasureHost.h"
#include "Subcommands.h"
#include "drover/Cluster/Print.h"
#include "drover/Planner/Projection.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/ToolOutputFile.h"
#include <cstdlib>

using namespace llvm;

namespace drover::tool {
namespace {

Expected<double> projectedStep(const ProbedHost &probed, const schedule::Plan &plan, const cluster::Cluster &host) {
  schedule::Result<planner::Projection> projection = planner::project(probed.shape, host, {plan});
  if (!projection)
    return createStringError(projection.error());
  return projection->stepSeconds;
}

/// What products, attention and collectives do not explain of the step of a rank on each core is its passes, which on a
/// host go through caches and are bound by arithmetic as often as by memory: their cost is the one that makes the
/// projection meet the step. What a rank gains by a thread on each core follows from its own step.
Error fitProbe(const ProbedHost &probed, cluster::Cluster &host) {
  double &cost = host.device.passCost;
  double least = 0.01, most = 1000;
  for (int i = 0; i < 50; ++i) {
    cost = std::sqrt(least * most);
    Expected<double> seconds = projectedStep(probed, probed.ranks, host);
    if (!seconds)
      return seconds.takeError();
    (*seconds < probed.ranksSeconds ? least : most) = cost;
  }
  // All that a rank does scales.
  Expected<double> alone = projectedStep(probed, probed.threads, host);
  if (!alone)
    return alone.takeError();
  if (host.device.sharedCores > 1)
    host.device.coreScaling = std::clamp(*alone / probed.threadsSeconds, 1e-3, 1.0);
  return Error::success();
}

std::string percent(double value) {
  std::string text;
  raw_string_ostream(text) << format("%.0f %%", 100 * value);
  return text;
}

std::string describe(const cost::FitQuality &quality, const ProbedHost &probed, const double load[3]) {
  std::string text;
  raw_string_ostream os(text);
  os << "Measured by drover calibrate (docs/calibrate.md). Load average " << format("%.1f", load[0])
     << " when it began.\nThe formulas deviate from what was measured by " << percent(quality.matmul) << " (matmuls), "
     << percent(quality.attention) << " (attention),\n"
     << percent(quality.collectives)
     << " (collectives), root mean squares. A step of the model that was compiled for it:\n"
     << format("%.2f ms of each core with a rank on each, %.2f ms with a thread on each.", 1e3 * probed.ranksSeconds,
               1e3 * probed.threadsSeconds);
  return text;
}

Error readOptions(const CommandLine &line, CalibrationOptions &options, std::string &backend) {
  const std::tuple<OptionId, int64_t, int64_t *> integers[] = {{OPT_cores, 1, &options.cores},
                                                               {OPT_ranks, 2, &options.ranks},
                                                               {OPT_turns, 1, &options.turns},
                                                               {OPT_deadline, 1, &options.deadlineSeconds}};
  for (auto [option, minimum, value] : integers)
    if (Error error = line.readInteger(option, minimum, *value))
      return error;
  backend = line.text(OPT_backend, "inproc");
  if (backend != "inproc" && backend != "mpi")
    return createStringError("--backend=" + backend + ": expected inproc|mpi");
  return Error::success();
}

int run(const CommandLine &line) {
  CalibrationOptions options;
  std::string backend;
  if (Error error = readOptions(line, options, backend))
    return failCommand(std::move(error));
  // Before anything is measured: a file that cannot be written is known at once.
  std::string message;
  std::unique_ptr<ToolOutputFile> file = mlir::openOutputFile(line.text(OPT_o, "-"), &message);
  if (!file)
    return failCommand(message);
  double load[3] = {};
  (void)getloadavg(load, 3);
  Expected<cost::Measurements> measured = measureHost(options, errs());
  if (!measured)
    return failCommand(measured.takeError());
  schedule::Result<cluster::Cluster> host = cost::fitCluster(*measured, backend);
  if (!host)
    return failCommand("--backend=" + backend + ": " + host.error());
  errs() << "calibrate: a step of a small model\n";
  Expected<ProbedHost> probed = probeHost(options, measured->cores);
  if (!probed)
    return failCommand(probed.takeError());
  if (Error error = fitProbe(*probed, *host))
    return failCommand(std::move(error));
  file->os() << cluster::printCluster(*host, describe(cost::qualityOf(*host, *measured), *probed, load));
  file->keep();
  return 0;
}

std::string notes() {
  return "Measures matmuls, attention and passes over memory on all cores at once, collectives between threads and\n"
         "between MPI's processes (where there is an mpirun), and a step of a small model that it compiles. Takes "
         "some\n"
         "minutes; other load makes the figures worse. docs/calibrate.md says what each constant is.\n";
}
} // namespace

Subcommand calibrateCommand() {
  return {"calibrate", "measure this machine and write its cluster file", CalibrateCommand, run, notes, false};
}

} // namespace drover::tool
