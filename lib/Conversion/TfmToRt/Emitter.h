//===- Emitter.h - bodies and kernels on memrefs ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CONVERSION_TFMTORT_EMITTER_H
#define DROVER_LIB_CONVERSION_TFMTORT_EMITTER_H

#include "RowProgram.h"
#include "drover/Dialect/Rt/IR/Rt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace drover::lower {

/// The element type in memory: i1 is a byte.
mlir::Type storageType(mlir::Type type);
int64_t bytesOf(mlir::Type type);

/// What the emission of one body shares.
struct BodyEmitter {
  BodyEmitter(mlir::ModuleOp module, mlir::func::FuncOp function, llvm::StringRef name, unsigned lanes)
      : module(module), function(function), body(function.getLoc(), function.getContext()), name(name), lanes(lanes) {}

  mlir::ModuleOp module;
  mlir::func::FuncOp function; // the new one
  mlir::ImplicitLocOpBuilder body;
  mlir::Value call;
  std::string name;
  unsigned lanes; // elements of an f32 vector in kernels
  unsigned numKernels = 0;
  /// The flat memref of a root's buffer.
  std::function<mlir::Value(mlir::Value)> buffer;
  /// Workspace of this unit alone, by number.
  std::function<mlir::Value(unsigned)> scratch;

  mlir::Value index(int64_t value);
  /// A strided memref over the view's buffer.
  mlir::Value strided(const View &view);
};

/// One kernel function and its launch.
class KernelBuilder {
public:
  explicit KernelBuilder(BodyEmitter &emitter);
  /// The kernel's argument for a value of the body.
  mlir::Value argument(mlir::Value bodyValue);
  mlir::Value buffer(mlir::Value root) { return argument(emitter.buffer(root)); }
  /// Ends the kernel and launches it at the end of the body.
  void launch(mlir::Value count, int64_t grain);
  void launch(int64_t count, int64_t grain) { launch(emitter.index(count), grain); }

  mlir::Value begin() { return block().getArgument(0); }
  mlir::Value end() { return block().getArgument(1); }
  mlir::Value index(int64_t value);
  mlir::Value constant(mlir::Type type, double value);
  /// Sum of index values; products with a constant.
  mlir::Value add(mlir::Value a, mlir::Value x);
  mlir::Value scale(mlir::Value a, int64_t factor);
  /// The position of an index that was read: the run ends where it is not below `size`. With `fromEnd` negative indices
  /// count from there.
  mlir::Value position(mlir::Value index, int64_t size, bool fromEnd, llvm::StringRef opName);
  /// A loop [from, to) by step; the body gets the induction variable and the carried values, and returns their next.
  llvm::SmallVector<mlir::Value>
  loop(mlir::Value from, mlir::Value to, int64_t step, mlir::ValueRange carried,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> build);
  /// A loop over this kernel's indices.
  void indices(llvm::function_ref<void(mlir::Value)> build);

  /// Loads and stores, converted from and to the compute type (bf16 to nearest even).
  mlir::Value load(mlir::Value buffer, mlir::Value at, mlir::Type type);
  void store(mlir::Value value, mlir::Value buffer, mlir::Value at, mlir::Type type, bool rounded = false);
  /// `width` elements at at, at + stride, ..
  mlir::Value load(mlir::Value buffer, mlir::Value at, mlir::Type type, int64_t width, int64_t stride);
  void store(mlir::Value value, mlir::Value buffer, mlir::Value at, mlir::Type type, int64_t width, int64_t stride,
             bool rounded = false);
  /// Rounds an f32 to a narrow type's nearest value.
  mlir::Value round(mlir::Value value, mlir::Type narrow);
  mlir::Value splat(mlir::Value scalar, int64_t width);
  /// All lanes in a fixed order.
  mlir::Value horizontal(mlir::Value vector, RowReduction kind);
  mlir::Value combine(mlir::Value a, mlir::Value x, RowReduction kind);
  static double neutral(RowReduction kind);

  mlir::ImplicitLocOpBuilder b;

private:
  mlir::Block &block() { return function.getBody().front(); }
  mlir::Value widen(mlir::Value stored, mlir::Type type);
  mlir::Value narrow(mlir::Value value, mlir::Type type, bool rounded);

  BodyEmitter &emitter;
  mlir::func::FuncOp function;
  llvm::SmallVector<mlir::Value> operands;
  llvm::DenseMap<mlir::Value, mlir::Value> arguments;
};

/// Rows of a fixed block of a column sum, and bytes of its partial sums.
int64_t columnSumRows(Domain domain);
int64_t columnSumBytes(const RowProgram &program, const Sink &sink);

void emitRowKernel(BodyEmitter &emitter, const RowProgram &program);
} // namespace drover::lower

#endif // DROVER_LIB_CONVERSION_TFMTORT_EMITTER_H
