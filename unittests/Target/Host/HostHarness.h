//===- HostHarness.h - compiled bodies against the interpreter --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_TARGET_HOST_HOSTHARNESS_H
#define DROVER_UNITTESTS_TARGET_HOST_HOSTHARNESS_H

#include "drover/Interpreter/Interpreter.h"
#include "drover/Target/Host/Host.h"
#include "drover/rt/abi.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace llvm::orc {
class LLJIT;
}

namespace drover::test {

/// A rank's place, by drover_axis.
using Coordinates = std::array<int32_t, DROVER_NUM_AXES>;

struct Run {
  int threads = 1;
  int accumulate = 1;
  int64_t size = 0; // of a flat body
  Coordinates coordinates = {};
  drover_communicators *communicators = nullptr;
};

/// A module of bodies, compiled to object code and loaded into this process.
class CompiledBodies {
public:
  explicit CompiledBodies(const std::string &text, const host::HostOptions &options = {});
  ~CompiledBodies();

  /// True where compilation worked; the diagnostics otherwise.
  bool ok() const { return jit != nullptr; }
  const std::string &diagnostics() const { return messages; }

  mlir::func::FuncOp original(llvm::StringRef name);
  int64_t workspaceBytes(llvm::StringRef name);
  drover_body_fn function(llvm::StringRef name);
  /// Results in order; those in place too. Ranks may run at the same time.
  std::vector<Tensor> run(llvm::StringRef name, llvm::ArrayRef<Tensor> arguments, const Run &run);

private:
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> source, lowered;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::string messages;
  std::mutex reading; // of the modules: the context knows one thread
};

/// Random arguments of a function: floats normal, integers in the range of the argument's attribute
/// `test.range = array<i64: lo, hi>` (hi excluded) or in [0, 2).
std::vector<Tensor> randomArguments(mlir::func::FuncOp function, uint64_t seed, int64_t size);

struct Tolerance {
  double relative, ofLargest; // |a - b| <= relative * |b| + ofLargest * max|b|
};
inline constexpr Tolerance kF32{1e-5, 2e-6};
inline constexpr Tolerance kBF16{8e-3, 8e-3};

void expectClose(const Tensor &got, const Tensor &want, Tolerance tolerance, unsigned result);

/// Compiles `text`, runs body `name` with 1, 2 and 3 threads, which must agree bitwise, and compares with the
/// interpreter.
void expectMatches(const std::string &text, Tolerance tolerance = kF32, int64_t size = 0, llvm::StringRef name = "body",
                   int accumulate = 1, const Coordinates &coordinates = {}, const host::HostOptions &options = {});

/// What the interpreter is to know of a rank's place.
InterpreterOptions interpreterAt(const Coordinates &coordinates);

} // namespace drover::test

#endif // DROVER_UNITTESTS_TARGET_HOST_HOSTHARNESS_H
