//===- drover-project.cpp - published runs, predicted ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cluster/Yaml/ReadCluster.h"
#include "drover/Planner/PublishedRuns.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace drover;
using namespace drover::planner;

static llvm::cl::opt<std::string> tablePath(llvm::cl::Positional, llvm::cl::Required, llvm::cl::desc("RUNS.csv"));
static llvm::cl::opt<bool> asJson("json", llvm::cl::desc("Print rows and skipped rows as JSON"));
static llvm::cl::opt<bool> withParts("breakdown", llvm::cl::desc("Print the parts of each step"));
static llvm::cl::opt<std::string>
    flopsCount("flops-count", llvm::cl::desc("FLOPs of TFLOP/s: causal, full or hardware"), llvm::cl::init("causal"));
static llvm::cl::opt<std::string> clustersPath("clusters", llvm::cl::desc("Folder of cluster files"),
                                               llvm::cl::init("clusters"));

namespace {
struct Predicted {
  PublishedRun run;
  std::string kind;
  Projection projection;
  double error() const { return projection.stepSeconds / run.stepSeconds - 1; }
};
struct Skipped {
  std::string id, reason;
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

void printTable(llvm::raw_ostream &os, const std::vector<Predicted> &rows, const std::vector<Skipped> &skipped) {
  for (const Predicted &row : rows) {
    os << row.run.id << "  published " << llvm::format("%.4g", row.run.stepSeconds) << " s  predicted "
       << llvm::format("%.4g", row.projection.stepSeconds) << " s  error " << llvm::format("%+.1f", 100 * row.error())
       << " %  " << llvm::format("%.0f", row.projection.flopsPerSecondPerGpu(*cost::parseFlopsCount(flopsCount)) / 1e12)
       << " TFLOP/s\n";
    if (!withParts)
      continue;
    os << "   ";
    for (auto [name, seconds] : partsOf(row.projection.breakdown))
      os << " " << name << " " << llvm::format("%.4g", seconds);
    os << "\n";
  }
  for (const Skipped &row : skipped)
    os << row.id << "  skipped: " << row.reason << "\n";
  using Key = std::string (*)(const Predicted &);
  constexpr Key keys[] = {[](const Predicted &row) { return "source " + originOf(row.run.source); },
                          [](const Predicted &row) { return "GPU kind " + row.kind; },
                          [](const Predicted &row) { return "precision " + row.run.precision; },
                          [](const Predicted &row) { return "quality " + row.run.quality; }};
  std::vector<double> all;
  for (const Predicted &row : rows)
    all.push_back(std::abs(row.error()));
  printSummary(os, "", all);
  for (Key key : keys) {
    std::map<std::string, std::vector<double>> groups;
    for (const Predicted &row : rows)
      groups[key(row)].push_back(std::abs(row.error()));
    for (const auto &[name, errors] : groups)
      printSummary(os, name, errors);
  }
}

void printJson(llvm::raw_ostream &os, const std::vector<Predicted> &rows, const std::vector<Skipped> &skipped) {
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attributeArray("rows", [&] {
      for (const Predicted &row : rows)
        json.object([&] {
          json.attribute("id", row.run.id);
          json.attribute("published_s", row.run.stepSeconds);
          json.attribute("predicted_s", row.projection.stepSeconds);
          json.attribute("error", row.error());
          json.attribute("source", originOf(row.run.source));
          json.attribute("gpu_kind", row.kind);
          json.attribute("precision", row.run.precision);
          json.attribute("quality", row.run.quality);
          json.attribute("tflops_per_gpu",
                         row.projection.flopsPerSecondPerGpu(*cost::parseFlopsCount(flopsCount)) / 1e12);
          json.attribute("mfu", row.projection.mfu());
          json.attribute("hfu", row.projection.hfu());
          json.attributeObject("breakdown_s", [&] {
            for (auto [name, seconds] : partsOf(row.projection.breakdown))
              json.attribute(name, seconds);
          });
        });
    });
    json.attributeArray("skipped", [&] {
      for (const Skipped &row : skipped)
        json.object([&] {
          json.attribute("id", row.id);
          json.attribute("reason", row.reason);
        });
    });
  });
  os << "\n";
}
} // namespace

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv, "Predicts the step times of published training runs.\n");
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
  std::vector<Predicted> rows;
  std::vector<Skipped> skipped;
  for (const TableRow &fields : *table) {
    schedule::Result<PublishedRun> run = readRun(fields);
    if (!run) {
      skipped.push_back({fields.at("id"), run.error()});
      continue;
    }
    auto found = clusters->find(run->gpu);
    if (found == clusters->end()) {
      skipped.push_back({run->id, "no cluster file is published_as '" + run->gpu + "'"});
      continue;
    }
    schedule::Result<Projection> projection = project(run->shape, found->second, run->layout, run->software);
    if (!projection)
      skipped.push_back({run->id, projection.error()});
    else
      rows.push_back({*run, found->second.device.kind, *projection});
  }
  if (asJson)
    printJson(llvm::outs(), rows, skipped);
  else
    printTable(llvm::outs(), rows, skipped);
  return 0;
}
