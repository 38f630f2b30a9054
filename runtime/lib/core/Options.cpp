//===- Options.cpp - what the executables can be told ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/options.h"
#include "drover/rt/error.h"
#include "drover/rt/option_parser.h"
#include "drover/rt/safetensors.h"
#include "drover/rt/text.h"
#include <filesystem>
#include <regex>

namespace drover::rt {

using NamedFile = std::pair<std::string, std::string>;

static int64_t tokenId(std::string_view text) {
  std::optional<int64_t> id = parseInteger(text);
  if (!id || *id < 0)
    fail("expected a token id, an integer of at least 0");
  return *id;
}

/// "NAME=FILE.npy"
static void addNamedFile(std::vector<NamedFile> &files, std::string_view text) {
  size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size())
    fail("expected NAME=FILE.npy");
  std::string name(text.substr(0, equals));
  for (std::string_view constant : {"ones", "zeros", "arange"})
    if (text.substr(equals + 1) == constant)
      fail("expected NAME=FILE.npy; a constant is compiled in, by 'drover compile --input=", text, "'");
  for (const NamedFile &file : files)
    if (file.first == name)
      fail("input '", name, "' is given twice");
  files.emplace_back(std::move(name), text.substr(equals + 1));
}

/// "STEP:G,STEP:G", steps ascending.
static std::vector<std::pair<int64_t, int64_t>> parseBatchRamp(std::string_view text) {
  std::vector<std::pair<int64_t, int64_t>> ramp;
  for (const std::string &part : split(text, ',')) {
    std::vector<std::string> fields = split(part, ':');
    std::optional<int64_t> step = parseInteger(fields[0]);
    std::optional<int64_t> size = fields.size() == 2 ? parseInteger(fields[1]) : std::nullopt;
    if (!step || !size || *step < 1 || *size < 1)
      fail("expected STEP:G,STEP:G,.. with steps and global batches of at least 1");
    if (!ramp.empty() && *step <= ramp.back().first)
      fail("expected ascending steps, but ", *step, " follows ", ramp.back().first);
    ramp.emplace_back(*step, *size);
  }
  return ramp;
}

static std::pair<int64_t, int64_t> parseStepRange(std::string_view text) {
  std::vector<std::string> fields = split(text, '-');
  std::optional<int64_t> first = parseInteger(fields[0]);
  std::optional<int64_t> last = fields.size() == 2 ? parseInteger(fields[1]) : first;
  if (fields.size() > 2 || !first || !last || *first < 1 || *last < *first)
    fail("expected a step or FIRST-LAST, from 1");
  return {*first, *last};
}

static std::regex parseRegex(const std::string &text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error &error) {
    fail("not a regular expression: ", error.what());
  }
}

namespace {
/// A file or folder that an option names.
struct NamedPath {
  const char *option;
  const std::string &path;
  bool written;
};
} // namespace

/// What is written must not replace what is read, or what another option writes.
static void checkPaths(const std::vector<NamedPath> &paths) {
  auto place = [](const std::string &path) { return std::filesystem::absolute(path).lexically_normal(); };
  for (size_t i = 0; i < paths.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (!paths[i].path.empty() && !paths[j].path.empty() && (paths[i].written || paths[j].written) &&
          place(paths[i].path) == place(paths[j].path))
        fail("--", paths[j].option, " and --", paths[i].option, " are both ", paths[i].path,
             ": expected different files");
}

/// A folder where the name says so or has no suffix; another suffix is more likely a slip.
static void checkWeightsTarget(const std::string &path) {
  std::filesystem::path target(path);
  if (path.empty() || isTensorFile(path) || !target.has_extension() || std::filesystem::is_directory(target))
    return;
  fail("--save-weights=", path, ": expected FILE.safetensors or a folder; a new folder with '",
       target.extension().string(), "' in its name is written ", path, "/");
}

/// An option that has no effect is more likely a slip.
static void checkHasEffect(const OptionParser &parser, const TrainOptions &options) {
  for (const char *name : {"reset-positions", "mask-after-separator"})
    parser.require(name, "document-separator");
  for (const char *name : {"dump-step", "dump-file"})
    parser.require(name, "dump");
  for (const char *name : {"log-all-ranks", "peak-flops"})
    parser.require(name, "log");
  parser.require("trace-steps", "trace");
  if (options.describeRanks)
    return;
  auto checkStep = [&](const char *name, const std::string &value, int64_t step) {
    if (step > options.steps)
      fail("--", name, "=", value, ": expected a step of the ", options.steps, " there are");
  };
  if (parser.given("trace-steps"))
    checkStep("trace-steps", concat(options.traceSteps.first, "-", options.traceSteps.second),
              options.traceSteps.first);
  if (options.dump)
    checkStep("dump-step", concat(options.dumpStep), options.dumpStep);
  for (auto [step, size] : options.batchRamp)
    checkStep("batch-ramp", concat(step, ":", size), step);
  if (options.globalBatch && !options.batchRamp.empty() && options.batchRamp.front().first == 1)
    fail("--global-batch=", options.globalBatch, ": is used in no step, since --batch-ramp begins with step 1");
}

static std::string baseName(const std::string &program) {
  size_t slash = program.rfind('/');
  return slash == std::string::npos ? program : program.substr(slash + 1);
}

static void addRankOptions(OptionParser &parser, RunOptions &options) {
  parser.section("ranks");
  parser.integer("ranks", &options.ranks, 1, "N", "ranks; must be what the program was compiled for (default)");
  parser.integer("threads", &options.threads, 1, "T", "threads per rank (default: cores / ranks)", 4096);
  parser.text("backend", &options.backend, "inproc|mpi|nccl",
              "ranks are threads of this process, or processes that mpirun, srun or\ntorchrun started (default: mpi "
              "where one of them did); nccl: either, with\na GPU each (default for several ranks of --target=cuda)");
  parser.text("matmul-algorithms", &options.matmulAlgorithms, "FILE",
              "of GPUs: which algorithms cuBLASLt takes, read where the file exists and\nwritten at the end; another "
              "run with it gives "
              "the same bits");
  parser.text("topology", &options.topology, "FILE",
              "servers with their racks and pods (docs/nccl.md): the run ends where\nranks are not where the plan "
              "promised (--backend=nccl)");
  parser.number("deadline-start", &options.deadlines.start, 0, "SECONDS",
                "longest wait for another rank before the first step (default 300),");
  parser.number("deadline-first-step", &options.deadlines.firstStep, 0, "SECONDS", "in the first step (default 600),");
  parser.number("deadline", &options.deadlines.step, 0, "SECONDS", "and later (default 300)");
}

static void addReportOptions(OptionParser &parser, RunOptions &options) {
  parser.text("trace", &options.trace, "FILE.json", "Chrome trace of all ranks' actions (opens in Perfetto)");
  parser.text(
      "flight-recorder", &options.flightRecorder, "FILE.json",
      "where the last actions are dumped after a crash or a failed wait, by\nrank where there are several (default "
      "flight_recorder.RANK.json)");
  parser.flag("describe-ranks", &options.describeRanks,
              "plan every rank of the program, check their groups, print what they\nare, and run nothing");
  parser.flag("verbose", &options.verbose, "print the memory table even where there is no terminal");
}

std::optional<TrainOptions> parseTrainOptions(const std::string &program, const std::vector<std::string> &arguments,
                                              std::string &help) {
  TrainOptions options;
  OptionParser parser(baseName(program) + " --data=PATH --steps=N [options]", "Trains the compiled-in model.");
  addRankOptions(parser, options);

  parser.section("data");
  parser.text(
      "data", &options.data, "PATH",
      "a text file or folder (bytes are the tokens), or token files:\n.u16, .u32 (raw, little-endian), Megatron "
      ".bin/.idx");
  parser.integer("steps", &options.steps, 1, "K", "steps to train; the learning rate's schedule ends here");
  parser.custom("seed", "SEED", "of initial weights and data order (default 1)", [&](std::string_view text) {
    std::optional<uint64_t> seed = parseUnsigned(text);
    if (!seed)
      fail("expected an integer of at least 0");
    options.seed = *seed;
  });
  parser.flag("shuffle", &options.shuffle, "another random order of the sequences in every epoch (default: in order)");
  parser.integer("global-batch", &options.globalBatch, 1, "G",
                 "sequences a step, one of those compiled in (default: the first)");
  parser.custom("batch-ramp", "STEP:G,..", "global batch from these steps on",
                [&](std::string_view text) { options.batchRamp = parseBatchRamp(text); });
  parser.custom("document-separator", "TOKEN",
                "token id that ends a document and belongs to it\n(programs compiled with --mask=documents)",
                [&](std::string_view text) { options.documentSeparator = tokenId(text); });
  parser.flag("reset-positions", &options.resetPositions, "positions restart at every document");
  parser.flag("mask-after-separator", &options.maskAfterSeparator, "the first label of a document does not count");
  parser.custom(
      "ignore-label", "TOKEN", "labels of this id do not count; may be repeated",
      [&](std::string_view text) { options.ignoreLabels.push_back(tokenId(text)); }, true);
  parser.custom(
      "input", "NAME=FILE.npy", "values of another input, the same in every microbatch;\nmay be repeated",
      [&](std::string_view text) { addNamedFile(options.inputs, text); }, true);

  parser.section("optimizer");
  parser.number("lr", &options.learningRate, 0, "RATE", "peak learning rate (default 3e-4)");
  parser.number("min-lr", &options.minLearningRate, 0, "RATE", "learning rate at the last step (default 0)");
  parser.integer("warmup-steps", &options.warmupSteps, 0, "W", "steps of linear warm-up (default 0)");
  parser.number("weight-decay", &options.weightDecay, 0, "RATE",
                "of parameters with two or more dimensions (default 0.1)");
  parser.number("beta1", &options.beta1, 0, "B1", "AdamW's decay of the first moment, below 1 (default 0.9)");
  parser.number("beta2", &options.beta2, 0, "B2", "AdamW's decay of the second moment, below 1 (default 0.95)");
  parser.positive("eps", &options.epsilon, "EPS", "AdamW's epsilon (default 1e-8)");
  parser.number("grad-clip", &options.gradientClip, 0, "C", "largest global gradient norm, 0: off (default 1)");
  parser.custom("on-nonfinite", "exit|skip",
                "what a gradient norm that is not finite does: end the run, or skip\nthe step (default exit)",
                [&](std::string_view text) {
                  if (text != "exit" && text != "skip")
                    fail("expected exit or skip");
                  options.skipNonfinite = text == "skip";
                });

  parser.section("weights");
  parser.text("init", &options.init, "SOURCE",
              "model (the file named at compile), random, FILE.safetensors,\nINDEX.json or the folder of one (default: "
              "model where it has "
              "weights, else random)");
  parser.text("model", &options.model, "PATH", "where the model file is now, for --init=model");
  parser.text("save-weights", &options.saveWeights, "PATH",
              "at the end: FILE.safetensors, or a folder for shards with an index,\nmade where it does not exist");
  parser.text("save-gradients", &options.saveGradients, "FILE.safetensors", "gradients of step 1, before clipping");

  parser.section("device");
  parser.flag("cuda-graphs", &options.cudaGraphs,
              "of GPUs: issue a step as graphs, which are captured in the second step\n(docs/cuda.md); the same bits");

  parser.section("reports");
  parser.text("log", &options.log, "FILE.jsonl", "one JSON object a step");
  parser.flag("log-all-ranks", &options.logAllRanks, "a log of every rank: FILE.RANK.jsonl");
  parser.positive("peak-flops", &options.peakFlops, "FLOPS", "of a rank in FLOP/s, for mfu (default: mfu is null)");
  addReportOptions(parser, options);
  parser.custom("trace-steps", "FIRST-LAST", "steps that the trace covers (default 1-10)",
                [&](std::string_view text) { options.traceSteps = parseStepRange(text); });
  parser.custom("dump", "REGEX",
                "write the tensors of a step with such names, as the model has them:\nparameter.NAME, gradient.NAME, "
                "PHASE.layer.N.BODY.RESULT.sequence.N",
                [&](std::string_view text) {
                  if (!text.empty())
                    options.dump = parseRegex(std::string(text));
                });
  parser.integer("dump-step", &options.dumpStep, 1, "K", "the step (default 1)");
  parser.text("dump-file", &options.dumpFile, "FILE.safetensors", "the file (default dump.safetensors)");

  if (!parser.parse(arguments)) {
    help = parser.help();
    return std::nullopt;
  }
  for (const char *required : {"data", "steps"})
    if (!parser.given(required) && !options.describeRanks)
      fail("expected --", required, "=, see --help");
  checkWeightsTarget(options.saveWeights);
  if (!options.saveGradients.empty() && !isTensorFile(options.saveGradients))
    fail("--save-gradients=", options.saveGradients, ": expected a name that ends in .safetensors");
  if (options.dump && !isTensorFile(options.dumpFile))
    fail("--dump-file=", options.dumpFile, ": expected a name that ends in .safetensors");
  if (options.minLearningRate > options.learningRate)
    fail("--min-lr=", options.minLearningRate, ": expected at most --lr (", options.learningRate, ")");
  for (auto [name, beta] : {std::pair("beta1", options.beta1), std::pair("beta2", options.beta2)})
    if (beta >= 1)
      fail("--", name, "=", beta, ": expected a number below 1");
  checkHasEffect(parser, options);
  const std::string dumpFile = options.dump ? options.dumpFile : "";
  checkPaths({{"data", options.data, false},
              {"init", options.init, false},
              {"model", options.model, false},
              {"save-weights", options.saveWeights, true},
              {"save-gradients", options.saveGradients, true},
              {"log", options.log, true},
              {"matmul-algorithms", options.matmulAlgorithms, true},
              {"trace", options.trace, true},
              {"flight-recorder", options.flightRecorder, true},
              {"dump-file", dumpFile, true}});
  return options;
}

std::optional<ForwardOptions> parseForwardOptions(const std::string &program, const std::vector<std::string> &arguments,
                                                  std::string &help) {
  ForwardOptions options;
  OptionParser parser(baseName(program) + " --input NAME=FILE.npy .. --output-dir=DIR [options]",
                      "Runs the compiled-in model once and writes one NAME.npy for each output.");
  addRankOptions(parser, options);

  parser.section("values");
  parser.custom(
      "input", "NAME=FILE.npy",
      "an input's values; attention_mask is ones and position_ids count up\nunless given; repeated for each input",
      [&](std::string_view text) { addNamedFile(options.inputs, text); }, true);
  parser.text("output-dir", &options.outputDir, "DIR", "folder for the outputs, made where it does not exist");

  parser.section("weights");
  parser.text("init", &options.init, "SOURCE",
              "model (the file named at compile), random, FILE.safetensors,\nINDEX.json or the folder of one (default: "
              "model where it has "
              "weights, else random)");
  parser.text("model", &options.model, "PATH", "where the model file is now, for --init=model");
  parser.custom("seed", "SEED", "of --init=random (default 1)", [&](std::string_view text) {
    std::optional<uint64_t> seed = parseUnsigned(text);
    if (!seed)
      fail("expected an integer of at least 0");
    options.seed = *seed;
  });

  parser.section("reports");
  addReportOptions(parser, options);

  if (!parser.parse(arguments)) {
    help = parser.help();
    return std::nullopt;
  }
  if (options.outputDir.empty() && !options.describeRanks)
    fail("expected --output-dir=DIR, see --help");
  checkPaths({{"init", options.init, false},
              {"model", options.model, false},
              {"matmul-algorithms", options.matmulAlgorithms, true},
              {"trace", options.trace, true},
              {"flight-recorder", options.flightRecorder, true}});
  return options;
}

} // namespace drover::rt
