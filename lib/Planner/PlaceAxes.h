//===- PlaceAxes.h - parts of the search ------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_PLANNER_PLACEAXES_H
#define DROVER_LIB_PLANNER_PLACEAXES_H

#include "Space.h"
#include "drover/Planner/Search.h"

namespace drover::planner {

/// The same with the spans of other layouts of the cluster.
cluster::AxisOrder placeAxes(const Problem &problem, const schedule::Plan &plan, cluster::SpanCache &spans);

/// Why a problem has no answer: the constraint that keeps everything out, or the memory that is missing for `nearest`.
Infeasibility explainInfeasible(const Problem &problem, const Space &space, const schedule::Plan *nearest,
                                double overflowBytes);

/// The fastest layout that needs no more bytes than each of `limits` on its fullest stage, which fall; none where
/// nothing fits. One search for all: a layout is skipped where its bound of time is above the fastest within its bound
/// of memory.
schedule::Result<std::vector<std::optional<RankedPlan>>> solveWithin(const Problem &problem, std::vector<double> limits,
                                                                     const Progress &progress);

/// `solve` without the reasons where nothing fits, which solve problems of their own.
schedule::Result<Solution> solveOnly(const Problem &problem);

} // namespace drover::planner

#endif // DROVER_LIB_PLANNER_PLACEAXES_H
