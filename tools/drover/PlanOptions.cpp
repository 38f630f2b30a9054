//===- PlanOptions.cpp - the plan options of a command --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "PlanOptions.h"
#include "CommandContext.h"
#include "drover/Schedule/Serialize.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace drover::tool {
namespace {
const schedule::Plan kDefaults;
} // namespace

PlanOptions::PlanOptions(cl::SubCommand &command)
    : category("Plan options"),
      planFile("plan", cl::desc("a plan as JSON, each option a field; options below go on top"),
               cl::value_desc("FILE.json"), cl::sub(command), cl::cat(category)),
      tp("tp", cl::desc("tensor-parallel ranks (1)"), cl::sub(command), cl::cat(category)),
      cp("cp", cl::desc("context-parallel ranks (1)"), cl::sub(command), cl::cat(category)),
      pp("pp", cl::desc("pipeline ranks (1)"), cl::sub(command), cl::cat(category)),
      dp("dp", cl::desc("data-parallel ranks, as FSDP (1)"), cl::sub(command), cl::cat(category)),
      chunks("chunks", cl::desc("chunks per pipeline rank (1)"), cl::value_desc("V"), cl::sub(command),
             cl::cat(category)),
      run("run", cl::CommaSeparated,
          cl::desc("microbatches that a chunk runs in a row, or the sizes of the groups (PP)"), cl::value_desc("N"),
          cl::sub(command), cl::cat(category)),
      microbatch("microbatch", cl::desc("sequences of a microbatch (the model's, else 1)"), cl::value_desc("B"),
                 cl::sub(command), cl::cat(category)),
      globalBatch("global-batch", cl::CommaSeparated,
                  cl::desc("sequences of a step; several may be compiled in (B*DP*PP)"), cl::value_desc("G,.."),
                  cl::sub(command), cl::cat(category)),
      sequenceLength("seq-len", cl::desc("tokens of a sequence (the model's)"), cl::value_desc("S"), cl::sub(command),
                     cl::cat(category)),
      schedule("schedule", cl::desc("1f1b, interleaved, bfs or zb-h1 (interleaved where V > 1, else 1f1b)"),
               cl::sub(command), cl::cat(category)),
      layersPerChunk("layers-per-chunk", cl::desc("layers of each chunk, x*n repeats (as even as possible)"),
                     cl::value_desc("a,x*n,.."), cl::sub(command), cl::cat(category)),
      recompute("recompute", cl::desc("none, selective or full (none)"), cl::sub(command), cl::cat(category)),
      rebuild("rebuild", cl::desc("auto, none, or a list of norms, act, rope, casts (auto)"), cl::sub(command),
              cl::cat(category)),
      zero("zero", cl::desc("what is sharded over DP: 0, 1, 2 or 3 (2)"), cl::sub(command), cl::cat(category)),
      reduceEvery("reduce-every", cl::desc("step or run (step)"), cl::sub(command), cl::cat(category)),
      computeType("compute-dtype", cl::desc("f32 or bf16 (f32 on the host)"), cl::sub(command), cl::cat(category)),
      mask("mask", cl::desc("model, or documents to restrict it further (model)"), cl::sub(command), cl::cat(category)),
      optimizer("optimizer", cl::desc("adamw or sgd (adamw)"), cl::sub(command), cl::cat(category)),
      tpOverlap("tp-overlap",
                cl::desc("beside collectives of tensor parallelism: none; bulk: a matmul that does not depend on it; "
                         "ring: today as bulk (none)"),
                cl::sub(command), cl::cat(category)),
      freeze("freeze", cl::desc("parameters whose name matches are not trained"), cl::value_desc("REGEX"),
             cl::sub(command), cl::cat(category)),
      attention("attention", cl::desc("generated, cudnn or auto (auto)"), cl::sub(command), cl::cat(category)) {}

std::string PlanOptions::read(schedule::Plan &plan) const {
  if (!planFile.empty()) {
    // A device may have no end.
    if (sys::fs::exists(planFile) && !sys::fs::is_regular_file(planFile))
      return planFile + ": expected a regular file";
    auto buffer = MemoryBuffer::getFile(planFile);
    if (!buffer)
      return planFile + ": " + buffer.getError().message();
    schedule::Result<schedule::Plan> read = schedule::readPlan((*buffer)->getBuffer().str());
    if (!read)
      return planFile + ": not a plan: " + read.error();
    plan = *read;
  }
  const std::pair<const cl::opt<int64_t> *, int64_t *> integers[] = {
      {&tp, &plan.tp},         {&cp, &plan.cp},
      {&pp, &plan.pp},         {&dp, &plan.dp},
      {&chunks, &plan.chunks}, {&microbatch, &plan.microbatch},
      {&zero, &plan.zero},     {&sequenceLength, &plan.sequenceLength}};
  for (auto [option, value] : integers)
    if (option->getNumOccurrences()) {
      *value = option->getValue();
      // In a plan 0 stands for what was not given.
      if (*value < 1 && option != &zero)
        return (Twine("--") + option->ArgStr + "=" + Twine(*value) + ": expected 1 or more").str();
    }
  // cl::list has an operator& of its own.
  const std::pair<const cl::list<int64_t> *, std::vector<int64_t> *> lists[] = {
      {std::addressof(run), &plan.run}, {std::addressof(globalBatch), &plan.globalBatches}};
  for (auto [option, value] : lists)
    if (option->getNumOccurrences()) {
      value->assign(option->begin(), option->end());
      for (int64_t item : *value)
        if (item < 1)
          return (Twine("--") + option->ArgStr + ": " + Twine(item) + ": expected 1 or more").str();
    }
  const std::pair<const cl::opt<std::string> *, std::string *> texts[] = {
      {&recompute, &plan.recompute},     {&rebuild, &plan.rebuild}, {&reduceEvery, &plan.reduceEvery},
      {&computeType, &plan.computeType}, {&mask, &plan.mask},       {&optimizer, &plan.optimizer},
      {&tpOverlap, &plan.tpOverlap},     {&freeze, &plan.freeze},   {&attention, &plan.attention}};
  for (auto [option, value] : texts)
    if (option->getNumOccurrences())
      *value = option->getValue();
  if (schedule.getNumOccurrences()) {
    plan.kind = schedule::parseScheduleKind(schedule);
    if (!plan.kind)
      return "--schedule=" + schedule + ": expected 1f1b|interleaved|bfs|zb-h1";
  }
  if (layersPerChunk.getNumOccurrences()) {
    schedule::Result<std::vector<int64_t>> layers = schedule::parseLayersPerChunk(layersPerChunk);
    if (!layers)
      return layers.error();
    plan.layersPerChunk = *layers;
  }
  return "";
}

std::optional<schedule::Plan> PlanOptions::plan() const {
  schedule::Plan plan = kDefaults;
  std::string message = read(plan);
  if (message.empty())
    return plan;
  failCommand(message);
  return std::nullopt;
}

} // namespace drover::tool
