//===- ExplainInfeasible.cpp - why nothing fits, and what would -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "PlaceAxes.h"
#include "Text.h"

using namespace drover;
using namespace drover::planner;
using schedule::Plan;

namespace {

/// A choice that can be let go.
struct Relaxation {
  const char *name;
  std::function<bool(Choices &)> relax; // false: it was free
};

template <typename T> Relaxation freeing(const char *name, std::vector<T> Choices::*list) {
  return {name, [list](Choices &choices) {
            bool had = !(choices.*list).empty();
            (choices.*list).clear();
            return had;
          }};
}

/// The best layout once one choice is free, if any fits.
std::optional<Plan> solveFreed(Problem problem) {
  problem.top = 1;
  if (checkProblem(problem))
    return std::nullopt;
  schedule::Result<Solution> solution = solveOnly(problem);
  if (!solution || solution->plans.empty() || !solution->plans.front().fits)
    return std::nullopt;
  return solution->plans.front().layout.plan;
}
} // namespace

Infeasibility planner::explainInfeasible(const Problem &problem, const Space &space, const Plan *nearest,
                                         double overflowBytes) {
  Infeasibility why;
  if (nearest) {
    double usable = problem.cluster.device.usableBytes;
    why.constraint = "memory: the layout that comes nearest (" + describe(*nearest) + ") needs " +
                     gib(usable + overflowBytes) + " on its fullest stage, context included, " + gib(overflowBytes) +
                     " more than the " + gib(usable) + " that are usable on a " + problem.cluster.device.name;
  } else {
    // The constraint that the layouts which come furthest fail at.
    const auto &rejections = space.getRejections();
    for (const char *constraint : {"dp", "sequence length", "heads", "global batch", "layers", "tp overlap"})
      if (auto rejection = rejections.find(constraint); rejection != rejections.end())
        why.constraint = std::string(constraint) + ": " + rejection->second.example;
    if (why.constraint.empty())
      why.constraint = "no grid of the choices has " + std::to_string(problem.gpus) + " ranks";
  }
  // The nearest change is one choice let go: those that cost least to change first.
  const Relaxation relaxations[] = {freeing("recompute", &Choices::recompute),
                                    freeing("zero", &Choices::zero),
                                    freeing("run", &Choices::run),
                                    freeing("schedule", &Choices::schedules),
                                    freeing("microbatch", &Choices::microbatch),
                                    freeing("layers per chunk", &Choices::layersPerChunk),
                                    freeing("chunks", &Choices::chunks),
                                    freeing("dp", &Choices::dp),
                                    freeing("cp", &Choices::cp),
                                    freeing("tp", &Choices::tp),
                                    freeing("pp", &Choices::pp)};
  for (const Relaxation &relaxation : relaxations) {
    Problem freed = problem;
    if (!relaxation.relax(freed.choices))
      continue;
    // A grid of four given sizes leaves none to be let go alone: dp follows the others.
    if (std::string(relaxation.name).size() == 2 && std::string(relaxation.name) != "dp")
      freed.choices.dp.clear();
    if (std::optional<Plan> plan = solveFreed(freed)) {
      why.change = "with " + std::string(relaxation.name) + " free this fits: " + describe(*plan);
      return why;
    }
  }
  return why;
}
