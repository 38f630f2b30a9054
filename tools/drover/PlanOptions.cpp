//===- PlanOptions.cpp - the plan options of a command --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "PlanOptions.h"
#include "drover/Cluster/Placement.h"
#include "drover/Schedule/Serialize.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <numeric>

using namespace llvm;

namespace drover::tool {

Expected<schedule::Plan> readPlanFile(const std::string &path) {
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
  const std::tuple<OptionId, int64_t, int64_t *> integers[] = {{OPT_tp, 1, &plan.tp},
                                                               {OPT_cp, 1, &plan.cp},
                                                               {OPT_pp, 1, &plan.pp},
                                                               {OPT_dp, 1, &plan.dp},
                                                               {OPT_chunks, 1, &plan.chunks},
                                                               {OPT_microbatch, 1, &plan.microbatch},
                                                               {OPT_zero, 0, &plan.zero},
                                                               {OPT_seq_len, 1, &plan.sequenceLength},
                                                               {OPT_communication_sms, 0, &plan.communicationSms}};
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
  if (line.has(OPT_order)) {
    schedule::Result<cluster::AxisOrder> order = cluster::parseOrder(line.text(OPT_order));
    if (!order)
      return createStringError("--order: " + order.error());
    plan.order = cluster::namesOf(*order);
  }
  if (line.has(OPT_layers_per_chunk)) {
    schedule::Result<std::vector<int64_t>> layers = schedule::parseLayersPerChunk(line.text(OPT_layers_per_chunk));
    if (!layers)
      return createStringError(layers.error());
    plan.layersPerChunk = *layers;
  }
  return plan;
}

std::string commandLineOf(const schedule::Plan &plan) {
  const schedule::Plan defaults;
  std::string text;
  auto add = [&](StringRef name, const std::string &value, const std::string &fallback) {
    if (value != fallback)
      text += (" --" + name + "=" + value).str();
  };
  auto addNumber = [&](StringRef name, int64_t value, int64_t fallback) {
    add(name, std::to_string(value), std::to_string(fallback));
  };
  auto addList = [&](StringRef name, const std::vector<int64_t> &values) {
    add(name, join(map_range(values, [](int64_t value) { return std::to_string(value); }), ","), "");
  };
  addNumber("tp", plan.tp, 1);
  addNumber("cp", plan.cp, 1);
  addNumber("pp", plan.pp, 1);
  addNumber("dp", plan.dp, 1);
  addNumber("chunks", plan.chunks, 1);
  if (plan.run != std::vector<int64_t>{plan.pp})
    addList("run", plan.run);
  addNumber("microbatch", plan.microbatch, 1);
  addList("global-batch", plan.globalBatches);
  addNumber("seq-len", plan.sequenceLength, 0);
  schedule::Plan usual = plan;
  usual.kind = std::nullopt;
  add("schedule", nameOf(plan.schedule()), nameOf(usual.schedule()));
  if (!plan.layersPerChunk.empty() &&
      plan.layersPerChunk !=
          schedule::spreadLayers(std::accumulate(plan.layersPerChunk.begin(), plan.layersPerChunk.end(), int64_t{0}),
                                 static_cast<int64_t>(plan.layersPerChunk.size())))
    add("layers-per-chunk", schedule::printLayersPerChunk(plan.layersPerChunk), "");
  add("recompute", plan.recompute, defaults.recompute);
  add("rebuild", plan.rebuild, defaults.rebuild);
  addNumber("zero", plan.zero, defaults.zero);
  add("reduce-every", plan.reduceEvery, defaults.reduceEvery);
  add("compute-dtype", plan.computeType, defaults.computeType);
  add("mask", plan.mask, defaults.mask);
  add("optimizer", plan.optimizer, defaults.optimizer);
  add("tp-overlap", plan.tpOverlap, defaults.tpOverlap);
  add("freeze", plan.freeze, defaults.freeze);
  add("attention", plan.attention, defaults.attention);
  addNumber("communication-sms", plan.communicationSms, 0);
  add("order", join(plan.order, ","), join(defaults.order, ","));
  return text;
}

} // namespace drover::tool
