//===- ReportTest.cpp - the answer of a search for readers ----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/Report.h"
#include "TestProblems.h"
#include "drover/Schedule/Serialize.h"
#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

using namespace drover;
using namespace drover::planner;

namespace {

Problem makeSmallProblem() {
  Problem problem = makeProblem(8);
  problem.choices.tp = {1, 2, 4};
  problem.choices.recompute = {"none", "full"};
  problem.top = 3;
  return problem;
}

Report makeReport(const Problem &problem) {
  Report report;
  report.problem = &problem;
  report.modelName = "a <model> & more";
  schedule::Result<Solution> solution = solve(problem);
  EXPECT_TRUE(solution) << solution.error();
  report.solution = std::move(*solution);
  schedule::Result<DetailedPlan> best = detail(problem, report.solution.plans.front().layout);
  EXPECT_TRUE(best) << best.error();
  report.best = std::move(*best);
  return report;
}

TEST(Report, jsonHasEveryFigureAndItsPlanReadsBack) {
  Problem problem = makeSmallProblem();
  Report report = makeReport(problem);
  nlohmann::json json = nlohmann::json::parse(reportJson(report));
  ASSERT_EQ(json["plans"].size(), 3u);
  const nlohmann::json &first = json["plans"][0];
  const RankedPlan &best = report.solution.plans.front();
  EXPECT_EQ(first["step_time_s"], best.projection.stepSeconds);
  EXPECT_EQ(first["peak_memory_bytes"].size(), static_cast<size_t>(best.layout.plan.pp));
  double sum = 0;
  for (const nlohmann::json &seconds : first["breakdown_s"])
    sum += seconds.get<double>();
  EXPECT_NEAR(sum, best.projection.stepSeconds, 1e-9);
  for (const char *key : {"tokens_per_s_per_gpu", "tflops_per_gpu", "mfu", "hfu", "bubble_ratio", "fits", "placement"})
    EXPECT_TRUE(first.contains(key)) << key;
  EXPECT_EQ(first["plan"]["hash"].get<std::string>().size(), 16u);
  EXPECT_GT(json["searched"], 100);
  // The whole answer, an entry, and the plan alone.
  for (const std::string &text : {reportJson(report), first.dump(), first["plan"].dump()}) {
    schedule::Result<schedule::Plan> plan = schedule::readPlan(text);
    ASSERT_TRUE(plan) << plan.error();
    EXPECT_EQ(schedule::serializePlan(*plan), schedule::serializePlan(best.layout.plan));
  }
}

TEST(Report, axesSendWhatTheirCollectivesAddUpTo) {
  Problem problem = makeSmallProblem();
  problem.choices.tp = {2};
  problem.choices.pp = {2};
  problem.choices.chunks = {1};
  problem.choices.zero = {2};
  Report report = makeReport(problem);
  const schedule::Plan &plan = report.best->ranked.layout.plan;
  std::vector<AxisTraffic> traffic = trafficOf(problem, *report.best);
  ASSERT_GE(traffic.size(), 2u);
  for (const AxisTraffic &axis : traffic) {
    if (axis.placement.axes == cluster::AxisSet(cluster::Axis::PP)) {
      // A stage sends every microbatch on, or its gradient back.
      double residual =
          2. * 4096 * 8192 * static_cast<double>(plan.microbatch) / static_cast<double>(plan.tp * plan.cp);
      double microbatches = 32. / static_cast<double>(plan.microbatch * plan.dp);
      EXPECT_DOUBLE_EQ(axis.sentBytes, residual * microbatches);
    } else if (axis.placement.axes == cluster::AxisSet(cluster::Axis::DP) && plan.cp == 1) {
      const std::vector<int64_t> &elements = report.best->costs.shape.elements;
      double share = static_cast<double>(plan.dp - 1) / static_cast<double>(plan.dp);
      EXPECT_NEAR(axis.sentBytes, static_cast<double>(std::max(elements[0], elements[1])) * 6 * share, 1);
    }
  }
}

TEST(Report, textSaysWhatIsBestAndWhy) {
  Problem problem = makeSmallProblem();
  Report report = makeReport(problem);
  report.compileCommand = "drover compile model.json";
  std::string text = reportText(report);
  for (const char *part : {"layouts searched in", "where the time goes", "memory of a rank by pipeline stage",
                           "placement", "drover compile model.json"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

TEST(Report, pageIsWholeAndEscaped) {
  Problem problem = makeSmallProblem();
  Report report = makeReport(problem);
  schedule::Result<std::vector<ParetoPoint>> points = paretoOf(problem, report.solution);
  ASSERT_TRUE(points) << points.error();
  report.pareto = std::move(*points);
  std::string page = reportHtml(report);
  EXPECT_NE(page.find("a &lt;model&gt; &amp; more"), std::string::npos);
  EXPECT_EQ(page.find("<model>"), std::string::npos);
  for (const char *tag : {"svg", "table", "div", "html", "body"}) {
    auto count = [&](const std::string &what) {
      size_t found = 0;
      for (size_t at = page.find(what); at != std::string::npos; at = page.find(what, at + 1))
        ++found;
      return found;
    };
    EXPECT_EQ(count("<" + std::string(tag)), count("</" + std::string(tag) + ">")) << tag;
  }
  // Nothing is loaded from elsewhere; the name space of SVG is only a name.
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_EQ(page.find("href="), std::string::npos);
}

TEST(Report, paretoTradesMemoryForTime) {
  Problem problem = makeSmallProblem();
  schedule::Result<Solution> solution = solve(problem);
  ASSERT_TRUE(solution) << solution.error();
  schedule::Result<std::vector<ParetoPoint>> points = paretoOf(problem, *solution);
  ASSERT_TRUE(points) << points.error();
  ASSERT_GT(points->size(), 1u);
  for (size_t i = 1; i < points->size(); ++i) {
    EXPECT_LE((*points)[i].plan.peakBytes(), (*points)[i].limitBytes);
    EXPECT_LT((*points)[i].plan.peakBytes(), (*points)[i - 1].plan.peakBytes());
    EXPECT_GE((*points)[i].plan.projection.stepSeconds, (*points)[i - 1].plan.projection.stepSeconds);
    // As a search of its own within that limit has it.
    Problem limited = problem;
    limited.cluster.device.usableBytes = (*points)[i].limitBytes + problem.cluster.device.contextBytes;
    schedule::Result<Solution> alone = solve(limited);
    ASSERT_TRUE(alone && !alone->plans.empty());
    EXPECT_DOUBLE_EQ((*points)[i].plan.projection.stepSeconds, alone->plans.front().projection.stepSeconds);
  }
}

TEST(Explain, comparesWithTheBestOfOtherChoices) {
  Problem problem = makeSmallProblem();
  schedule::Result<Solution> solution = solve(problem);
  ASSERT_TRUE(solution) << solution.error();
  Problem other = problem;
  ASSERT_FALSE(setChoices(other, "tp=4,recompute=full"));
  schedule::Result<Comparison> comparison = compareWith(problem, solution->plans.front(), other);
  ASSERT_TRUE(comparison) << comparison.error();
  EXPECT_EQ(comparison->other.layout.plan.tp, 4);
  EXPECT_EQ(comparison->other.layout.plan.recompute, "full");
  EXPECT_GE(comparison->other.projection.stepSeconds, comparison->best.projection.stepSeconds);
  bool hasRecompute = false;
  for (const Comparison::Option &option : comparison->differences())
    hasRecompute |= option.name == "recompute" && option.other == "full";
  EXPECT_TRUE(hasRecompute);
}

TEST(Explain, comparesWithWhatDoesNotFit) {
  Problem problem = makeSmallProblem();
  schedule::Result<Solution> solution = solve(problem);
  ASSERT_TRUE(solution) << solution.error();
  Problem other = problem;
  ASSERT_FALSE(setChoices(other, "tp=1,pp=1,cp=1,zero=0"));
  schedule::Result<Comparison> comparison = compareWith(problem, solution->plans.front(), other);
  ASSERT_TRUE(comparison) << comparison.error();
  EXPECT_FALSE(comparison->other.fits);
}

TEST(Explain, valuesHaveCommasToo) {
  Problem problem = makeSmallProblem();
  ASSERT_FALSE(setChoices(problem, "tp=2,4,order=tp,dp,pp,cp,recompute=none,full"));
  EXPECT_EQ(problem.choices.tp, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(problem.choices.recompute, (std::vector<std::string>{"none", "full"}));
  ASSERT_TRUE(problem.order);
  EXPECT_EQ(cluster::str(*problem.order), "tp,dp,pp,cp");
}

TEST(Explain, saysWhatIsNoChoice) {
  Problem problem = makeSmallProblem();
  EXPECT_EQ(setChoices(problem, "tp")->message, "'tp' is no choice: expected KEY=VALUE, separated by commas");
  EXPECT_EQ(setChoices(problem, "speed=1")->message, "unknown choice 'speed'");
  EXPECT_EQ(setChoices(problem, "tp=fast")->message, "tp is 'fast': expected a number");
  EXPECT_EQ(setChoices(problem, "tp=2,fast")->message, "tp is 'fast': expected a number");
}

} // namespace
