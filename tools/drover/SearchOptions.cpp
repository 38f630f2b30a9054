//===- SearchOptions.cpp - the problem that a command line asks -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "SearchOptions.h"
#include "PlanOptions.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>

using namespace llvm;

namespace drover::tool {
namespace {

/// Options that a problem takes under the same name with underscores (planner::setChoice).
constexpr std::pair<OptionId, const char *> kChoices[] = {{OPT_tp, "tp"},
                                                          {OPT_cp, "cp"},
                                                          {OPT_pp, "pp"},
                                                          {OPT_dp, "dp"},
                                                          {OPT_chunks, "chunks"},
                                                          {OPT_run, "run"},
                                                          {OPT_microbatch, "microbatch"},
                                                          {OPT_zero, "zero"},
                                                          {OPT_schedule, "schedule"},
                                                          {OPT_recompute, "recompute"},
                                                          {OPT_tp_overlap, "tp_overlap"},
                                                          {OPT_layers_per_chunk, "layers_per_chunk"},
                                                          {OPT_order, "order"},
                                                          {OPT_rebuild, "rebuild"},
                                                          {OPT_reduce_every, "reduce_every"},
                                                          {OPT_compute_dtype, "compute_dtype"},
                                                          {OPT_mask, "mask"},
                                                          {OPT_optimizer, "optimizer"},
                                                          {OPT_attention, "attention"},
                                                          {OPT_communication_sms, "communication_sms"}};

/// What divides well near a number of sequences: the multiple of the largest power of two within a twentieth of it.
int64_t divisibleCount(double sequences) {
  for (int64_t unit = int64_t{1} << 40; unit > 1; unit /= 2) {
    double count = std::round(sequences / static_cast<double>(unit)) * static_cast<double>(unit);
    if (std::abs(count - sequences) <= 0.05 * sequences)
      return static_cast<int64_t>(count);
  }
  return std::max<int64_t>(1, std::llround(sequences));
}

/// `MEAN[,DEVIATION]` in tokens, or the name of a file that has a length on each line.
Expected<cost::DocumentLengths> readDocumentLengths(const std::string &text) {
  cost::DocumentLengths lengths;
  auto [mean, deviation] = StringRef(text).split(',');
  if (std::optional<double> value = parseCount(mean)) {
    lengths.mean = *value;
    double tokens = 0;
    if (!deviation.empty() && (deviation.getAsDouble(tokens) || !std::isfinite(tokens) || tokens < 0))
      return createStringError("--document-lengths=" + text + ": the deviation '" + deviation.str() +
                               "': expected a number of tokens");
    lengths.deviation = tokens / lengths.mean;
    if (lengths.mean < 1)
      return createStringError("--document-lengths=" + text + ": expected a mean of 1 or more tokens");
    return lengths;
  }
  if (!sys::fs::is_regular_file(text))
    return createStringError("--document-lengths=" + text +
                             ": expected MEAN[,DEVIATION] in tokens, or a file with a length on each line");
  auto buffer = MemoryBuffer::getFile(text, /*IsText=*/true);
  if (!buffer)
    return createStringError(text + ": " + buffer.getError().message());
  for (line_iterator line(**buffer); !line.is_at_end(); ++line) {
    double length = 0;
    if (line->trim().getAsDouble(length) || !(length >= 1 && length <= 1e12))
      return createStringError(text + ":" + std::to_string(line.line_number()) + ": '" + line->trim().str() +
                               "': expected a document's length in tokens");
    lengths.sample.push_back(length);
  }
  if (lengths.sample.empty())
    return createStringError(text + ": expected a document's length in tokens on each line");
  return lengths;
}

/// The size of a step, without what needs the length of a sequence.
Error readStep(const CommandLine &line, planner::Problem &problem) {
  if (Error error = line.readInteger(OPT_global_batch, 1, problem.globalBatch))
    return error;
  if (!line.has(OPT_tokens_per_step))
    return problem.globalBatch > 0
               ? Error::success()
               : createStringError("expected the size of a step: --global-batch=G sequences, or --tokens-per-step=T");
  if (line.has(OPT_global_batch))
    return createStringError("--tokens-per-step and --global-batch say the same: expected one of them");
  if (!parseCount(line.text(OPT_tokens_per_step)))
    return createStringError("--tokens-per-step=" + line.text(OPT_tokens_per_step) +
                             ": expected a number of tokens, such as 4M");
  return Error::success();
}
} // namespace

std::optional<double> parseCount(StringRef text) {
  double unit = StringSwitch<double>(text.take_back())
                    .CasesLower({"k"}, 1e3)
                    .CasesLower({"m"}, 1e6)
                    .CasesLower({"b"}, 1e9)
                    .CasesLower({"t"}, 1e12)
                    .Default(1);
  double value = 0;
  if ((unit > 1 ? text.drop_back() : text).getAsDouble(value) || !std::isfinite(value) || value <= 0)
    return std::nullopt;
  return value * unit;
}

Error fixChoices(const std::string &planFile, planner::Problem &problem) {
  Expected<schedule::Plan> read = readPlanFile(planFile);
  if (!read)
    return read.takeError();
  const schedule::Plan &plan = *read;
  if (!plan.freeze.empty())
    return createStringError(planFile + ": frozen parameters are not priced: accepted is a plan without 'freeze'");
  if (plan.run.size() > 1)
    return createStringError(planFile + ": runs of several sizes are not priced: accepted is one number");
  if (plan.globalBatches.size() > 1)
    return createStringError(planFile + ": has several global batches: accepted is one");
  if (std::optional<schedule::Error> error = schedule::checkPlan(plan))
    return createStringError(planFile + ": " + error->message);
  planner::Choices &choices = problem.choices;
  choices = {};
  choices.tp = {plan.tp}, choices.cp = {plan.cp}, choices.pp = {plan.pp}, choices.dp = {plan.dp};
  choices.chunks = {plan.chunks};
  choices.run = {plan.run.empty() ? plan.pp : plan.run.front()};
  choices.microbatch = {std::max<int64_t>(1, plan.microbatch)};
  choices.zero = {plan.zero};
  choices.schedules = {plan.schedule()};
  choices.recompute = {plan.recompute};
  choices.tpOverlap = {plan.tpOverlap};
  choices.layersPerChunk = plan.layersPerChunk;
  if (schedule::Result<cluster::AxisOrder> order = cluster::parseOrder(join(plan.order, ",")))
    problem.order = *order;
  problem.gpus = plan.tp * plan.cp * plan.pp * plan.dp;
  problem.globalBatch =
      plan.globalBatches.empty() ? choices.microbatch.front() * plan.dp * plan.pp : plan.globalBatches.front();
  if (plan.sequenceLength)
    problem.sequence = plan.sequenceLength;
  std::string dtype = problem.rest.computeType;
  problem.rest = plan;
  if (problem.rest.computeType.empty())
    problem.rest.computeType = dtype;
  return Error::success();
}

void fixLayers(planner::Problem &problem) {
  planner::Choices &choices = problem.choices;
  if (choices.layersPerChunk.empty())
    choices.layersPerChunk = schedule::spreadLayers(problem.model.layers, choices.pp.front() * choices.chunks.front());
}

Error readSearchOptions(const CommandLine &line, planner::Problem &problem) {
  problem.rest.computeType = "bf16";
  if (line.has(OPT_plan))
    if (Error error = fixChoices(line.text(OPT_plan), problem))
      return error;
  if (!line.has(OPT_gpus) && !line.has(OPT_plan))
    return createStringError("expected --gpus=N");
  for (auto [option, value] :
       {std::pair{OPT_gpus, &problem.gpus}, {OPT_seq_len, &problem.sequence}, {OPT_top, &problem.top}})
    if (Error error = line.readInteger(option, 1, *value))
      return error;
  for (auto [option, key] : kChoices)
    if (line.has(option))
      if (std::optional<schedule::Error> error = planner::setChoice(problem, key, line.text(option)))
        return createStringError(error->message);
  if (line.has(OPT_document_lengths)) {
    if (problem.rest.mask != "documents")
      return createStringError("--document-lengths says how long documents are for attention within them: "
                               "expected --mask=documents beside it");
    Expected<cost::DocumentLengths> lengths = readDocumentLengths(line.text(OPT_document_lengths));
    if (!lengths)
      return lengths.takeError();
    problem.software.documents = std::make_shared<cost::DocumentLoads>(std::move(*lengths));
  }
  return readStep(line, problem);
}

void finishSearchOptions(const CommandLine &line, planner::Problem &problem) {
  if (line.has(OPT_plan) && problem.choices.pp.size() == 1 && problem.choices.chunks.size() == 1)
    fixLayers(problem);
  if (line.has(OPT_tokens_per_step))
    problem.globalBatch =
        divisibleCount(*parseCount(line.text(OPT_tokens_per_step)) / static_cast<double>(problem.sequence));
}

} // namespace drover::tool
