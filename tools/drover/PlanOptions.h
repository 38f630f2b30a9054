//===- PlanOptions.h - the plan options of a command ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_TOOLS_DROVER_PLANOPTIONS_H
#define DROVER_TOOLS_DROVER_PLANOPTIONS_H

#include "drover/Schedule/Plan.h"
#include "llvm/Support/CommandLine.h"
#include <optional>

namespace drover::tool {

/// Every plan option and --plan=FILE, for one subcommand.
class PlanOptions {
public:
  explicit PlanOptions(llvm::cl::SubCommand &command);

  /// The plan of --plan with what is given on the command line on top; nothing after an error message.
  std::optional<schedule::Plan> plan() const;

private:
  std::string read(schedule::Plan &plan) const;

  llvm::cl::OptionCategory category;
  llvm::cl::opt<std::string> planFile;
  llvm::cl::opt<int64_t> tp, cp, pp, dp, chunks;
  llvm::cl::list<int64_t> run;
  llvm::cl::opt<int64_t> microbatch;
  llvm::cl::list<int64_t> globalBatch;
  llvm::cl::opt<int64_t> sequenceLength;
  llvm::cl::opt<std::string> schedule, layersPerChunk, recompute, rebuild;
  llvm::cl::opt<int64_t> zero;
  llvm::cl::opt<std::string> reduceEvery, computeType, mask, optimizer, tpOverlap, freeze, attention;
};

} // namespace drover::tool

#endif // DROVER_TOOLS_DROVER_PLANOPTIONS_H
