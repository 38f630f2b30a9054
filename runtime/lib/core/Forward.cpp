//===- Forward.cpp - the forward executable -------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/atomic_file.h"
#include "drover/rt/batch_loader.h"
#include "drover/rt/error.h"
#include "drover/rt/executable.h"
#include "drover/rt/memory_report.h"
#include "drover/rt/npy.h"
#include "drover/rt/parameter_layout.h"
#include "drover/rt/text.h"
#include <algorithm>

namespace drover::rt {

static std::string namesOf(const std::vector<TensorInfo> &tensors) {
  std::vector<std::string> names;
  for (const TensorInfo &tensor : tensors)
    names.push_back(tensor.name);
  return formatNames(names, 16);
}

/// An input that was not given: masks are ones and positions count up, as the loader has them in training.
static void fillDefault(const Program &program, const Coordinates &place, const TensorInfo &input, uint8_t *target) {
  if (input.role == "mask" || input.fill == "ones")
    fillOnes(input, target);
  else if (input.role == "positions" || input.fill == "arange")
    fillCounting(program, place, input, target);
  else if (input.fill == "zeros")
    std::memset(target, 0, size_t(input.bytes()));
  else
    fail("input '", input.name, "' has no values, expected --input ", input.name, "=FILE.npy of shape ",
         formatShape(globalShape(program.grid, input.shape, input.cuts)));
}

static void readInputs(const Program &program, const Coordinates &place, const ForwardOptions &options, uint8_t *slot) {
  for (const TensorInfo &input : program.inputs) {
    auto given = std::find_if(options.inputs.begin(), options.inputs.end(),
                              [&](const auto &file) { return file.first == input.name; });
    if (given == options.inputs.end()) {
      fillDefault(program, place, input, slot + input.offset);
      continue;
    }
    copyPart(program, place, input, NpyFile(given->second), slot + input.offset);
  }
}

static void checkInputs(const Program &program, const ForwardOptions &options) {
  for (const auto &[name, path] : options.inputs)
    if (std::none_of(program.inputs.begin(), program.inputs.end(),
                     [&name = name](const TensorInfo &input) { return input.name == name; }))
      fail("--input ", name, "=", path, ": the model has no such input, ",
           program.inputs.empty() ? "it has none" : "expected " + namesOf(program.inputs));
}

/// Ids index the embedding table, so one beyond it is refused before anything runs.
static void checkTokens(const Program &program, const uint8_t *slot) {
  const TensorInfo *tokens = program.inputWithRole("tokens");
  if (!tokens || !program.vocabulary || (tokens->dtype != DROVER_I64 && tokens->dtype != DROVER_I32))
    return;
  for (int64_t i = 0; i < tokens->elements(); ++i) {
    int64_t id = 0;
    const uint8_t *place = slot + tokens->offset;
    if (tokens->dtype == DROVER_I64)
      std::memcpy(&id, place + 8 * i, 8);
    else {
      int32_t narrow;
      std::memcpy(&narrow, place + 4 * i, 4);
      id = narrow;
    }
    if (id < 0 || id >= program.vocabulary)
      fail("input '", tokens->name, "': token id ", id, " at element ", i, ", expected ids from 0 to ",
           program.vocabulary - 1);
  }
}

/// The stage whose chunk writes an output, or -1.
static int64_t stageOfOutput(const Program &program, const TensorInfo &output) {
  for (size_t chunk = 0; chunk < program.chunks.size(); ++chunk)
    for (const std::vector<CallInfo> &phase : program.chunks[chunk].phases)
      for (const CallInfo &call : phase)
        for (const OperandInfo &operand : call.operands)
          if (operand.space == Space::Output && operand.offset == output.offset)
            return program.stageOf(int64_t(chunk));
  return -1;
}

/// Whether the dp ranks had sequences of their own: their outputs follow each other then.
static bool hasOwnSequences(const Program &program, const ForwardOptions &options) {
  for (const TensorInfo &input : program.inputs)
    for (const auto &[name, path] : options.inputs)
      if (name == input.name && !input.shape.empty() && NpyFile(path).shape()[0] != input.shape[0])
        return true;
  return false;
}

/// Puts an output together from the parts of all ranks that have one.
static void writeOutput(const RankContext &rank, const ForwardOptions &options, const TensorInfo &output,
                        const uint8_t *slot) {
  const Program &program = rank.program;
  int64_t stage = stageOfOutput(program, output), width = byteSize(output.dtype);
  int64_t dataRanks = hasOwnSequences(program, options) ? program.grid.size(DROVER_AXIS_DP) : 1;
  std::vector<int64_t> shape = globalShape(program.grid, output.shape, output.cuts);
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  std::vector<uint8_t> whole(rank.isFirst() ? size_t(elements * dataRanks * width) : 0);
  std::vector<uint8_t> received(rank.isFirst() ? size_t(output.bytes()) : 0);
  for (int64_t source = 0; source < program.grid.ranks(); ++source) {
    Coordinates place = program.grid.coordinates(source);
    if (place[DROVER_AXIS_PP] != stage || place[DROVER_AXIS_DP] >= dataRanks)
      continue;
    if (source == rank.plan.rank && source != 0)
      rank.worldGroup()->send(slot + output.offset, output.bytes(), DROVER_I8, 0).wait();
    if (!rank.isFirst())
      continue;
    if (source != 0)
      rank.worldGroup()->receive(received.data(), output.bytes(), DROVER_I8, int(source)).wait();
    const uint8_t *part = source == 0 ? slot + output.offset : received.data();
    uint8_t *target = whole.data() + place[DROVER_AXIS_DP] * elements * width;
    TensorLayout(program.grid, place, shape, output.shape, output.cuts)
        .forEachRun(0, output.elements(), [&](int64_t local, int64_t global, int64_t count) {
          if (global >= 0)
            std::memcpy(target + global * width, part + local * width, size_t(count * width));
        });
  }
  if (!rank.isFirst())
    return;
  if (dataRanks > 1)
    shape[0] *= dataRanks;
  std::string name = output.name;
  std::replace(name.begin(), name.end(), '/', '_');
  writeNpy(options.outputDir + "/" + name + ".npy", output.dtype, shape, whole.data());
}

static void forwardRank(const Program &program, const ForwardOptions &options, World &world) {
  RankSetup setup(program, options, world, options.init);
  if (setup.rank.isFirst())
    checkCanCreateFilesIn(options.outputDir);
  const Coordinates &place = setup.rank.plan.place;
  InitOptions init{options.init, options.model, options.seed, world.rank() == 0};
  setup.interpreter.initialize(
      [&](const ParameterMemory &memory) { initializeParameters(program, place, init, memory); });
  world.setDeadline(options.deadlines.firstStep, "the forward pass");
  // Before the run: what is wrong with a file is not for the flight recorder.
  std::vector<uint8_t> inputs(static_cast<size_t>(program.inputBytes));
  readInputs(program, place, options, inputs.data());
  checkTokens(program, inputs.data());
  StepWork work;
  work.fillInputs = [&](int64_t, uint8_t *slot) { std::memcpy(slot, inputs.data(), inputs.size()); };
  setup.setTracing(true);
  setup.guarded([&] { setup.interpreter.run(work); });
  setup.saveAlgorithms();
  if (setup.trace)
    setup.trace->finish();
  std::vector<uint8_t> outputs = setup.interpreter.outputs();
  for (const TensorInfo &output : program.outputs)
    writeOutput(setup.rank, options, output, outputs.data());
  if (options.verbose && setup.rank.isFirst())
    printMemoryTable(memoryByCategory(program, setup.interpreter.workspaceBytes()),
                     setup.interpreter.arenaBytes() + setup.interpreter.workspaceBytes(), setup.device.usedBytes());
}

void forward(const Program &program, const ForwardOptions &options) {
  checkInputs(program, options);
  runOnRanks(program, options, [&](World &world) { forwardRank(program, options, world); });
}

} // namespace drover::rt
