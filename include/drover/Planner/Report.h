//===- Report.h - the answer of a search for readers ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_PLANNER_REPORT_H
#define DROVER_PLANNER_REPORT_H

#include "drover/Planner/Explain.h"
#include "drover/Planner/Goodput.h"
#include "drover/Planner/Traffic.h"

namespace drover::planner {

/// The fastest layout within a limit of memory.
struct ParetoPoint {
  RankedPlan plan;
  double limitBytes = 0; // of the fullest stage, context excluded
};

/// Everything that `drover plan` says.
struct Report {
  const Problem *problem = nullptr;
  std::string modelName;
  Solution solution;
  double elapsedSeconds = 0;
  cost::FlopsCount count = cost::FlopsCount::Causal;
  std::vector<ParetoPoint> pareto; // fastest first; empty where not asked for
  std::optional<DetailedPlan> best;
  std::optional<Goodput> goodput;
  std::string noGoodput; // why there is none
  std::optional<Comparison> comparison;
  std::string compileCommand; // of the best
};

/// Fastest layouts within less and less memory, each limit nine tenths of the one before from what `solution`'s best
/// needs, which is the first; ends where nothing fits. One search for all of them.
schedule::Result<std::vector<ParetoPoint>> paretoOf(const Problem &problem, const Solution &solution,
                                                    const Progress &progress = {});

/// The ranked table, the best plan's parts, memory and placement, and what else the report has.
std::string reportText(const Report &report);
/// DESIGN section 6, `drover plan --json`.
std::string reportJson(const Report &report);
/// One page with everything in it: tables, and drawings as SVG.
std::string reportHtml(const Report &report);

} // namespace drover::planner

#endif // DROVER_PLANNER_REPORT_H
