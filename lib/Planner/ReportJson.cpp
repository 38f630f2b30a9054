//===- ReportJson.cpp - the answer of a search for programs ---------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Text.h"
#include "drover/Planner/Report.h"
#include "drover/Schedule/Serialize.h"
#include <nlohmann/json.hpp>

using namespace drover;
using namespace drover::planner;
using schedule::Result;
using Json = nlohmann::ordered_json;

namespace {

template <typename Parts> Json partsJson(const Parts &parts) {
  Json json = Json::object();
  for (auto [name, value] : parts)
    json[name] = value;
  return json;
}

Json placementJson(const Problem &problem, const DetailedPlan &plan) {
  Json axes = Json::array();
  for (const AxisTraffic &axis : trafficOf(problem, plan)) {
    Json levels = Json::array();
    for (const cluster::Crossing &crossing : axis.placement.crossings)
      levels.push_back({{"level", problem.cluster.levels[crossing.level].name},
                        {"units", crossing.units},
                        {"mean_units", crossing.meanUnits},
                        {"sharing", crossing.sharing}});
    axes.push_back({{"axes", axis.placement.axes.str()},
                    {"groups", axis.placement.groups},
                    {"members", axis.placement.members},
                    {"levels", std::move(levels)},
                    {"sent_bytes", axis.sentBytes},
                    {"exposed_s", axis.exposedSeconds}});
  }
  return axes;
}

Json planJson(const Report &report, const RankedPlan &ranked) {
  const Projection &projection = ranked.projection;
  Json plan = Json::parse(schedule::serializePlan(ranked.layout.plan));
  plan["hash"] = hashOf(ranked.layout.plan);
  Json peaks = Json::array(), memory = Json::array();
  for (const StageMemory &stage : ranked.memory) {
    peaks.push_back(static_cast<int64_t>(stage.total()));
    memory.push_back(partsJson(partsOf(stage)));
  }
  Json json = {{"plan", std::move(plan)},
               {"step_time_s", projection.stepSeconds},
               {"tokens_per_s_per_gpu", projection.tokensPerSecondPerGpu()},
               {"tflops_per_gpu", projection.flopsPerSecondPerGpu(report.count) / 1e12},
               {"mfu", projection.mfu()},
               {"hfu", projection.hfu()},
               {"bubble_ratio", projection.bubbleRatio},
               {"peak_memory_bytes", std::move(peaks)},
               {"memory_bytes", std::move(memory)},
               {"fits", ranked.fits},
               {"breakdown_s", partsJson(partsOf(projection.breakdown))}};
  if (report.best && &ranked == &report.solution.plans.front()) // is known in full
    json["placement"] = placementJson(*report.problem, *report.best);
  else if (Result<DetailedPlan> detailed = detail(*report.problem, ranked.layout))
    json["placement"] = placementJson(*report.problem, *detailed);
  return json;
}

Json goodputJson(const Goodput &goodput) {
  Json causes = Json::array(), modes = Json::array();
  for (const CauseCount &cause : goodput.causes)
    causes.push_back({{"name", cause.name}, {"planned", cause.planned}, {"per_day", cause.perDay}});
  for (const Checkpointing &mode : goodput.modes)
    modes.push_back({{"mode", nameOf(mode.mode)},
                     {"pause_s", mode.pauseSeconds},
                     {"durable_s", mode.durableSeconds},
                     {"interval_s", mode.bestSeconds},
                     {"interval_steps", mode.bestSteps},
                     {"young_s", mode.youngSeconds},
                     {"daly_s", mode.dalySeconds},
                     {"effective", mode.effective},
                     {"paused", mode.paused},
                     {"repeated", mode.repeated},
                     {"restarting", mode.restarting},
                     {"planned", mode.planned}});
  Json json = {{"hours_between_failures", goodput.hoursBetweenFailures},
               {"causes", std::move(causes)},
               {"checkpoints", std::move(modes)},
               {"best", nameOf(goodput.getBest().mode)}};
  if (goodput.days > 0)
    json["budget"] = {{"steps", goodput.steps},
                      {"days", goodput.days},
                      {"gpu_hours", goodput.gpuHours},
                      {"failures", goodput.failures}};
  return json;
}
} // namespace

std::string planner::reportJson(const Report &report) {
  const Solution &solution = report.solution;
  Json plans = Json::array();
  for (const RankedPlan &plan : solution.plans)
    plans.push_back(planJson(report, plan));
  Json json = {{"plans", std::move(plans)},     {"searched", solution.searched}, {"priced", solution.priced},
               {"replayed", solution.replayed}, {"limits", solution.limits},     {"elapsed_s", report.elapsedSeconds}};
  if (solution.infeasible)
    json["infeasible"] = {{"constraint", solution.infeasible->constraint}, {"change", solution.infeasible->change}};
  if (!report.pareto.empty()) {
    json["pareto"] = Json::array();
    for (const ParetoPoint &point : report.pareto) {
      Json entry = planJson(report, point.plan);
      entry["limit_bytes"] = point.limitBytes;
      json["pareto"].push_back(std::move(entry));
    }
  }
  if (report.comparison)
    json["explain"] = planJson(report, report.comparison->other);
  if (report.goodput)
    json["goodput"] = goodputJson(*report.goodput);
  if (!report.compileCommand.empty())
    json["compile"] = report.compileCommand;
  return json.dump(2) + "\n";
}
