//===- Search.cpp - the best layouts --------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/Search.h"
#include "PlaceAxes.h"
#include "Space.h"
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

using namespace drover;
using namespace drover::planner;
using schedule::Error;
using schedule::Plan;
using schedule::Result;

namespace {

/// Seconds of one microbatch in the bodies of a grid.
struct UnitSeconds {
  std::array<double, 2> layer{}, embed{}, head{}; // forward, backward
  double slowest = 0;
};

class Solver {
public:
  Solver(const Problem &problem, const Progress &progress)
      : problem(problem), progress(progress), space(problem), within{{usable(), {}}} {}

  Result<Solution> run(bool useBounds, bool withReasons = true);
  Result<std::vector<std::optional<RankedPlan>>> runWithin(std::vector<double> limits);

private:
  /// The fastest layouts so far that need no more than so many bytes on their fullest stage.
  struct Within {
    double bytes = 0;
    std::vector<RankedPlan> plans;
  };

  std::optional<Error> visitGroups(size_t &done);
  std::optional<Error> boundGroups();
  Result<UnitSeconds> unitsOf(const LayoutGroup &group, const cluster::AxisOrder &order);
  double boundOf(const LayoutGroup &group, const UnitSeconds &units) const;
  double refinedBound(const Plan &plan, const LayoutCosts &costs) const;
  const cluster::AxisOrder &orderOf(const LayoutGroup &group);
  bool mayCount(const LayoutGroup &group, const cluster::AxisOrder &order);
  std::optional<Error> visit(const Plan &plan, const cluster::AxisOrder &order, double &seconds);
  Result<std::shared_ptr<const ReplayProgram>> programOf(const Plan &plan, int64_t microbatches);
  void keep(RankedPlan ranked);
  void noteOverflow(const Layout &layout, double bytes);
  /// Seconds that a layout of at least so many bytes has to be below to count.
  double worst(double bytes) const;
  double leastBytes(const Plan &plan, const ReplayProgram *program = nullptr) const;
  int64_t microbatchesOf(const Plan &plan) const { return problem.globalBatch / (plan.microbatch * plan.dp); }
  double usable() const { return problem.cluster.device.usableBytes - problem.cluster.device.contextBytes; }

  const Problem &problem;
  const Progress &progress;
  Space space;
  bool useBounds = true;
  std::vector<LayoutGroup> groups;
  Solution solution;
  std::vector<Within> within; // by falling limits; the first is the device's
  std::map<std::array<int64_t, 4>, cluster::AxisOrder> orders;
  std::map<std::pair<std::array<int64_t, 7>, cluster::AxisOrder>, UnitSeconds> units;
  cluster::SpanCache spans;
  std::map<std::vector<int64_t>, std::shared_ptr<const ReplayProgram>> programs;
  std::vector<std::pair<double, Layout>> nearest; // that do not fit, by a bound of the bytes they need; few
};

const cluster::AxisOrder &Solver::orderOf(const LayoutGroup &group) {
  std::array<int64_t, 4> key = {group.tp, group.cp, group.pp, group.dp};
  auto known = orders.find(key);
  if (known == orders.end())
    known = orders.emplace(key, problem.order ? *problem.order : placeAxes(problem, space.planOf(group), spans)).first;
  return known->second;
}

/// TP and CP lie innermost in the usual order, whatever else the grid has; in other orders all of it counts.
Result<UnitSeconds> Solver::unitsOf(const LayoutGroup &group, const cluster::AxisOrder &order) {
  bool usual = order == cluster::kDefaultOrder;
  std::array<int64_t, 7> key = {group.tp,         group.cp,        usual ? 0 : group.pp, usual ? 0 : group.dp,
                                group.microbatch, group.recompute, group.tpOverlap};
  auto known = units.find({key, order});
  if (known != units.end())
    return known->second;
  Plan plan = space.planOf(group);
  Layout layout{plan, order};
  layout.plan.chunks = 1;
  layout.plan.run = {};
  layout.plan.kind = std::nullopt;
  layout.plan.layersPerChunk.assign(static_cast<size_t>(plan.pp), 0);
  layout.plan.layersPerChunk.front() = problem.model.layers;
  layout.plan.globalBatches = {plan.microbatch * plan.dp * plan.pp};
  Result<LayoutCosts> costs = priceLayout(problem.model, problem.cluster, layout, problem.software, &spans);
  if (!costs)
    return Error{costs.error()};
  UnitSeconds unit;
  for (size_t phase = 0; phase < 2; ++phase) {
    unit.layer[phase] = costs->chunks.front()[phase].total() / static_cast<double>(problem.model.layers);
    // Where one chunk is both ends, all of it counts as the head's.
    unit.embed[phase] = plan.pp > 1 ? costs->ends.front()[phase] : 0;
    unit.head[phase] = costs->ends.back()[phase];
  }
  unit.slowest = costs->slowest;
  return units.emplace(std::make_pair(key, order), unit).first->second;
}

/// No stage starts before its first microbatch came through the stages before it, nor do these end before its last
/// gradient came back: whatever the schedule, messages free. A split backward hands on its first part.
double Solver::boundOf(const LayoutGroup &group, const UnitSeconds &unit) const {
  auto microbatches = static_cast<double>(space.microbatchesOf(group));
  const std::vector<int64_t> &layers = space.layersOf(group);
  size_t chunks = layers.size(), stages = static_cast<size_t>(group.pp);
  std::vector<double> work(stages, 0), fill(stages, 0);
  bool handsOnEarly = space.hasSplit(group);
  double before = 0;
  for (size_t c = 0; c < chunks; ++c) {
    double forward = unit.layer[0] * static_cast<double>(layers[c]);
    double backward = unit.layer[1] * static_cast<double>(layers[c]);
    if (c == 0)
      forward += unit.embed[0], backward += unit.embed[1];
    if (c + 1 == chunks)
      forward += unit.head[0], backward += unit.head[1];
    work[c % stages] += forward + backward;
    if (c < stages) {
      fill[c] = before;
      before += forward + (handsOnEarly ? 0 : backward);
    }
  }
  double bound = 0;
  for (size_t s = 0; s < stages; ++s)
    bound = std::max(bound, fill[s] + microbatches * work[s]);
  return bound * (1 + unit.slowest);
}

/// The same with messages and DP's exchange. On every stage
/// - the reduction of its first chunk follows the last backward of all;
/// - the last gather precedes all backwards, and the forwards of the last chunk: of any microbatch these come first;
/// - no reduction of the last run starts before all forwards and the last chunk's backwards are done.
double Solver::refinedBound(const Plan &plan, const LayoutCosts &costs) const {
  auto microbatches = static_cast<double>(costs.microbatches);
  auto stages = static_cast<size_t>(plan.pp);
  const std::vector<std::array<double, 3>> &phases = costs.replay.phases;
  auto exchangeOf = [](const std::vector<double> &list, size_t chunk) { return list.empty() ? 0 : list[chunk]; };
  double bound = 0, fill = 0;
  for (size_t s = 0; s < stages; ++s) {
    double forwards = 0, backwards = 0, gathers = 0, reductions = 0;
    size_t last = s;
    for (size_t c = s; c < phases.size(); c += stages) {
      forwards += phases[c][0];
      backwards += phases[c][1] + phases[c][2];
      gathers += exchangeOf(costs.replay.gathers, c);
      reductions += exchangeOf(costs.replay.reductions, c);
      last = c;
    }
    double tail = exchangeOf(costs.replay.reductions, s);
    double work = fill + microbatches * (forwards + backwards) + tail;
    if (s == 0)
      work += exchangeOf(costs.replay.gathers, 0);
    double gathered = gathers + microbatches * (phases[last][0] + backwards) + tail;
    double reduced = fill + microbatches * (forwards + phases[last][1] + phases[last][2]) + reductions;
    bound = std::max({bound, work, gathered, reduced});
    fill += phases[s][0] + phases[s][1];
    if (!costs.replay.transfers.empty() && s + 1 < stages)
      fill += costs.replay.transfers[s][0] + costs.replay.transfers[s + 1][1];
  }
  return costs.stepSeconds(bound);
}

std::optional<Error> Solver::boundGroups() {
  std::optional<Error> error;
  space.forEachGroup([&](const LayoutGroup &group) {
    if (error)
      return;
    Result<UnitSeconds> unit = unitsOf(group, orderOf(group));
    if (!unit) {
      error = Error{unit.error()};
      return;
    }
    groups.push_back(group);
    groups.back().bound = std::nextafter(static_cast<float>(boundOf(group, *unit)), 0.0f);
  });
  // Groups of one bound keep the order of the space.
  std::vector<uint32_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::make_pair(groups[a].bound, a) < std::make_pair(groups[b].bound, b);
  });
  std::vector<LayoutGroup> sorted;
  sorted.reserve(groups.size());
  for (uint32_t i : order)
    sorted.push_back(groups[i]);
  groups = std::move(sorted);
  return error;
}

/// Programs depend on the order and on what is exchanged when, not on seconds.
Result<std::shared_ptr<const ReplayProgram>> Solver::programOf(const Plan &plan, int64_t microbatches) {
  Result<std::vector<int64_t>> split = schedule::groupsOf(plan, microbatches);
  if (!split)
    return Error{split.error()};
  std::vector<int64_t> key = {
      plan.pp, plan.chunks,      static_cast<int64_t>(plan.schedule()), plan.isSharded() ? plan.zero : 0,
      plan.tp, plan.cp * plan.dp};
  key.insert(key.end(), split->begin(), split->end());
  key.insert(key.end(), plan.layersPerChunk.begin(), plan.layersPerChunk.end());
  std::shared_ptr<const ReplayProgram> &program = programs[key];
  if (!program) {
    Result<ReplayProgram> built = ReplayProgram::build(plan, microbatches, chunkShapeOf(problem.model, plan));
    if (!built)
      return Error{built.error()};
    program = std::make_shared<const ReplayProgram>(std::move(*built));
  }
  return program;
}

void Solver::noteOverflow(const Layout &layout, double bytes) {
  constexpr size_t kMostKept = 8;
  if (nearest.size() == kMostKept && bytes >= nearest.back().first)
    return;
  auto place = std::upper_bound(nearest.begin(), nearest.end(), bytes,
                                [](double value, const auto &kept) { return value < kept.first; });
  place = nearest.insert(place, {bytes, layout});
  place->second.plan.order = cluster::namesOf(layout.order);
  if (nearest.size() > kMostKept)
    nearest.pop_back();
}

/// Within less memory the fastest is slower: what fits there is among the others too.
double Solver::worst(double bytes) const {
  for (size_t i = within.size(); i-- > 0;)
    if (bytes <= within[i].bytes)
      return static_cast<int64_t>(within[i].plans.size()) < problem.top ? std::numeric_limits<double>::infinity()
                                                                        : within[i].plans.back().projection.stepSeconds;
  return 0;
}

double Solver::leastBytes(const Plan &plan, const ReplayProgram *program) const {
  Result<std::vector<int64_t>> split = schedule::groupsOf(plan, microbatchesOf(plan));
  assert(split && "a layout of the space");
  return leastMemoryOf(problem.model, plan, *split, program);
}

void Solver::keep(RankedPlan ranked) {
  for (Within &each : within) {
    if (ranked.peakBytes() > each.bytes)
      break;
    auto place =
        std::upper_bound(each.plans.begin(), each.plans.end(), ranked, [](const RankedPlan &a, const RankedPlan &b) {
          return a.projection.stepSeconds < b.projection.stepSeconds;
        });
    each.plans.insert(place, ranked);
    if (static_cast<int64_t>(each.plans.size()) > problem.top)
      each.plans.pop_back();
  }
}

/// Whether a layout of a group may count by the least memory of its layouts and the group's bound of time.
bool Solver::mayCount(const LayoutGroup &group, const cluster::AxisOrder &order) {
  for (const Plan &plan : space.expand(group, /*mostSharded=*/true)) {
    double bytes = leastBytes(plan);
    if (group.bound < worst(bytes))
      return true;
    if (bytes > usable())
      noteOverflow({plan, order}, bytes);
  }
  return false;
}

/// Sets `seconds`, at first a bound, where it finds them out.
std::optional<Error> Solver::visit(const Plan &plan, const cluster::AxisOrder &order, double &seconds) {
  int64_t microbatches = microbatchesOf(plan);
  double bytes = 0;
  if (useBounds) {
    bytes = leastBytes(plan);
    if (bytes > usable())
      noteOverflow({plan, order}, bytes);
    if (seconds >= worst(bytes))
      return std::nullopt;
  }
  Layout layout{plan, order};
  Result<LayoutCosts> costs = priceLayout(problem.model, problem.cluster, layout, problem.software, &spans);
  ++solution.priced;
  if (!costs)
    return Error{costs.error()};
  double bound = refinedBound(plan, *costs);
  if (useBounds && bound >= worst(bytes))
    return std::nullopt;
  Result<std::shared_ptr<const ReplayProgram>> program = programOf(plan, microbatches);
  if (!program)
    return Error{program.error()};
  if (useBounds) {
    bytes = leastBytes(plan, program->get());
    if (bytes > usable())
      noteOverflow(layout, bytes);
    if (bound >= worst(bytes))
      return std::nullopt;
  }
  RankedPlan ranked;
  ranked.layout = std::move(layout);
  ranked.projection = project(problem.model, problem.cluster, plan, *costs, **program);
  ++solution.replayed;
  seconds = ranked.projection.stepSeconds;
  if (ranked.projection.stepSeconds >= worst(bytes))
    return std::nullopt;
  ranked.memory = memoryOf(problem.model, plan, **program);
  ranked.fits = fitsOn(problem.cluster.device, ranked.memory);
  if (!ranked.fits)
    noteOverflow(ranked.layout, ranked.peakBytes());
  else
    keep(std::move(ranked));
  return std::nullopt;
}

/// All groups from `done` on that may count.
std::optional<Error> Solver::visitGroups(size_t &done) {
  if (std::optional<Error> error = boundGroups())
    return error;
  for (; done < groups.size(); ++done) {
    double bound = groups[done].bound;
    if (useBounds && bound >= worst(0))
      break;
    if (progress && done % 256 == 0)
      progress(static_cast<int64_t>(done), static_cast<int64_t>(groups.size()),
               within[0].plans.empty() ? 0 : within[0].plans.front().projection.stepSeconds);
    // With more sharded nothing else is earlier: accumulators and then parameters wait for others' memory. A run's
    // layouts come from zero 1 on, so that the one before bounds the next.
    std::map<std::pair<schedule::ScheduleKind, int64_t>, double> fastest;
    const cluster::AxisOrder &order = orderOf(groups[done]);
    if (useBounds && !mayCount(groups[done], order)) {
      solution.searched += space.countLayouts(groups[done]);
      continue;
    }
    for (Plan &plan : space.expand(groups[done])) {
      ++solution.searched;
      plan.order = cluster::namesOf(order);
      double ignored = bound;
      double &least =
          plan.zero > 0 ? fastest.try_emplace({plan.schedule(), plan.run.front()}, bound).first->second : ignored;
      if (std::optional<Error> error = visit(plan, order, least))
        return error;
    }
  }
  return std::nullopt;
}

Result<std::vector<std::optional<RankedPlan>>> Solver::runWithin(std::vector<double> limits) {
  within.clear();
  for (double bytes : limits)
    within.push_back({bytes, {}});
  size_t done = 0;
  if (std::optional<Error> error = visitGroups(done))
    return *error;
  std::vector<std::optional<RankedPlan>> fastest(limits.size());
  for (size_t i = 0; i < limits.size(); ++i)
    if (!within[i].plans.empty())
      fastest[i] = std::move(within[i].plans.front());
  return std::move(fastest);
}

Result<Solution> Solver::run(bool bounded, bool withReasons) {
  useBounds = bounded;
  size_t done = 0;
  if (std::optional<Error> error = visitGroups(done))
    return *error;
  solution.limits = space.describeLimits();
  solution.plans = std::move(within[0].plans);
  for (; done < groups.size(); ++done)
    solution.searched += space.countLayouts(groups[done]);
  if (!solution.plans.empty()) {
    solution.provenSeconds = solution.plans.back().projection.stepSeconds;
    return std::move(solution);
  }
  double leastOverflow = 0;
  if (!nearest.empty())
    solution.nearest = nearest.front().second;
  if (!nearest.empty() && withReasons) {
    // What was noted may be a bound of what it needs.
    std::optional<RankedPlan> least;
    for (const auto &[bytes, layout] : nearest) {
      if (least && bytes >= least->peakBytes())
        break;
      Result<RankedPlan> next = evaluate(problem, layout);
      if (!next)
        return Error{next.error()};
      if (!least || next->peakBytes() < least->peakBytes())
        least = std::move(*next);
    }
    solution.nearest = least->layout;
    leastOverflow = least->peakBytes() - usable();
    // A layout that is given in full is answered whether it fits or not.
    if (solution.searched == 1) {
      solution.priced = solution.replayed = 1;
      solution.plans.push_back(std::move(*least));
      solution.provenSeconds = solution.plans.front().projection.stepSeconds;
    }
  }
  if (withReasons)
    solution.infeasible =
        explainInfeasible(problem, space, solution.nearest ? &solution.nearest->plan : nullptr, leastOverflow);
  return std::move(solution);
}

} // namespace

const StageMemory &RankedPlan::fullest() const {
  assert(!memory.empty() && "a plan has stages");
  return *std::max_element(memory.begin(), memory.end(),
                           [](const StageMemory &a, const StageMemory &b) { return a.total() < b.total(); });
}

bool planner::fitsOn(const cluster::Device &device, const std::vector<StageMemory> &memory) {
  return std::all_of(memory.begin(), memory.end(), [&](const StageMemory &stage) {
    return stage.total() + device.contextBytes <= device.usableBytes;
  });
}

Result<DetailedPlan> planner::detail(const Problem &problem, const Layout &layout) {
  Result<LayoutCosts> costs = priceLayout(problem.model, problem.cluster, layout, problem.software);
  if (!costs)
    return Error{costs.error()};
  Result<ReplayProgram> program =
      ReplayProgram::build(layout.plan, costs->microbatches, chunkShapeOf(problem.model, layout.plan));
  if (!program)
    return Error{program.error()};
  RankedPlan ranked;
  ranked.layout = layout;
  ranked.projection = project(problem.model, problem.cluster, layout.plan, *costs, *program);
  ranked.memory = memoryOf(problem.model, layout.plan, *program);
  ranked.fits = fitsOn(problem.cluster.device, ranked.memory);
  return DetailedPlan{std::move(ranked), std::move(*costs), std::move(*program)};
}

Result<RankedPlan> planner::evaluate(const Problem &problem, const Layout &layout) {
  Result<DetailedPlan> detailed = detail(problem, layout);
  if (!detailed)
    return Error{detailed.error()};
  return std::move(detailed->ranked);
}

Result<Solution> planner::solve(const Problem &problem, const Progress &progress) {
  return Solver(problem, progress).run(/*bounded=*/true);
}

Result<Solution> planner::solveOnly(const Problem &problem) {
  return Solver(problem, {}).run(/*bounded=*/true, /*withReasons=*/false);
}

Result<std::vector<std::optional<RankedPlan>>> planner::solveWithin(const Problem &problem, std::vector<double> limits,
                                                                    const Progress &progress) {
  return Solver(problem, progress).runWithin(std::move(limits));
}

Result<Solution> planner::solveByEnumeration(const Problem &problem) {
  return Solver(problem, {}).run(/*bounded=*/false);
}

std::optional<Error> planner::verify(const Problem &problem, const Solution &solution) {
  double before = 0;
  for (const RankedPlan &plan : solution.plans) {
    if (std::optional<Error> error = schedule::checkPlan(plan.layout.plan))
      return error;
    Result<RankedPlan> again = evaluate(problem, plan.layout);
    if (!again)
      return Error{again.error()};
    auto differs = [](double a, double b) { return std::abs(a - b) > 1e-9 * std::abs(b); };
    double seconds = plan.projection.stepSeconds;
    if (differs(seconds, again->projection.stepSeconds))
      return Error{"a plan's step takes " + std::to_string(again->projection.stepSeconds) + " s, not " +
                   std::to_string(seconds)};
    if (differs(plan.projection.breakdown.total(), seconds))
      return Error{"the parts of a step add up to " + std::to_string(plan.projection.breakdown.total()) + " s, not " +
                   std::to_string(seconds)};
    if (differs(plan.peakBytes(), again->peakBytes()) || plan.fits != again->fits)
      return Error{"a plan's peak is " + std::to_string(again->peakBytes()) + " bytes, not " +
                   std::to_string(plan.peakBytes())};
    if (seconds < before)
      return Error{"plans are not ranked by the time of a step"};
    before = seconds;
  }
  return std::nullopt;
}
