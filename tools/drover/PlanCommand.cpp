//===- PlanCommand.cpp - drover plan --------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ClusterOption.h"
#include "CommandContext.h"
#include "ModelOptions.h"
#include "PlanOptions.h"
#include "SearchOptions.h"
#include "Subcommands.h"
#include "drover/Pipelines/Compile.h"
#include "drover/Planner/Report.h"
#include "drover/Planner/Timeline.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/ToolOutputFile.h"
#include <chrono>

using namespace llvm;

namespace drover::tool {
namespace {

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A line on a terminal once a search is long, gone when it ends.
class ProgressLine {
public:
  void show(int64_t done, int64_t all, double best) {
    double now = secondsSince(start);
    if (!isTerminal || now < last + kEvery)
      return;
    last = now;
    errs() << "\r\033[K" << format("%.0f s", now) << ", groups of layouts looked at: " << done << " of " << all;
    if (best > 0)
      errs() << ", best step " << format("%.3f s", best);
    errs().flush();
  }
  ~ProgressLine() {
    if (last > 0)
      errs() << "\r\033[K";
  }

private:
  static constexpr double kEvery = 0.5;
  bool isTerminal = sys::Process::StandardErrIsDisplayed();
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double last = 0;
};

bool writeFile(StringRef path, const std::string &text) {
  std::string message;
  std::unique_ptr<ToolOutputFile> file = mlir::openOutputFile(path, &message);
  if (!file) {
    failCommand(message);
    return false;
  }
  file->os() << text;
  file->keep();
  return true;
}

/// The model's shape, and what it fixes.
bool readModel(const CommandLine &line, planner::Problem &problem) {
  Expected<onnx::ImportOptions> import = readModelOptions(line);
  if (!import) {
    failCommand(import.takeError());
    return false;
  }
  CompileOptions options;
  options.model = *import;
  options.plan.sequenceLength = problem.sequence;
  CommandContext context;
  mlir::FailureOr<PlannedModel> model = readPlannedModel(context, options, errs());
  if (failed(model))
    return false;
  problem.model = model->shape;
  problem.sequence = model->sequence;
  std::vector<int64_t> &microbatch = problem.choices.microbatch;
  if (!model->microbatch)
    return true;
  if (!microbatch.empty() && !is_contained(microbatch, *model->microbatch)) {
    failCommand("the model fixes --microbatch at " + std::to_string(*model->microbatch));
    return false;
  }
  microbatch = {*model->microbatch};
  return true;
}

/// Text that a shell reads as one word.
std::string quoted(StringRef text) {
  if (text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@") ==
      StringRef::npos)
    return text.str();
  std::string word = "'";
  for (char c : text)
    word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

std::string compileCommandOf(const CommandLine &line, const schedule::Plan &plan) {
  std::string text = "drover compile " + quoted(line.model());
  for (const std::string &option : givenModelOptions(line))
    text += " " + quoted(option);
  return text + " --task=train" + commandLineOf(plan) + " -o train";
}

/// What --explain asks.
Error compare(const CommandLine &line, const planner::Problem &problem, planner::Report &report) {
  const std::vector<planner::RankedPlan> &plans = report.solution.plans;
  if (!line.has(OPT_explain_with)) {
    if (plans.size() < 2)
      return createStringError("--explain: there is no second plan to compare with; name one as --explain=LAYOUT");
    report.comparison = planner::Comparison{plans[0], plans[1]};
    return Error::success();
  }
  planner::Problem other = problem;
  std::string layout = line.text(OPT_explain_with);
  if (StringRef(layout).ends_with(".json")) {
    if (Error error = fixChoices(layout, other))
      return error;
    fixLayers(other);
  } else if (std::optional<schedule::Error> error = planner::setChoices(other, layout)) {
    return createStringError("--explain: " + error->message);
  }
  schedule::Result<planner::Comparison> comparison = planner::compareWith(problem, plans.front(), std::move(other));
  if (!comparison)
    return createStringError("--explain: " + comparison.error());
  report.comparison = std::move(*comparison);
  return Error::success();
}

void addGoodput(const planner::Problem &problem, double budget, planner::Report &report) {
  const planner::RankedPlan &best = report.solution.plans.front();
  planner::TrainingRun run;
  run.gpus = problem.gpus;
  run.stateBytes = planner::checkpointBytes(static_cast<double>(problem.model.parameters()), best.layout.plan);
  run.stepSeconds = best.projection.stepSeconds;
  run.tokensPerStep = best.projection.tokens;
  run.tokens = budget;
  schedule::Result<planner::Goodput> goodput = planner::goodputOf(problem.cluster, run);
  if (goodput)
    report.goodput = std::move(*goodput);
  else if (budget > 0)
    report.noGoodput = goodput.error();
}

/// All that is said of the best plan.
Error describeBest(const CommandLine &line, const planner::Problem &problem, double budget, planner::Report &report) {
  const planner::RankedPlan &best = report.solution.plans.front();
  schedule::Result<planner::DetailedPlan> detailed = planner::detail(problem, best.layout);
  if (!detailed)
    return createStringError(detailed.error());
  report.best = std::move(*detailed);
  report.compileCommand = compileCommandOf(line, best.layout.plan);
  if (line.has(OPT_explain) || line.has(OPT_explain_with))
    if (Error error = compare(line, problem, report))
      return error;
  if (line.has(OPT_pareto) || line.has(OPT_report_page)) {
    ProgressLine progress;
    schedule::Result<std::vector<planner::ParetoPoint>> points = planner::paretoOf(
        problem, report.solution, [&](int64_t done, int64_t all, double best) { progress.show(done, all, best); });
    if (!points)
      return createStringError(points.error());
    report.pareto = std::move(*points);
  }
  addGoodput(problem, budget, report);
  return Error::success();
}

/// Everything but the model, before the time that reading it and the search take.
Expected<planner::Problem> readProblem(const CommandLine &line) {
  planner::Problem problem;
  if (Error error = readSearchOptions(line, problem))
    return error;
  if (!line.has(OPT_cluster))
    return createStringError("expected --cluster=FILE.yaml");
  return problem;
}

int run(const CommandLine &line) {
  std::optional<cost::FlopsCount> count = cost::parseFlopsCount(line.text(OPT_flops_count, "causal"));
  if (!count)
    return failCommand("--flops-count=" + line.text(OPT_flops_count) + ": expected causal|full|hardware");
  std::optional<double> budget = line.has(OPT_tokens) ? parseCount(line.text(OPT_tokens)) : 0;
  if (!budget)
    return failCommand("--tokens=" + line.text(OPT_tokens) + ": expected a number of tokens, such as 15.6T");
  Expected<planner::Problem> problem = readProblem(line);
  if (!problem)
    return failCommand(problem.takeError());
  std::optional<cluster::Cluster> cluster = readClusterOption(line);
  if (!cluster)
    return 1;
  problem->cluster = std::move(*cluster);
  if (!readModel(line, *problem))
    return 1;
  finishSearchOptions(line, *problem);
  if (std::optional<schedule::Error> error = planner::checkProblem(*problem))
    return failCommand(error->message);

  planner::Report report;
  report.problem = &*problem;
  report.modelName = sys::path::filename(line.model()).str();
  report.count = *count;
  auto start = std::chrono::steady_clock::now();
  {
    ProgressLine progress;
    schedule::Result<planner::Solution> solution =
        planner::solve(*problem, [&](int64_t done, int64_t all, double best) { progress.show(done, all, best); });
    if (!solution)
      return failCommand(solution.error());
    report.solution = std::move(*solution);
  }
  report.elapsedSeconds = secondsSince(start);
  if (!report.solution.plans.empty())
    if (Error error = describeBest(line, *problem, *budget, report))
      return failCommand(std::move(error));
  outs() << (line.has(OPT_json) ? planner::reportJson(report) : planner::reportText(report));
  if (report.best && line.has(OPT_trace) && !writeFile(line.text(OPT_trace), planner::traceJson(*report.best)))
    return 1;
  if (line.has(OPT_report_page) && !writeFile(line.text(OPT_report_page), planner::reportHtml(report)))
    return 1;
  if (!report.solution.plans.empty())
    return 0;
  outs().flush();
  return failCommand("no plan fits: " + report.solution.infeasible->constraint);
}

std::string notes() {
  return "A plan option that is given is fixed, what is not is searched. Of those that are a number or a word here may "
         "be\n"
         "several (--tp=2,4 --recompute=none,full) or a range (--pp=1..8). A plan that --plan gives in full is "
         "answered\n"
         "whether it fits or not. Status 1 where nothing fits.\n";
}

} // namespace

Subcommand planCommand() {
  return {"plan", "find the layouts that train a model fastest on a cluster", PlanCommand, run, notes};
}

} // namespace drover::tool
