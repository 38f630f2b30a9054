//===- ReportText.cpp - the answer of a search on a terminal --------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Text.h"
#include "drover/Planner/Report.h"
#include <algorithm>
#include <sstream>

using namespace drover;
using namespace drover::planner;

namespace {
/// Stages that a terminal shows one by one.
constexpr size_t kMostStages = 16;

void printHeader(std::ostream &os, const Report &report) {
  const Problem &problem = *report.problem;
  const Solution &solution = report.solution;
  os << report.modelName << ", " << counted(static_cast<double>(problem.model.parameters())) << " parameters, on "
     << grouped(static_cast<double>(problem.gpus)) << " of " << problem.cluster.name << "'s "
     << grouped(static_cast<double>(problem.cluster.gpus())) << " " << problem.cluster.device.name << "; "
     << plural(problem.globalBatch, "sequence") << " of " << plural(problem.sequence, "token") << " a step\n"
     << plural(solution.searched, "layout") << " searched in " << duration(report.elapsedSeconds) << ": "
     << grouped(static_cast<double>(solution.priced)) << " priced, " << grouped(static_cast<double>(solution.replayed))
     << " replayed" << (solution.replayed < solution.searched ? ", the rest ruled out by bounds" : "") << "\n";
  if (!solution.limits.empty())
    os << "looked at: " << solution.limits << "\n";
}

std::vector<std::string> rowOf(const Report &report, const RankedPlan &plan, const std::string &label) {
  std::vector<std::string> row = {label};
  for (const auto &[name, value] : optionsOf(plan.layout))
    if (name != "order")
      row.push_back(value);
  const Projection &projection = plan.projection;
  for (const std::string &cell :
       {seconds(projection.stepSeconds), fixed(100 * projection.mfu(), 1),
        fixed(projection.flopsPerSecondPerGpu(report.count) / 1e12, 0), fixed(projection.tokensPerSecondPerGpu(), 0),
        fixed(std::max(0.0, projection.bubbleRatio), 3), gib(plan.peakBytes()) + (plan.fits ? "" : " !")})
    row.push_back(cell);
  return row;
}

std::vector<std::string> headerOf(const Report &report, const std::string &label) {
  std::vector<std::string> header = {label};
  Layout none;
  for (const auto &[name, value] : optionsOf(none))
    if (name != "order")
      header.push_back(name == "microbatch"         ? "B"
                       : name == "chunks"           ? "V"
                       : name == "run"              ? "N"
                       : name == "layers per chunk" ? "layers"
                       : name == "tp overlap"       ? "overlap"
                                                    : name);
  for (const char *name : {"step s", "MFU %", "TFLOP/s", "tokens/s", "bubble", "peak"})
    header.emplace_back(name);
  if (report.count != cost::FlopsCount::Causal)
    header[header.size() - 4] += report.count == cost::FlopsCount::Full ? " full" : " hw";
  return header;
}

/// Schedule, layers, recompute and overlap are words.
const std::vector<size_t> kWords = {8, 9, 10, 12};

void printTable(std::ostream &os, const Report &report) {
  TextTable table(headerOf(report, "#"));
  const std::vector<RankedPlan> &plans = report.solution.plans;
  for (size_t i = 0; i < plans.size(); ++i)
    table.add(rowOf(report, plans[i], std::to_string(i + 1)));
  os << "\n" << table.print("", kWords);
  if (std::any_of(plans.begin(), plans.end(), [](const RankedPlan &plan) { return !plan.fits; }))
    os << "! more than the " << gib(report.problem->cluster.device.usableBytes) << " of a "
       << report.problem->cluster.device.name << " with its context of "
       << gib(report.problem->cluster.device.contextBytes) << "\n";
}

void printParts(std::ostream &os, const Projection &projection) {
  // As many digits as the step has, so that they add up.
  int digits = projection.stepSeconds < 0.1 ? 6 : 4;
  TextTable table({"part", "seconds", "%"});
  auto add = [&](const char *name, double value) {
    if (value > 0)
      table.add({name, fixed(value, digits), fixed(100 * value / projection.stepSeconds, 1)});
  };
  for (auto [name, value] : partsOf(projection.breakdown))
    add(name, value);
  add("step", projection.stepSeconds);
  os << "\nwhere the time goes (the stage with most work)\n" << table.print("  ", {0});
}

void printMemory(std::ostream &os, const RankedPlan &plan, const cluster::Device &device) {
  std::vector<std::string> header = {"stage", "total"};
  for (auto [name, bytes] : partsOf(StageMemory()))
    header.emplace_back(name);
  TextTable table(std::move(header));
  auto fullest = static_cast<size_t>(&plan.fullest() - plan.memory.data());
  for (size_t stage = 0; stage < plan.memory.size(); ++stage) {
    if (plan.memory.size() > kMostStages && stage > 0 && stage != fullest && stage + 1 < plan.memory.size())
      continue;
    std::vector<std::string> row = {std::to_string(stage), gib(plan.memory[stage].total())};
    for (auto [name, bytes] : partsOf(plan.memory[stage]))
      row.push_back(fixed(bytes / (1 << 30), 2));
    table.add(std::move(row));
  }
  os << "\nmemory of a rank by pipeline stage in GiB; the device has " << gib(device.usableBytes) << ", of which "
     << gib(device.contextBytes) << " for its context\n"
     << table.print("  ");
}

void printTraffic(std::ostream &os, const Report &report) {
  os << "\nplacement\n";
  for (const std::string &line : cluster::printPlacement(placementOf(*report.problem, report.best->ranked.layout)))
    os << "  " << line << "\n";
  TextTable table({"axis", "sent by a rank", "shows"});
  for (const AxisTraffic &axis : trafficOf(*report.problem, *report.best))
    table.add({axis.placement.axes.str(), gib(axis.sentBytes), duration(axis.exposedSeconds)});
  os << table.print("  ", {0});
}

void printComparison(std::ostream &os, const Comparison &comparison) {
  TextTable options({"option", "best", "other"});
  for (const Comparison::Option &option : comparison.differences())
    options.add({option.name, option.best, option.other});
  TextTable parts({"seconds of a step", "best", "other", "difference"});
  auto addParts = [&](TextTable &table, const std::string &name, double best, double other, double unit, int digits) {
    if (best == 0 && other == 0)
      return;
    std::string difference = fixed((other - best) / unit, digits);
    if (difference == "-" + fixed(0, digits))
      difference.erase(0, 1);
    if (difference.front() != '-')
      difference.insert(0, "+");
    table.add({name, fixed(best / unit, digits), fixed(other / unit, digits), difference});
  };
  int digits = comparison.best.projection.stepSeconds < 0.1 ? 6 : 4;
  auto best = partsOf(comparison.best.projection.breakdown), other = partsOf(comparison.other.projection.breakdown);
  for (size_t i = 0; i < best.size(); ++i)
    addParts(parts, best[i].first, best[i].second, other[i].second, 1, digits);
  addParts(parts, "step", comparison.best.projection.stepSeconds, comparison.other.projection.stepSeconds, 1, digits);
  TextTable memory({"GiB of the fullest stage", "best", "other", "difference"});
  const StageMemory &ofBest = comparison.best.fullest(), &ofOther = comparison.other.fullest();
  auto bestBytes = partsOf(ofBest), otherBytes = partsOf(ofOther);
  for (size_t i = 0; i < bestBytes.size(); ++i)
    addParts(memory, bestBytes[i].first, bestBytes[i].second, otherBytes[i].second, 1 << 30, 2);
  addParts(memory, "total", ofBest.total(), ofOther.total(), 1 << 30, 2);
  double ratio = comparison.other.projection.stepSeconds / comparison.best.projection.stepSeconds;
  os << "\nthe best against another: the other takes " << fixed(ratio, 3) << " times as long"
     << (comparison.other.fits ? "" : " and does not fit") << "\n"
     << options.print("  ", {0}) << parts.print("  ", {0}) << memory.print("  ", {0});
}

void printPareto(std::ostream &os, const Report &report) {
  TextTable table(headerOf(report, "within"));
  for (const ParetoPoint &point : report.pareto)
    table.add(rowOf(report, point.plan, gib(point.limitBytes)));
  os << "\nless memory, more time: the fastest layout within each limit\n" << table.print("  ", kWords);
}

void printGoodput(std::ostream &os, const Report &report) {
  if (!report.goodput) {
    if (!report.noGoodput.empty())
      os << "\ngoodput: " << report.noGoodput << "\n";
    return;
  }
  const Goodput &goodput = *report.goodput;
  os << "\ngoodput: an unexpected failure every " << fixed(goodput.hoursBetweenFailures, 1) << " h";
  for (size_t i = 0; i < std::min<size_t>(3, goodput.causes.size()); ++i)
    os << (i ? ", " : "; a day ") << goodput.causes[i].name << " " << fixed(goodput.causes[i].perDay, 2);
  os << "\n";
  TextTable table({"checkpoint", "pause", "durable in", "every", "steps", "Young", "Daly", "effective %", "paused %",
                   "repeated %", "restarting %", "planned %"});
  for (const Checkpointing &mode : goodput.modes)
    table.add({nameOf(mode.mode), duration(mode.pauseSeconds), duration(mode.durableSeconds),
               duration(mode.bestSeconds), std::to_string(mode.bestSteps), duration(mode.youngSeconds),
               duration(mode.dalySeconds), fixed(100 * mode.effective, 2), fixed(100 * mode.paused, 2),
               fixed(100 * mode.repeated, 2), fixed(100 * mode.restarting, 2), fixed(100 * mode.planned, 2)});
  os << table.print("  ", {0});
  if (goodput.days > 0)
    os << "  token budget: " << grouped(goodput.steps) << " steps in " << fixed(goodput.days, 1) << " days with "
       << fixed(goodput.failures, 0) << " failures, " << grouped(goodput.gpuHours) << " GPU hours\n";
}
} // namespace

std::string planner::reportText(const Report &report) {
  std::ostringstream os;
  printHeader(os, report);
  if (!report.solution.plans.empty())
    printTable(os, report);
  if (report.solution.infeasible) {
    os << "\nnothing fits: " << report.solution.infeasible->constraint << "\n";
    if (!report.solution.infeasible->change.empty())
      os << report.solution.infeasible->change << "\n";
  }
  if (!report.pareto.empty())
    printPareto(os, report);
  if (report.best) {
    printParts(os, report.best->ranked.projection);
    printMemory(os, report.best->ranked, report.problem->cluster.device);
    printTraffic(os, report);
  }
  if (report.comparison)
    printComparison(os, *report.comparison);
  printGoodput(os, report);
  if (!report.compileCommand.empty())
    os << "\n" << report.compileCommand << "\n";
  return os.str();
}
