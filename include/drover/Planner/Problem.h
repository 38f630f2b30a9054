//===- Problem.h - what a search is asked -----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_PLANNER_PROBLEM_H
#define DROVER_PLANNER_PROBLEM_H

#include "drover/Cost/Model.h"
#include "drover/Planner/Projection.h"
#include <functional>

namespace drover::planner {

/// Accepted values of each axis of the search; an empty list leaves it free.
struct Choices {
  std::vector<int64_t> tp, cp, pp, dp, chunks, run, microbatch, zero;
  std::vector<schedule::ScheduleKind> schedules;
  std::vector<std::string> recompute, tpOverlap;
  /// Layers of every chunk, which fixes pp * chunks.
  std::vector<int64_t> layersPerChunk;
};

/// The best layouts of a model on a cluster.
struct Problem {
  cost::ModelShape model;
  cluster::Cluster cluster;
  int64_t gpus = 1;
  int64_t sequence = 0;
  int64_t globalBatch = 0; // sequences of a step
  Choices choices;
  /// What is not searched: dtype, rebuild, reduction, mask, optimizer, attention, freeze.
  schedule::Plan rest;
  std::optional<cluster::AxisOrder> order; // absent: chosen for each grid
  Software software;
  int64_t top = 10; // plans wanted

  int64_t tokensPerStep() const { return globalBatch * sequence; }
};

/// Largest values that the search looks at of what has no end: a heuristic cut, said with the answer.
struct SearchLimits {
  int64_t tp = 64, cp = 64, pp = 256, chunks = 16, microbatch = 8;
};
constexpr SearchLimits kSearchLimits;

/// The problem as lines of `key values`; reads back as the same problem. The cluster is named only.
std::string printProblem(const Problem &problem);

/// Reads what `printProblem` prints; `#` begins a comment. The error is `NAME:LINE: error: ..`.
schedule::Result<Problem>
parseProblem(const std::string &text, const std::string &name,
             const std::function<schedule::Result<cluster::Cluster>(const std::string &)> &findCluster);

/// Sets one key of the text form that is a choice or not searched (`tp`, .. `attention`): numbers may be ranges `a..b`.
std::optional<schedule::Error> setChoice(Problem &problem, const std::string &key, const std::string &value);

/// Contradictions that no layout can mend: one error with the values and what would be accepted.
std::optional<schedule::Error> checkProblem(const Problem &problem);

} // namespace drover::planner

#endif // DROVER_PLANNER_PROBLEM_H
