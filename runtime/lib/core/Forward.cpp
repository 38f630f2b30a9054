//===- Forward.cpp - the forward executable -------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/batch_loader.h"
#include "drover/rt/error.h"
#include "drover/rt/executable.h"
#include "drover/rt/interpreter.h"
#include "drover/rt/memory_report.h"
#include "drover/rt/npy.h"
#include "drover/rt/parameter_store.h"
#include "drover/rt/text.h"
#include "drover/rt/thread_pool.h"
#include <algorithm>
#include <filesystem>
#include <memory>

namespace drover::rt {

static std::string namesOf(const std::vector<TensorInfo> &tensors) {
  std::vector<std::string> names;
  for (const TensorInfo &tensor : tensors)
    names.push_back(tensor.name);
  return formatNames(names, 16);
}

/// An input that was not given: masks are ones and positions count up, as the loader has them in training.
static void fillDefault(const TensorInfo &input, uint8_t *target) {
  if (input.role == "mask" || input.fill == "ones")
    fillOnes(input, target);
  else if (input.role == "positions" || input.fill == "arange")
    fillCounting(input, target);
  else if (input.fill == "zeros")
    std::memset(target, 0, size_t(input.bytes()));
  else
    fail("input '", input.name, "' has no values, expected --input ", input.name, "=FILE.npy of shape ",
         formatShape(input.shape));
}

static void readInputs(const Program &program, const ForwardOptions &options, uint8_t *slot) {
  for (const TensorInfo &input : program.inputs) {
    auto given = std::find_if(options.inputs.begin(), options.inputs.end(),
                              [&](const auto &file) { return file.first == input.name; });
    if (given == options.inputs.end()) {
      fillDefault(input, slot + input.offset);
      continue;
    }
    NpyFile file(given->second);
    if (file.shape() != input.shape)
      fail(given->second, ": shape ", formatShape(file.shape()), ", input '", input.name, "' expects ",
           formatShape(input.shape));
    file.read(input.dtype, slot + input.offset);
  }
}

static void checkInputs(const Program &program, const ForwardOptions &options) {
  for (const auto &[name, path] : options.inputs)
    if (std::none_of(program.inputs.begin(), program.inputs.end(),
                     [&name = name](const TensorInfo &input) { return input.name == name; }))
      fail("--input ", name, "=", path, ": the model has no such input, expected ", namesOf(program.inputs));
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

static void writeOutputs(const Program &program, const std::string &folder, const uint8_t *slot) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code)
    fail(folder, ": cannot create the folder: ", code.message());
  for (const TensorInfo &output : program.outputs) {
    std::string name = output.name;
    std::replace(name.begin(), name.end(), '/', '_');
    writeNpy(folder + "/" + name + ".npy", output.dtype, output.shape, slot + output.offset);
  }
}

void forward(const Program &program, const ForwardOptions &options) {
  checkRanks(options.ranks, program.ranks);
  checkInputs(program, options);
  const BatchInfo &batch = program.batches[0];
  drover_pool pool(threadsOf(options.threads, program.ranks));
  FlightRecorder recorder(program.hash, 0, options.flightRecorder);
  std::unique_ptr<TraceWriter> trace;
  if (!options.trace.empty())
    trace = std::make_unique<TraceWriter>(options.trace, 0);
  Interpreter interpreter(program, &pool, recorder, trace.get());
  ParameterMemory memory{{}, program.computeDType};
  for (size_t bucket = 0; bucket < program.buckets.size(); ++bucket)
    memory.buckets.push_back(interpreter.bucketMemory(batch, int64_t(bucket), Space::Parameter));
  initializeParameters(program, {options.init, options.model, options.seed}, memory);

  recorder.install();
  StepWork work;
  work.batch = &batch;
  work.fillInputs = [&](int64_t, uint8_t *slot) {
    readInputs(program, options, slot);
    checkTokens(program, slot);
  };
  interpreter.setTracing(trace != nullptr);
  interpreter.run(work);
  if (trace)
    trace->finish();
  writeOutputs(program, options.outputDir, interpreter.outputs(batch));
  if (options.verbose)
    printMemoryTable(memoryByCategory(program, interpreter.workspaceBytes()),
                     interpreter.arenaBytes() + interpreter.workspaceBytes());
}

} // namespace drover::rt
