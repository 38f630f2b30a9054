//===- PublishedRuns.cpp - runs that others published ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/PublishedRuns.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>

using namespace drover;
using namespace drover::planner;
using schedule::Error;
using schedule::Result;

namespace {
/// GPT-2's 50,257, padded as Megatron-LM pads it at TP 8: where a row of its kind has none.
constexpr int64_t kUsualVocabulary = 51200;
/// Ten times what anyone trains: a larger count is a slip.
constexpr int64_t kMostLayers = 10000;

class RowReader {
public:
  explicit RowReader(const TableRow &row) : row(row) {}

  std::string text(const char *column) const {
    auto found = row.find(column);
    return found == row.end() ? "" : found->second;
  }
  bool yes(const char *column) { return oneOf(column, {"y", "n"}) == "y"; }
  /// A word of a closed list, or nothing.
  std::string oneOf(const char *column, std::initializer_list<const char *> words) {
    std::string field = text(column), listed;
    for (const char *word : words) {
      if (field.empty() || field == word)
        return field;
      listed += (listed.empty() ? "" : ", ") + std::string(word);
    }
    fail("column " + std::string(column) + " is '" + field + "': expected one of " + listed);
    return "";
  }
  bool has(const char *column, const char *part) const { return text(column).find(part) != std::string::npos; }
  bool starts(const char *column, const char *part) const { return text(column).rfind(part, 0) == 0; }

  double number(const char *column) {
    const std::string field = text(column);
    char *end = nullptr;
    double value = std::strtod(field.c_str(), &end);
    if (!field.empty() && (*end || !std::isfinite(value)))
      fail("column " + std::string(column) + " is '" + field + "': expected a number");
    return field.empty() ? 0 : value;
  }
  int64_t count(const char *column, int64_t absent) {
    double value = number(column);
    if (text(column).empty() && absent)
      return absent;
    if (!(value >= 1 && value <= 1e15) || value != std::floor(value)) {
      fail("column " + std::string(column) + " is '" + text(column) + "': expected a positive whole number");
      return 1;
    }
    return static_cast<int64_t>(value);
  }
  void fail(std::string message) {
    if (!fault)
      fault = Error{std::move(message)};
  }
  const std::optional<Error> &getFault() const { return fault; }

private:
  const TableRow &row;
  std::optional<Error> fault;
};

void readShape(RowReader &row, cost::ModelShape &shape) {
  shape.layers = row.count("layers", 0);
  shape.hidden = row.count("hidden", 0);
  shape.heads = row.count("heads", 0);
  shape.kvHeads = row.count("kv_heads", shape.heads);
  if (shape.layers > kMostLayers)
    row.fail("column layers is '" + row.text("layers") + "': expected up to " + std::to_string(kMostLayers));
  if (shape.hidden % shape.heads != 0)
    row.fail("column hidden is '" + row.text("hidden") + "': expected a multiple of the " +
             std::to_string(shape.heads) + " heads");
  shape.headSize = shape.hidden / shape.heads;
  shape.ffnHidden = row.count("ffn_hidden", 0);
  shape.vocabulary = row.count("vocab", kUsualVocabulary);
  shape.gated = row.yes("gated_mlp");
  // Decoders with one projection up and as many kv heads as heads are GPTs: learned positions, a tied head, biases.
  bool gpt = !shape.gated && shape.kvHeads == shape.heads;
  shape.layerNorm = shape.biases = shape.tied = gpt;
  shape.positionRows = gpt ? row.count("seq_len", 0) : 0;
}

void readPlan(RowReader &row, schedule::Plan &plan) {
  plan.tp = row.count("tp", 1);
  plan.cp = row.count("cp", 1);
  plan.pp = row.count("pp", 1);
  plan.chunks = plan.pp > 1 ? row.count("vpp", 1) : 1;
  int64_t gpus = row.count("gpus", 0), inner = plan.tp * plan.cp * plan.pp;
  if (gpus % inner != 0)
    row.fail(std::to_string(gpus) + " GPUs are not a multiple of TP x CP x PP (" + std::to_string(inner) + ")");
  plan.dp = std::max<int64_t>(1, gpus / inner);
  if (int64_t dp = row.count("dp", plan.dp); dp != plan.dp)
    row.fail("column dp is " + std::to_string(dp) + ": " + std::to_string(gpus) + " GPUs by TP x CP x PP (" +
             std::to_string(inner) + ") leave " + std::to_string(plan.dp));
  plan.microbatch = row.count("micro_batch", 1);
  if (plan.pp > 1 && row.has("notes", "local batch"))
    plan.microbatch = 1; // torchtitan's default; the row has what a rank does in a step
  plan.sequenceLength = row.count("seq_len", 0);
  plan.globalBatches = {row.count("global_batch_seqs", 0)};
  plan.computeType = row.text("precision") == "fp16" ? "f16" : "bf16";
  if (row.text("precision") != "bf16" && row.text("precision") != "fp16" && row.text("precision") != "fp8")
    row.fail("precision '" + row.text("precision") + "': expected bf16, fp16 or fp8");
  const char *const shardings[] = {"none", "DDP", "dist-opt", "ZeRO", "FSDP", "HSDP"};
  if (std::string given = row.text("fsdp_or_zero");
      !given.empty() && std::none_of(std::begin(shardings), std::end(shardings),
                                     [&](const char *word) { return row.has("fsdp_or_zero", word); }))
    row.fail("column fsdp_or_zero is '" + given + "': expected one of none, DDP, dist-opt, ZeRO, FSDP, HSDP in it");
  if (row.has("fsdp_or_zero", "ZeRO-2")) {
    plan.zero = 2;
    // Gradients that stay sharded through a pipeline's step are reduced after each run of microbatches.
    if (plan.pp > 1)
      plan.reduceEvery = "run";
  } else if (row.has("fsdp_or_zero", "FULL_SHARD") || row.starts("fsdp_or_zero", "FSDP2"))
    plan.zero = plan.pp > 1 ? 2 : 3; // with a pipeline parameters stay gathered
  else if (row.has("fsdp_or_zero", "SHARD_GRAD_OP"))
    plan.zero = 2;
  else
    plan.zero = row.has("fsdp_or_zero", "dist-opt") || row.has("fsdp_or_zero", "ZeRO-1") ? 1 : 0;
}

void readSoftware(RowReader &row, const schedule::Plan &plan, Software &software) {
  software.attention =
      row.starts("attention", "fused")
          ? "flash3"
          : row.oneOf("attention", {"flash3", "flash2", "triton", "unfused", "fused (flash3 or cuDNN)"});
  software.sequenceParallel = row.yes("sequence_parallel");
  software.tpOverlap = row.yes("tp_overlap") ? cost::TpOverlap::Ring : cost::TpOverlap::None;
  std::string dpOverlap = row.oneOf("dp_overlap", {"y", "n", "gradients only"});
  software.dpOverlap = dpOverlap == "y"                ? Software::DpOverlap::Both
                       : dpOverlap == "gradients only" ? Software::DpOverlap::Gradients
                                                       : Software::DpOverlap::None;
  software.fineBuckets = true;
  software.fusedElementwise = row.oneOf("elementwise", {"fused", "eager"}) != "eager";
  software.fp8 = row.text("precision") == "fp8";
  software.boosted = row.has("notes", "vboost on");
  software.nvls = !row.has("notes", "NVLS off");
  software.gradientBytes = row.count("gradient_bytes", 4);
  if (software.gradientBytes != 2 && software.gradientBytes != 4)
    row.fail("column gradient_bytes is '" + row.text("gradient_bytes") + "': expected 2 or 4");
  if (size_t at = row.text("fsdp_or_zero").find("group="); at != std::string::npos)
    software.shardRanks = std::strtoll(row.text("fsdp_or_zero").c_str() + at + 6, nullptr, 10);
  if (software.shardRanks >= plan.dp)
    software.shardRanks = 0;
  std::string recompute = row.text("recompute");
  bool torch = row.starts("fsdp_or_zero", "FSDP2");
  if (recompute.empty() || recompute == "none")
    software.recompute = cost::Recompute::None;
  else if (recompute.rfind("full", 0) == 0)
    software.recompute = cost::Recompute::Layers;
  else if (recompute.find("(layer)") != std::string::npos)
    software.recompute = cost::Recompute::HalfLayers;
  else if (recompute.rfind("selective", 0) == 0)
    software.recompute = torch ? cost::Recompute::HalfMatmuls : cost::Recompute::Selective;
  else
    row.fail("recompute '" + recompute + "': expected none, selective or full");
}

void readSeconds(RowReader &row, PublishedRun &run) {
  // The first of these that a row has says how long its step took.
  const char *const columns[] = {"step_time_s", "tok_s_gpu", "tflops_per_gpu"};
  const char *given = nullptr;
  for (const char *column : columns)
    if (!given && !row.text(column).empty())
      given = column;
  if (!given) {
    run.noSeconds = "no step time, no tokens a second and no TFLOP/s";
    return;
  }
  double value = row.number(given);
  if (!(value > 0))
    return row.fail("column " + std::string(given) + " is '" + row.text(given) + "': expected a number above 0");
  const schedule::Plan &plan = run.layout.plan;
  double tokens = static_cast<double>(plan.globalBatches.front()) * static_cast<double>(plan.sequenceLength);
  double tokensOfGpu = tokens / row.number("gpus");
  if (given == columns[0]) {
    run.stepSeconds = value;
  } else if (given == columns[1]) {
    run.stepSeconds = tokensOfGpu / value;
  } else if (row.has("flops_count", "hardware") || row.has("flops_count", "recompute")) {
    run.noSeconds = "no step time, and TFLOP/s of hardware FLOPs";
  } else {
    auto count = row.has("flops_count", "causal") && !row.has("flops_count", "not causal") ? cost::FlopsCount::Causal
                                                                                           : cost::FlopsCount::Full;
    run.stepSeconds = tokensOfGpu * run.shape.flopsPerToken(plan.sequenceLength, count) / (value * 1e12);
  }
}

/// In GiB where the row says so, else in GB.
void readPeak(RowReader &row, PublishedRun &run) {
  if (row.text("peak_mem_gb").empty())
    return;
  double value = row.number("peak_mem_gb");
  if (!(value > 0))
    return row.fail("column peak_mem_gb is '" + row.text("peak_mem_gb") + "': expected a number above 0");
  const std::string offload = "activation offload ratio alpha=", notes = row.text("notes");
  if (size_t at = notes.find(offload);
      at != std::string::npos && std::strtod(notes.c_str() + at + offload.size(), nullptr) > 0)
    run.noPeak = "activations are kept in the host's memory";
  else
    run.peakBytes = value * (row.has("notes", "GiB") || row.has("inferred", "GiB") ? 1024. * 1024 * 1024 : 1e9);
}
} // namespace

Result<std::vector<TableRow>> planner::parseTable(const std::string &text) {
  std::vector<std::vector<std::string>> lines(1, {""});
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"')
      lines.back().back() += text[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && c == ',')
      lines.back().emplace_back();
    else if (!quoted && c == '\n')
      lines.push_back({""});
    else if (quoted || c != '\r')
      lines.back().back() += c;
  }
  if (quoted)
    return Error{"a quoted field does not end"};
  std::vector<TableRow> rows;
  for (size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].size() == 1 && lines[i].front().empty())
      continue;
    if (lines[i].size() != lines.front().size())
      return Error{"row " + std::to_string(i) + " has " + std::to_string(lines[i].size()) + " fields: expected " +
                   std::to_string(lines.front().size())};
    TableRow &row = rows.emplace_back();
    for (size_t column = 0; column < lines[i].size(); ++column)
      row[lines.front()[column]] = lines[i][column];
  }
  if (rows.empty() || !rows.front().count("id"))
    return Error{"expected a header with a column 'id', and rows"};
  return rows;
}

std::string planner::originOf(const std::string &source) {
  if (source.rfind("arXiv ", 0) == 0 || source.find(" paper") != std::string::npos)
    return source.substr(0, source.find_first_of(" ,", 6));
  return source.substr(0, source.find_first_of(" @,"));
}

Result<PublishedRun> planner::readRun(const TableRow &fields) {
  RowReader row(fields);
  PublishedRun run;
  run.id = row.text("id");
  run.source = row.text("source");
  run.gpu = row.text("gpu_type");
  run.precision = row.text("precision");
  run.quality = row.text("quality");
  if (!row.text("ep").empty() && row.number("ep") > 1)
    return Error{"a mixture of experts"};
  if (row.has("notes", "LoRA"))
    return Error{"frozen weights (LoRA)"};
  readShape(row, run.shape);
  readPlan(row, run.layout.plan);
  if (row.getFault())
    return *row.getFault();
  readSoftware(row, run.layout.plan, run.software);
  // torchtitan compiles its loss too since 2025; llm-foundry's is flash-attention's kernel (llmfoundry/models/mpt).
  run.software.fusedLoss = row.has("notes", "cross-entropy fusion") || row.has("source", "_202506_") ||
                           row.starts("source", "mosaicml/llm-foundry");
  run.compiled = run.software.fusedElementwise && row.starts("fsdp_or_zero", "FSDP2");
  // Megatron-LM, Megatron-DeepSpeed and torchtitan number DP inside PP; Llama 3's paper PP inside DP.
  run.layout.order = {cluster::Axis::TP, cluster::Axis::CP, cluster::Axis::DP, cluster::Axis::PP};
  if (row.starts("source", "Llama 3 paper"))
    run.layout.order = cluster::kDefaultOrder;
  readSeconds(row, run);
  readPeak(row, run);
  if (row.getFault())
    return *row.getFault();
  return run;
}

Result<std::vector<StageMemory>> planner::memoryOf(const PublishedRun &run) {
  schedule::Plan plan = run.layout.plan;
  if (std::optional<Error> error = schedule::checkPlan(plan))
    return *error;
  Result<int64_t> microbatches = schedule::countMicrobatches(plan, plan.globalBatches.front());
  if (!microbatches)
    return Error{microbatches.error()};
  plan.layersPerChunk = layersOfChunks(run.shape, plan);
  // Compilers of whole graphs make norms and activations again from what products read; others keep both.
  plan.rebuild = run.compiled ? "auto" : "none";
  schedule::Plan order = plan;
  order.zero = std::min<int64_t>(plan.zero, 1); // buckets within chunks have no places of their own
  Result<ReplayProgram> program = ReplayProgram::build(order, *microbatches, chunkShapeOf(run.shape, plan));
  if (!program)
    return Error{program.error()};
  return memoryOf(run.shape, plan, *program, run.software);
}
