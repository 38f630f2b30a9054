//===- MeasureHost.cpp - runs what measures this machine ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "MeasureHost.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include <cstdlib>

using namespace llvm;

namespace drover::tool {

/// A temporary file that goes with its owner.
namespace {
struct OutputFile {
  SmallString<128> path;
  ~OutputFile() { (void)sys::fs::remove(path); }
  std::string text() const {
    auto buffer = MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : "";
  }
};
} // namespace

Expected<ProgramRun> runWithin(int64_t seconds, StringRef program, ArrayRef<std::string> arguments) {
  OutputFile out, errors;
  for (OutputFile *file : {&out, &errors})
    if (std::error_code code = sys::fs::createTemporaryFile("drover-calibrate", "txt", file->path))
      return createStringError("cannot make a temporary file: " + code.message());
  std::vector<StringRef> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::optional<StringRef> redirects[] = {StringRef(), out.path.str(), errors.path.str()};
  std::string failure;
  std::optional<sys::ProcessStatistics> statistics;
  int status = sys::ExecuteAndWait(program, words, std::nullopt, redirects, static_cast<unsigned>(seconds), 0, &failure,
                                   nullptr, &statistics);
  if (status == 0)
    return ProgramRun{out.text(), statistics ? 1e-6 * static_cast<double>(statistics->TotalTime.count()) : 0};
  std::string name = sys::path::filename(program).str();
  if (status == -2 && StringRef(failure).contains("timed out"))
    return createStringError(name + " has not ended within " + std::to_string(seconds) + " s (--deadline)");
  std::string reason = failure.empty() ? StringRef(errors.text()).trim().take_front(500).str() : failure;
  return createStringError(name + " has failed with status " + std::to_string(status) + ": " + reason);
}

namespace {

/// The program that measures, beside this one.
Expected<std::string> findMeasurer() {
  SmallString<128> path(sys::path::parent_path(sys::fs::getMainExecutable(nullptr, nullptr)));
  sys::path::append(path, "drover-measure");
  if (!sys::fs::can_execute(path))
    return createStringError("the program that measures is not found: expected " + path.str());
  return path.str().str();
}

/// What a program printed as JSON, read field by field; the first that is missing or of another kind is the fault.
class MeasurementReader {
public:
  explicit MeasurementReader(cost::Measurements &measured) : measured(measured) {}

  Error readKernels(StringRef text) {
    Expected<json::Value> root = json::parse(text);
    if (!root)
      return root.takeError();
    json::Path::Root path("kernels");
    json::ObjectMapper map(*root, path);
    bool good = map && map.map("cores", measured.cores) && map.map("matmuls", measured.matmuls) &&
                map.map("attention", measured.attention) && map.map("passes", measured.passes) && readRest(*root);
    return good ? Error::success() : path.getError();
  }

  Error readExchanges(StringRef text) {
    Expected<json::Value> root = json::parse(text);
    if (!root)
      return root.takeError();
    json::Path::Root path("collectives");
    json::ObjectMapper map(*root, path);
    std::string backend;
    std::vector<cost::MeasuredExchange> rows;
    if (!map || !map.map("backend", backend) || !map.map("rows", rows))
      return path.getError();
    for (cost::MeasuredExchange &row : rows) {
      row.backend = backend;
      measured.ranks = std::max(measured.ranks, row.ranks);
      measured.exchanges.push_back(std::move(row));
    }
    return Error::success();
  }

private:
  bool readRest(const json::Value &root) {
    const json::Object *memory = root.getAsObject()->getObject("memory");
    const json::Object *calls = root.getAsObject()->getObject("calls");
    const json::Array *each = calls ? calls->getArray("same_on_each_core") : nullptr;
    if (!memory || !each)
      return false;
    measured.totalBytes = memory->getNumber("total").value_or(0);
    measured.availableBytes = memory->getNumber("available").value_or(0);
    measured.contextBytes = memory->getNumber("context").value_or(0);
    measured.emptyCallSeconds = calls->getNumber("empty").value_or(0);
    for (const json::Value &seconds : *each)
      measured.sameOnEachCore.push_back(seconds.getAsNumber().value_or(0));
    return measured.totalBytes > 0;
  }

  cost::Measurements &measured;
};
} // namespace
} // namespace drover::tool

/// Found by json::ObjectMapper in the namespace of what is read.
namespace drover::cost {
static bool fromJSON(const json::Value &value, MeasuredMatmul &one, json::Path path) {
  json::ObjectMapper map(value, path);
  std::string dtype;
  if (!map || !map.map("dtype", dtype) || !map.map("m", one.m) || !map.map("n", one.n) || !map.map("k", one.k) ||
      !map.map("seconds", one.seconds))
    return false;
  std::optional<cluster::Precision> precision = cluster::parsePrecision(dtype);
  if (precision)
    one.precision = *precision;
  return precision.has_value();
}

static bool fromJSON(const json::Value &value, MeasuredAttention &one, json::Path path) {
  json::ObjectMapper map(value, path);
  bool backward = false;
  if (!map || !map.map("backward", backward) || !map.map("length", one.length) || !map.map("heads", one.heads) ||
      !map.map("head_size", one.headSize) || !map.map("seconds", one.seconds))
    return false;
  one.phase = backward ? AttentionPhase::Backward : AttentionPhase::Forward;
  return true;
}

static bool fromJSON(const json::Value &value, MeasuredPass &one, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("bytes", one.bytes) && map.map("seconds", one.seconds);
}

static bool fromJSON(const json::Value &value, MeasuredExchange &one, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("kind", one.kind) && map.map("ranks", one.ranks) && map.map("bytes", one.bytes) &&
         map.map("seconds", one.seconds);
}
} // namespace drover::cost

namespace drover::tool {

/// Processes, where MPI's launcher starts them. What keeps it from that is no error: MPI is left out.
static Error measureMpi(const CalibrationOptions &options, const std::string &measurer, int64_t ranks,
                        ArrayRef<std::string> arguments, MeasurementReader &reader) {
  ErrorOr<std::string> mpirun = sys::findProgramByName("mpirun");
  if (!mpirun)
    return createStringError("no mpirun in PATH");
  // Open MPI refuses more processes than cores, and root, unless told otherwise; others do not look at these.
  for (const char *name :
       {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"})
    setenv(name, "1", /*overwrite=*/0);
  setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", /*overwrite=*/0);
  std::vector<std::string> words = {"-n", std::to_string(ranks), measurer};
  words.insert(words.end(), arguments.begin(), arguments.end());
  Expected<ProgramRun> ended = runWithin(options.deadlineSeconds, *mpirun, words);
  return ended ? reader.readExchanges(ended->output) : ended.takeError();
}

Expected<cost::Measurements> measureHost(const CalibrationOptions &options, raw_ostream &log) {
  Expected<std::string> measurer = findMeasurer();
  if (!measurer)
    return measurer.takeError();
  cost::Measurements measured;
  MeasurementReader reader(measured);
  std::string turns = "--turns=" + std::to_string(options.turns);
  log << "calibrate: kernels\n";
  std::vector<std::string> arguments = {"kernels", turns};
  if (options.cores > 0)
    arguments.push_back("--cores=" + std::to_string(options.cores));
  Expected<ProgramRun> kernels = runWithin(options.deadlineSeconds, *measurer, arguments);
  if (!kernels)
    return kernels.takeError();
  if (Error error = reader.readKernels(kernels->output))
    return error;
  bool mpi = true;
  for (int64_t ranks = 2; ranks <= options.ranks; ranks *= 2) {
    log << "calibrate: collectives of " << ranks << " ranks\n";
    // A wait ends before the program's own deadline does.
    arguments = {"collectives", turns,
                 "--deadline=" + std::to_string(std::max<int64_t>(1, options.deadlineSeconds / 2))};
    std::vector<std::string> threads = arguments;
    threads.push_back("--ranks=" + std::to_string(ranks));
    Expected<ProgramRun> ended = runWithin(options.deadlineSeconds, *measurer, threads);
    if (!ended)
      return ended.takeError();
    if (Error error = reader.readExchanges(ended->output))
      return error;
    if (!mpi)
      continue;
    if (Error error = measureMpi(options, *measurer, ranks, arguments, reader)) {
      log << "calibrate: MPI is left out from " << ranks << " ranks on: " << toString(std::move(error)) << "\n";
      mpi = false;
    }
  }
  return measured;
}

} // namespace drover::tool
