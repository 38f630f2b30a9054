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
#include <memory>
#include <string>
#include <vector>

namespace llvm::orc {
class LLJIT;
}

namespace drover::test {

struct Run {
  int threads = 1;
  int accumulate = 1;
  int64_t size = 0; // of a flat body
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
  /// Results in order; those in place too.
  std::vector<Tensor> run(llvm::StringRef name, llvm::ArrayRef<Tensor> arguments, const Run &run);

private:
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> source, lowered;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::string messages;
};

/// Random arguments of a function: floats normal, integers in the range of the argument's attribute
/// `test.range = array<i64: lo, hi>` (hi excluded) or in [0, 2).
std::vector<Tensor> randomArguments(mlir::func::FuncOp function, uint64_t seed, int64_t size);

struct Tolerance {
  double relative, ofLargest; // |a - b| <= relative * |b| + ofLargest * max|b|
};
inline constexpr Tolerance kF32{1e-5, 2e-6};
inline constexpr Tolerance kBF16{8e-3, 8e-3};

/// Compiles `text`, runs body `name` with 1, 2 and 3 threads, which must agree bitwise, and compares with the
/// interpreter.
void expectMatches(const std::string &text, Tolerance tolerance = kF32, int64_t size = 0, llvm::StringRef name = "body",
                   int accumulate = 1);

} // namespace drover::test

#endif // DROVER_UNITTESTS_TARGET_HOST_HOSTHARNESS_H
