//===- drover-project.cpp - published runs, predicted ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cluster/Yaml/ReadCluster.h"
#include "drover/Planner/PublishedRuns.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <set>

using namespace drover;
using namespace drover::planner;

static llvm::cl::OptionCategory category("drover-project options");
static llvm::cl::opt<std::string> tablePath(llvm::cl::Positional, llvm::cl::Required, llvm::cl::desc("RUNS.csv"),
                                            llvm::cl::cat(category));
static llvm::cl::opt<bool> asJson("json", llvm::cl::desc("Print rows and skipped rows as JSON"),
                                  llvm::cl::cat(category));
static llvm::cl::opt<bool> withParts("breakdown", llvm::cl::desc("Print the parts of each step and of each peak"),
                                     llvm::cl::cat(category));
static llvm::cl::opt<std::string> flopsCount("flops-count",
                                             llvm::cl::desc("FLOPs of TFLOP/s: causal, full or hardware"),
                                             llvm::cl::init("causal"), llvm::cl::cat(category));
static llvm::cl::opt<std::string> clustersPath("clusters", llvm::cl::desc("Folder of cluster files"),
                                               llvm::cl::init("clusters"), llvm::cl::cat(category));

namespace {
/// What a summary groups rows by.
struct Row {
  std::string id, source, kind, precision, quality;
  double published = 0, predicted = 0;
  double error() const { return predicted / published - 1; }
};
struct StepRow : Row {
  Projection projection;
};
struct MemoryRow : Row {
  StageMemory fullest;
};
struct Skipped {
  std::string id, reason;
};
struct Answer {
  std::vector<StepRow> steps;
  std::vector<Skipped> skipped;
  std::vector<MemoryRow> peaks;
  std::vector<Skipped> skippedPeaks; // of rows that have a peak
};

int fail(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "drover-project") << message << "\n";
  return 1;
}

/// Cluster files of a folder, by the names that tables of published runs give them.
schedule::Result<std::map<std::string, cluster::Cluster>> readClusters(const std::string &folder) {
  std::map<std::string, cluster::Cluster> byName;
  std::error_code status;
  std::vector<std::string> paths;
  for (llvm::sys::fs::directory_iterator it(folder, status), end; it != end && !status; it.increment(status))
    if (llvm::sys::path::extension(it->path()) == ".yaml")
      paths.push_back(it->path());
  if (status)
    return schedule::Error{"cannot read the folder '" + folder + "': " + status.message()};
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths) {
    schedule::Result<cluster::Cluster> read = cluster::readClusterFile(path);
    if (!read)
      return schedule::Error{read.error()};
    for (const std::string &name : read->publishedAs)
      byName.emplace(name, *read);
  }
  return byName;
}

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  double place = part * static_cast<double>(values.size() - 1);
  auto below = static_cast<size_t>(place);
  size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

void printSummary(llvm::raw_ostream &os, llvm::StringRef name, const std::vector<double> &errors) {
  if (errors.empty())
    return;
  if (!name.empty())
    os << name << ": ";
  os << "median " << llvm::format("%.1f", 100 * quantile(errors, 0.5)) << " % p90 "
     << llvm::format("%.1f", 100 * quantile(errors, 0.9)) << " % over " << errors.size() << " rows\n";
}

/// All rows, then by group; `name` begins each line.
template <typename RowType>
void printSummaries(llvm::raw_ostream &os, const std::string &name, const std::vector<RowType> &rows) {
  std::vector<double> all, plain;
  std::map<std::string, std::vector<double>> groups[4];
  for (const RowType &row : rows) {
    double error = std::abs(row.error());
    all.push_back(error);
    groups[0]["source " + row.source].push_back(error);
    groups[1]["GPU kind " + row.kind].push_back(error);
    groups[2]["precision " + row.precision].push_back(error);
    groups[3]["quality " + row.quality].push_back(error);
    if (row.quality == "A" && row.precision != "fp8")
      plain.push_back(error);
  }
  printSummary(os, name, all);
  const std::string prefix = name.empty() ? "" : name + ", ";
  for (const auto &group : groups)
    for (const auto &[title, errors] : group)
      printSummary(os, prefix + title, errors);
  printSummary(os, prefix + "quality A in bf16 and fp16", plain);
}

std::string gib(double bytes) { return llvm::formatv("{0:f1}", bytes / (1 << 30)).str(); }

void printPeaks(llvm::raw_ostream &os, const Answer &answer) {
  for (const MemoryRow &row : answer.peaks) {
    os << row.id << "  published " << gib(row.published) << " GiB  predicted " << gib(row.predicted) << " GiB  error "
       << llvm::format("%+.1f", 100 * row.error()) << " %\n";
    if (!withParts)
      continue;
    os << "   ";
    for (auto [name, bytes] : partsOf(row.fullest))
      os << " " << name << " " << gib(bytes);
    os << "\n";
  }
  for (const Skipped &row : answer.skippedPeaks)
    os << row.id << "  skipped: " << row.reason << "\n";
  printSummaries(os, "memory", answer.peaks);
}

/// The last lines sum up the errors of step times.
void printTables(llvm::raw_ostream &os, const Answer &answer) {
  if (!answer.peaks.empty() || !answer.skippedPeaks.empty()) {
    os << "peak memory of the fullest rank\n";
    printPeaks(os, answer);
    os << "\nseconds of a step\n";
  }
  for (const StepRow &row : answer.steps) {
    os << row.id << "  published " << llvm::format("%.4g", row.published) << " s  predicted "
       << llvm::format("%.4g", row.predicted) << " s  error " << llvm::format("%+.1f", 100 * row.error()) << " %  "
       << llvm::format("%.0f", row.projection.flopsPerSecondPerGpu(*cost::parseFlopsCount(flopsCount)) / 1e12)
       << " TFLOP/s\n";
    if (!withParts)
      continue;
    os << "   ";
    for (auto [name, seconds] : partsOf(row.projection.breakdown))
      os << " " << name << " " << llvm::format("%.4g", seconds);
    os << "\n";
  }
  for (const Skipped &row : answer.skipped)
    os << row.id << "  skipped: " << row.reason << "\n";
  printSummaries(os, "", answer.steps);
}

void printRow(llvm::json::OStream &json, const Row &row, llvm::StringRef unit) {
  json.attribute("id", row.id);
  json.attribute(("published_" + unit).str(), row.published);
  json.attribute(("predicted_" + unit).str(), row.predicted);
  json.attribute("error", row.error());
  json.attribute("source", row.source);
  json.attribute("gpu_kind", row.kind);
  json.attribute("precision", row.precision);
  json.attribute("quality", row.quality);
}

void printSkipped(llvm::json::OStream &json, llvm::StringRef name, const std::vector<Skipped> &rows) {
  json.attributeArray(name, [&] {
    for (const Skipped &row : rows)
      json.object([&] {
        json.attribute("id", row.id);
        json.attribute("reason", row.reason);
      });
  });
}

template <typename Parts> void printParts(llvm::json::OStream &json, llvm::StringRef name, const Parts &parts) {
  json.attributeObject(name, [&] {
    for (auto [part, value] : parts)
      json.attribute(part, value);
  });
}

void printJson(llvm::raw_ostream &os, const Answer &answer) {
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attributeArray("rows", [&] {
      for (const StepRow &row : answer.steps)
        json.object([&] {
          printRow(json, row, "s");
          json.attribute("tflops_per_gpu",
                         row.projection.flopsPerSecondPerGpu(*cost::parseFlopsCount(flopsCount)) / 1e12);
          json.attribute("mfu", row.projection.mfu());
          json.attribute("hfu", row.projection.hfu());
          printParts(json, "breakdown_s", partsOf(row.projection.breakdown));
        });
    });
    printSkipped(json, "skipped", answer.skipped);
    json.attributeArray("memory", [&] {
      for (const MemoryRow &row : answer.peaks)
        json.object([&] {
          printRow(json, row, "bytes");
          printParts(json, "parts_bytes", partsOf(row.fullest));
        });
    });
    printSkipped(json, "memory_skipped", answer.skippedPeaks);
  });
  os << "\n";
}

/// Adds a row of the table to the answer.
void predict(const TableRow &fields, const std::map<std::string, cluster::Cluster> &clusters,
             std::set<std::string> &seen, Answer &answer) {
  const std::string &id = fields.at("id");
  auto peak = fields.find("peak_mem_gb");
  auto skipAll = [&](const std::string &reason) {
    answer.skipped.push_back({id, reason});
    if (peak != fields.end() && !peak->second.empty())
      answer.skippedPeaks.push_back({id, reason});
  };
  if (!seen.insert(id).second)
    return skipAll("the id is listed twice");
  schedule::Result<PublishedRun> run = readRun(fields);
  if (!run)
    return skipAll(run.error());
  auto found = clusters.find(run->gpu);
  if (found == clusters.end())
    return skipAll("no cluster file is published_as '" + run->gpu + "'");
  Row row{run->id, originOf(run->source), found->second.device.kind, run->precision, run->quality};
  if (!run->noSeconds.empty()) {
    answer.skipped.push_back({id, run->noSeconds});
  } else {
    schedule::Result<Projection> projection = project(run->shape, found->second, run->layout, run->software);
    row.published = run->stepSeconds;
    if (projection)
      row.predicted = projection->stepSeconds, answer.steps.push_back({row, *projection});
    else
      answer.skipped.push_back({id, projection.error()});
  }
  if (!run->noPeak.empty())
    answer.skippedPeaks.push_back({id, run->noPeak});
  if (!(run->peakBytes > 0))
    return;
  schedule::Result<std::vector<StageMemory>> memory = memoryOf(*run);
  if (!memory) {
    answer.skippedPeaks.push_back({id, memory.error()});
    return;
  }
  const StageMemory &fullest = *std::max_element(
      memory->begin(), memory->end(), [](const StageMemory &a, const StageMemory &b) { return a.total() < b.total(); });
  row.published = run->peakBytes;
  row.predicted = fullest.total();
  answer.peaks.push_back({row, fullest});
}
} // namespace

int main(int argc, char **argv) {
  llvm::cl::HideUnrelatedOptions(category);
  llvm::cl::ParseCommandLineOptions(argc, argv, "Predicts step times and peak memory of published training runs.\n");
  if (!cost::parseFlopsCount(flopsCount))
    return fail("--flops-count=" + llvm::Twine(flopsCount) + ": expected causal, full or hardware");
  // The next option, where the value was forgotten.
  if (llvm::StringRef(clustersPath).starts_with("--"))
    return fail("--clusters: expected --clusters=FOLDER, not '" + llvm::Twine(clustersPath) + "'");
  auto buffer = llvm::MemoryBuffer::getFile(tablePath);
  if (!buffer)
    return fail("cannot read '" + llvm::Twine(tablePath) + "': " + buffer.getError().message());
  schedule::Result<std::vector<TableRow>> table = parseTable((*buffer)->getBuffer().str());
  if (!table)
    return fail(llvm::Twine(tablePath) + ": " + table.error());
  schedule::Result<std::map<std::string, cluster::Cluster>> clusters = readClusters(clustersPath);
  if (!clusters)
    return fail(clusters.error());
  Answer answer;
  std::set<std::string> seen;
  for (const TableRow &fields : *table)
    predict(fields, *clusters, seen, answer);
  if (asJson)
    printJson(llvm::outs(), answer);
  else
    printTables(llvm::outs(), answer);
  return 0;
}
