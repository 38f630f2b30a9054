//===- Explain.h - one layout against another -------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_PLANNER_EXPLAIN_H
#define DROVER_PLANNER_EXPLAIN_H

#include "drover/Planner/Search.h"

namespace drover::planner {

/// The best plan beside another one, part by part.
struct Comparison {
  RankedPlan best, other;

  struct Option {
    std::string name, best, other;
  };
  /// Options in which they differ.
  std::vector<Option> differences() const;
};

/// Sets choices given as `KEY=VALUE` separated by commas, which values may have too (`tp=8,order=tp,dp,pp,cp`), in
/// place of what the problem had; `dp` is free where it is not among them. The error says what is wrong.
std::optional<schedule::Error> setChoices(Problem &problem, const std::string &text);

/// `best` beside the best layout of another problem, which may not fit.
schedule::Result<Comparison> compareWith(const Problem &problem, const RankedPlan &best, Problem other);

} // namespace drover::planner

#endif // DROVER_PLANNER_EXPLAIN_H
