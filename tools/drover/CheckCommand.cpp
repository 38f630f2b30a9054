//===- CheckCommand.cpp - drover check ------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ClusterOption.h"
#include "CommandContext.h"
#include "ProgramOptions.h"
#include "Subcommands.h"
#include "drover/Schedule/Report.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace drover::tool {

static void printPlaced(const PlacedProgram &placed, raw_ostream &os) {
  for (const std::string &text : placed.placement)
    os << text << "\n";
  auto gib = [](int64_t bytes) { return format("%.2f GiB", static_cast<double>(bytes) / (1 << 30)); };
  os << "memory: the fullest stage holds " << gib(placed.peakBytes) << ", a device has room for "
     << gib(placed.usableBytes) << (placed.fits() ? ": fits\n" : ": does not fit\n");
}

/// The report's fields, `placement` and `fits` behind them.
static std::string withPlacement(StringRef report, const PlacedProgram &placed) {
  std::string text;
  raw_string_ostream os(text);
  os << report.rtrim().drop_back().rtrim() << ",\n  \"placement\": " << json::Value(placed.placement)
     << ",\n  \"fits\": " << (placed.fits() ? "true" : "false") << "\n}\n";
  return text;
}

static int run(const CommandLine &line) {
  Expected<CompileOptions> options = readProgramOptions(line);
  if (!options)
    return failCommand(options.takeError());
  // Nothing is written: the last phase that matters is the one that tells the bodies' workspace.
  options->emit = Emit::Mlir;
  if (std::string message = checkCompileOptions(*options); !message.empty())
    return failCommand(message);
  std::optional<cluster::Cluster> cluster;
  if (!placeOnCluster(line, *options, cluster))
    return 1;

  CommandContext context;
  mlir::FailureOr<CheckedProgram> checked = checkModel(context, *options, errs());
  if (failed(checked))
    return 1;
  if (!line.has(OPT_json)) {
    outs() << schedule::reportText(checked->step, checked->faults);
    if (cluster)
      printPlaced(describePlacement(*cluster, checked->step), outs());
  } else if (cluster) {
    outs() << withPlacement(schedule::reportJson(checked->step, checked->faults),
                            describePlacement(*cluster, checked->step));
  } else {
    outs() << schedule::reportJson(checked->step, checked->faults);
  }
  return checked->faults.empty() ? 0 : 1;
}

Subcommand checkCommand() {
  return {"check", "prove a plan's program for every rank, and report its traffic and memory", CheckCommand, run,
          [] { return phaseNotes("lower"); }};
}

} // namespace drover::tool
