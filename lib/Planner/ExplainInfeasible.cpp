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

/// The best layout of a problem that is changed, if any fits.
std::optional<Plan> solveChanged(Problem problem) {
  problem.top = 1;
  if (checkProblem(problem))
    return std::nullopt;
  schedule::Result<Solution> solution = solveOnly(problem);
  if (!solution || solution->plans.empty() || !solution->plans.front().fits)
    return std::nullopt;
  return solution->plans.front().layout.plan;
}

/// With the choices as they are: twice, three times, .. as many GPUs, as far as the cluster has them.
std::optional<Plan> solveWithMore(Problem problem) {
  problem.choices.dp.clear();
  const int64_t given = problem.gpus;
  for (int64_t unit = 1; given <= problem.cluster.gpus() / (2 * unit); unit *= 2)
    for (int64_t times : {2 * unit, 3 * unit}) {
      if (given > problem.cluster.gpus() / times)
        break;
      problem.gpus = given * times;
      if (std::optional<Plan> plan = solveChanged(problem))
        return plan;
    }
  return std::nullopt;
}

/// One choice let go, those that cost least to change first; else all of them; else more GPUs. Where none of these fits
/// that is said too.
std::string nearestChange(const Problem &problem) {
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
  int given = 0;
  for (const Relaxation &relaxation : relaxations) {
    Problem freed = problem;
    if (!relaxation.relax(freed.choices))
      continue;
    ++given;
    // A grid of four given sizes leaves none to be let go alone: dp follows the others.
    if (std::string(relaxation.name).size() == 2 && std::string(relaxation.name) != "dp")
      freed.choices.dp.clear();
    if (std::optional<Plan> plan = solveChanged(freed))
      return "with " + std::string(relaxation.name) + " free this fits: " + describe(*plan);
  }
  if (given > 1) {
    Problem freed = problem;
    freed.choices = {};
    if (std::optional<Plan> plan = solveChanged(freed))
      return "no one choice let go is enough; with all of them free this fits: " + describe(*plan);
  }
  if (std::optional<Plan> plan = solveWithMore(problem))
    return (given > 0 ? "no choice let go is enough; with " : "with ") +
           std::to_string(plan->tp * plan->cp * plan->pp * plan->dp) + " GPUs this fits: " + describe(*plan);
  return (given > 0 ? "no choice let go is enough, nor are more GPUs" : "more GPUs are not enough") +
         (", up to the " + std::to_string(problem.cluster.gpus())) + " of " + problem.cluster.name;
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
  why.change = nearestChange(problem);
  return why;
}
