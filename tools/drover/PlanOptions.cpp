//===- PlanOptions.cpp - the plan options of a command --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "PlanOptions.h"
#include "drover/Schedule/Serialize.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace drover::tool {

static Expected<schedule::Plan> readPlanFile(const std::string &path) {
  // A device may have no end.
  if (sys::fs::exists(path) && !sys::fs::is_regular_file(path))
    return createStringError(path + ": expected a regular file");
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return createStringError(path + ": " + buffer.getError().message());
  schedule::Result<schedule::Plan> plan = schedule::readPlan((*buffer)->getBuffer().str());
  if (!plan)
    return createStringError(path + ": not a plan: " + plan.error());
  return *plan;
}

Expected<schedule::Plan> readPlanOptions(const CommandLine &line) {
  schedule::Plan plan;
  if (line.has(OPT_plan)) {
    Expected<schedule::Plan> read = readPlanFile(line.text(OPT_plan));
    if (!read)
      return read;
    plan = *read;
  }
  // In a plan 0 stands for what was not given.
  const std::tuple<OptionId, int64_t, int64_t *> integers[] = {
      {OPT_tp, 1, &plan.tp},         {OPT_cp, 1, &plan.cp},
      {OPT_pp, 1, &plan.pp},         {OPT_dp, 1, &plan.dp},
      {OPT_chunks, 1, &plan.chunks}, {OPT_microbatch, 1, &plan.microbatch},
      {OPT_zero, 0, &plan.zero},     {OPT_seq_len, 1, &plan.sequenceLength}};
  for (auto [option, minimum, value] : integers)
    if (Error error = line.readInteger(option, minimum, *value))
      return error;
  const std::pair<OptionId, std::vector<int64_t> *> lists[] = {{OPT_run, &plan.run},
                                                               {OPT_global_batch, &plan.globalBatches}};
  for (auto [option, values] : lists)
    if (Error error = line.readIntegers(option, 1, *values))
      return error;
  const std::pair<OptionId, std::string *> texts[] = {
      {OPT_recompute, &plan.recompute},       {OPT_rebuild, &plan.rebuild}, {OPT_reduce_every, &plan.reduceEvery},
      {OPT_compute_dtype, &plan.computeType}, {OPT_mask, &plan.mask},       {OPT_optimizer, &plan.optimizer},
      {OPT_tp_overlap, &plan.tpOverlap},      {OPT_freeze, &plan.freeze},   {OPT_attention, &plan.attention}};
  for (auto [option, value] : texts)
    *value = line.text(option, *value);
  if (line.has(OPT_schedule)) {
    plan.kind = schedule::parseScheduleKind(line.text(OPT_schedule));
    if (!plan.kind)
      return createStringError("--schedule=" + line.text(OPT_schedule) + ": expected 1f1b|interleaved|bfs|zb-h1");
  }
  if (line.has(OPT_layers_per_chunk)) {
    schedule::Result<std::vector<int64_t>> layers = schedule::parseLayersPerChunk(line.text(OPT_layers_per_chunk));
    if (!layers)
      return createStringError(layers.error());
    plan.layersPerChunk = *layers;
  }
  return plan;
}

} // namespace drover::tool
