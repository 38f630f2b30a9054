//===- FuzzTest.cpp - mutated files never crash the front ends ------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Real files with bytes flipped, cut, repeated and spliced. Whatever comes of it, import and raising end in a
// program that verifies and no error, or in no program and exactly one error. Those of the runtime's files
// (safetensors, tokens, step programs) have the same in unittests/Runtime.
//
// Environment: DROVER_SHARED adds the small files there; DROVER_FUZZ_RUNS and DROVER_FUZZ_SEED change
// the number of files of each kind (2000) and the seed.
//
//===----------------------------------------------------------------------===//
#include "drover/Pipelines/ImportModel.h"
#include "drover/Support/Npy.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cstdlib>
#include <ctime>
#include <gtest/gtest.h>
#include <random>

using namespace drover;
using namespace llvm;

namespace {

uint64_t fromEnvironment(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Files of at most 1 MB, so that one mutation is likely to hit something that matters.
std::vector<std::string> collect(StringRef folder, StringRef ending) {
  std::vector<std::string> paths, contents;
  std::error_code code;
  for (sys::fs::recursive_directory_iterator it(folder, code), end; it != end && !code; it.increment(code))
    if (StringRef(it->path()).ends_with(ending))
      paths.push_back(it->path());
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths)
    if (auto buffer = MemoryBuffer::getFile(path); buffer && (*buffer)->getBufferSize() <= (1 << 20))
      contents.push_back((*buffer)->getBuffer().str());
  return contents;
}

struct Mutator {
  std::mt19937_64 random;

  size_t below(size_t limit) { return limit ? random() % limit : 0; }
  std::string operator()(std::string bytes, const std::string &other) {
    for (size_t i = 0, count = 1 + below(4); i < count && !bytes.empty(); ++i) {
      size_t at = below(bytes.size()), length = 1 + below(16);
      switch (below(7)) {
      case 0:
        bytes[at] ^= 1 << below(8);
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.erase(at, length);
        break;
      case 4:
        bytes.insert(at, bytes.substr(below(bytes.size()), length));
        break;
      case 5:
        bytes.replace(at, std::min(length, bytes.size() - at), other.substr(below(other.size()), length));
        break;
      case 6:
        // The extremes of a varint.
        bytes.replace(at, 1, below(2) ? std::string(9, '\xff') + '\x01' : std::string(1, '\0'));
        break;
      }
    }
    return bytes;
  }
};

void write(const std::string &path, StringRef bytes) {
  std::error_code code;
  raw_fd_ostream file(path, code);
  ASSERT_FALSE(code) << path;
  file << bytes;
}

void importFile(const std::string &path, uint64_t run) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  unsigned errors = 0;
  std::string text;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    errors += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
    text += diagnostic.str() + "; ";
    return mlir::success();
  });
  ModelImportOptions options;
  options.path = path;
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(context, options);
  if (!module) {
    EXPECT_EQ(errors, 1u) << "run " << run << ": " << text;
    return;
  }
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module))) << "run " << run;
  EXPECT_TRUE(mlir::succeeded(raiseModel(*module))) << "run " << run << ": " << text;
  EXPECT_EQ(errors, 0u) << "run " << run << ": " << text;
}

/// Calls `read` with the path and the number of each mutant of `files`.
void forEachMutant(const std::vector<std::string> &files, StringRef suffix,
                   function_ref<void(const std::string &, uint64_t)> read) {
  ASSERT_FALSE(files.empty());
  SmallString<128> path;
  ASSERT_FALSE(sys::fs::createTemporaryFile("drover-fuzz", suffix, path));
  uint64_t runs = fromEnvironment("DROVER_FUZZ_RUNS", 2000), seed = fromEnvironment("DROVER_FUZZ_SEED", 20), run = 0;
  // Of this process, so that other load does not shorten the test; sanitizers are several times slower.
  std::clock_t end = std::clock() + 60 * CLOCKS_PER_SEC;
  for (; run < runs && std::clock() < end && !testing::Test::HasFailure(); ++run) {
    // Each run has its own generator: a failure is repeated by its number alone.
    Mutator mutate{std::mt19937_64(seed * 1'000'003 + run)};
    const std::string &file = files[mutate.below(files.size())], &other = files[mutate.below(files.size())];
    write(path.str().str(), mutate(file, other));
    read(path.str().str(), run);
  }
  testing::Test::RecordProperty("runs", static_cast<int>(run));
  sys::fs::remove(path);
  EXPECT_GE(run, std::min<uint64_t>(runs, 500)) << "mutants in the time that the test has";
}

TEST(FuzzTest, EveryMutantOfAnOnnxFileEndsInAProgramOrOneError) {
  std::vector<std::string> files = collect(DROVER_TEST_INPUTS "/Import/Onnx/Inputs", ".onnx");
  if (const char *shared = std::getenv("DROVER_SHARED"))
    for (std::string &content : collect((Twine(shared) + "/onnx").str(), ".onnx"))
      files.push_back(std::move(content));
  forEachMutant(files, "onnx", importFile);
}

TEST(FuzzTest, EveryMutantOfAConfigEndsInAProgramOrOneError) {
  std::vector<std::string> files = collect(DROVER_TEST_INPUTS "/Execute/Inputs", "config.json");
  if (const char *shared = std::getenv("DROVER_SHARED"))
    for (std::string &content : collect((Twine(shared) + "/onnx/exports").str(), "config.json"))
      files.push_back(std::move(content));
  forEachMutant(files, "json", importFile);
}

TEST(FuzzTest, EveryMutantOfAnArrayIsReadOrRefused) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  header.resize(117, ' ');
  std::string array = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" + std::string(24, '\x3f');
  forEachMutant({array}, "npy", [](const std::string &path, uint64_t) {
    if (Expected<Tensor> tensor = readNpy(path); !tensor)
      consumeError(tensor.takeError());
  });
}

} // namespace
