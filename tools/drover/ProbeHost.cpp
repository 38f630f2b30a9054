//===- ProbeHost.cpp - a small decoder, compiled and timed ----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CommandContext.h"
#include "MeasureHost.h"
#include "drover/Pipelines/Compile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <limits>

using namespace llvm;

namespace drover::tool {
namespace {

/// Large enough that a call's own time is small beside its work, small enough that a step takes some hundredths of a
/// second.
constexpr StringLiteral kModel = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 1024,
"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 4, "num_attention_heads": 4,
"num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
"hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": false})";
constexpr int64_t kSequence = 128;
/// Of a rank on each core: what a step does once (its update, its collectives) shall not pass for what bodies do.
constexpr int64_t kMicrobatches = 4;

/// A folder that goes with its owner.
class Folder {
public:
  Expected<std::string> make() {
    if (std::error_code code = sys::fs::createUniqueDirectory("drover-probe", path))
      return createStringError("cannot make a temporary folder: " + code.message());
    return path.str().str();
  }
  std::string file(StringRef name) const { return (path + "/" + name).str(); }
  Error write(StringRef name, StringRef text) const {
    std::error_code code;
    raw_fd_ostream os(file(name), code);
    os << text;
    return code ? createStringError(file(name) + ": " + code.message()) : Error::success();
  }
  ~Folder() {
    if (!path.empty())
      (void)sys::fs::remove_directories(path);
  }

private:
  SmallString<128> path;
};

/// What a step adds to the processor time of a run: a longer run less a shorter one.
Expected<double> timeSteps(const CalibrationOptions &options, const Folder &folder) {
  double seconds[2] = {};
  const int64_t few = 3, steps[] = {few, few + options.turns};
  for (int i = 0; i < 2; ++i) {
    Expected<ProgramRun> ended =
        runWithin(options.deadlineSeconds, folder.file("train"),
                  {"--data=" + folder.file("text"), "--init=random", "--steps=" + std::to_string(steps[i])});
    if (!ended)
      return ended.takeError();
    seconds[i] = ended->processorSeconds;
  }
  if (!(seconds[1] > seconds[0]))
    return createStringError("the system counts no processor time of programs");
  return (seconds[1] - seconds[0]) / static_cast<double>(steps[1] - steps[0]);
}

/// Compiles the plan into the folder, and returns what a step takes of each core.
Expected<double> probe(const CalibrationOptions &options, const Folder &folder, CompileOptions &compile,
                       int64_t cores) {
  CommandContext context;
  if (failed(compileModel(context, compile, errs())))
    return createStringError("the model that is timed was not compiled");
  // Others' work on a core's caches costs processor time too: the best of some runs counts.
  constexpr int kRuns = 5;
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRuns; ++run) {
    Expected<double> seconds = timeSteps(options, folder);
    if (!seconds)
      return seconds;
    best = std::min(best, *seconds / static_cast<double>(cores));
  }
  return best;
}
} // namespace

Expected<ProbedHost> probeHost(const CalibrationOptions &options, int64_t cores) {
  Folder folder;
  if (Expected<std::string> made = folder.make(); !made)
    return made.takeError();
  if (Error error = folder.write("config.json", kModel))
    return error;
  std::string text;
  for (int i = 0; i < 20000; ++i)
    text += static_cast<char>(' ' + i * i % 89);
  if (Error error = folder.write("text", text))
    return error;
  CompileOptions compile;
  compile.model.path = folder.file("config.json");
  compile.output = folder.file("train");
  compile.plan.sequenceLength = kSequence;
  compile.plan.microbatch = 1;
  compile.plan.computeType = "f32";
  compile.plan.globalBatches = {kMicrobatches * cores};
  ProbedHost probed;
  {
    CommandContext context;
    mlir::FailureOr<PlannedModel> model = readPlannedModel(context, compile, errs());
    if (failed(model))
      return createStringError("the model that is timed was not read");
    probed.shape = model->shape;
  }
  probed.threads = probed.ranks = compile.plan;
  probed.ranks.dp = cores;
  for (auto [plan, seconds] :
       {std::pair{&probed.ranks, &probed.ranksSeconds}, {&probed.threads, &probed.threadsSeconds}}) {
    compile.plan = *plan;
    Expected<double> step = probe(options, folder, compile, cores);
    if (!step)
      return step.takeError();
    *seconds = *step;
  }
  return probed;
}

} // namespace drover::tool
