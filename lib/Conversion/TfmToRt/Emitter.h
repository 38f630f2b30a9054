//===- Emitter.h - bodies and kernels on memrefs ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CONVERSION_TFMTORT_EMITTER_H
#define DROVER_LIB_CONVERSION_TFMTORT_EMITTER_H

#include "RowProgram.h"
#include "drover/Dialect/Rt/IR/Rt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <memory>

namespace drover::lower {

/// The element type in memory: i1 is a byte.
mlir::Type storageType(mlir::Type type);
int64_t bytesOf(mlir::Type type);

/// What bodies are compiled for.
enum class Target { Host, Cuda };

/// Axes of the grid with their sizes, outermost first.
using Axes = llvm::SmallVector<std::pair<rt::Axis, int64_t>, 2>;

class KernelBuilder;

/// What the emission of one body shares.
struct BodyEmitter {
  BodyEmitter(mlir::ModuleOp module, mlir::func::FuncOp function, llvm::StringRef name, Target target, unsigned lanes)
      : module(module), function(function), body(function.getLoc(), function.getContext()), name(name), target(target),
        lanes(lanes) {}

  mlir::ModuleOp module;
  mlir::func::FuncOp function; // the new one
  mlir::ImplicitLocOpBuilder body;
  mlir::Value call;
  std::string name;
  std::string unitName; // what the unit's kernels are called where they have names of their own
  Target target;
  unsigned lanes;      // elements of an f32 vector in kernels
  bool isWide = false; // an index does not fit 32 bits
  unsigned numKernels = 0;
  /// The flat memref of a root's buffer.
  std::function<mlir::Value(mlir::Value)> buffer;
  /// Workspace of this unit alone, by number.
  std::function<mlir::Value(unsigned)> scratch;

  mlir::Value index(int64_t value);
  /// A strided memref over the view's buffer.
  mlir::Value strided(const View &view);
  /// Starts a kernel of the target.
  std::unique_ptr<KernelBuilder> kernel();
};

/// One kernel function and its launch. Kernels are loops over indices that do not depend on each other; a target says
/// how they run, and what memory and the call are to them.
class KernelBuilder {
public:
  KernelBuilder(BodyEmitter &emitter, mlir::Type indexType)
      : b(emitter.body.getLoc(), emitter.module.getContext()), emitter(emitter), indexType(indexType) {}
  virtual ~KernelBuilder() = default;

  /// The kernel's argument for a memref of the body.
  virtual mlir::Value argument(mlir::Value bodyValue) = 0;
  mlir::Value buffer(mlir::Value root) { return argument(emitter.buffer(root)); }
  /// Constant floats.
  virtual mlir::Value table(llvm::ArrayRef<float> values) = 0;
  /// drover_call.size as an index, drover_call.accumulate as an i1, and the rank's index over axes.
  virtual mlir::Value callSize() = 0;
  virtual mlir::Value callAccumulates() = 0;
  virtual mlir::Value rankIndex(const Axes &axes) = 0;
  /// Calls `build` for this kernel's indices. Only once in a kernel, around all of it.
  virtual void indices(llvm::function_ref<void(mlir::Value)> build) = 0;
  /// Ends the kernel and launches it at the end of the body, over the indices [0, count).
  virtual void launch(mlir::Value count, int64_t grain) = 0;
  void launch(int64_t count, int64_t grain) { launch(emitter.index(count), grain); }

  mlir::Value index(int64_t value);
  mlir::Value constant(mlir::Type type, double value);
  /// Sum of index values; products with a constant.
  mlir::Value add(mlir::Value a, mlir::Value x);
  mlir::Value scale(mlir::Value a, int64_t factor);
  /// Between integers and indices.
  mlir::Value toIndex(mlir::Value integer);
  mlir::Value fromIndex(mlir::Value index, mlir::Type type);
  /// The position of an index that was read, which is checked to be below `size`. With `fromEnd` negative indices count
  /// from there.
  mlir::Value position(mlir::Value index, int64_t size, bool fromEnd, llvm::StringRef opName);
  /// A loop [from, to) by step; the body gets the induction variable and the carried values, and returns their next.
  llvm::SmallVector<mlir::Value>
  loop(mlir::Value from, mlir::Value to, int64_t step, mlir::ValueRange carried,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> build);

  /// Loads and stores, converted from and to the compute type (bf16 to nearest even).
  mlir::Value load(mlir::Value buffer, mlir::Value at, mlir::Type type);
  void store(mlir::Value value, mlir::Value buffer, mlir::Value at, mlir::Type type, bool rounded = false);
  /// `width` elements at at, at + stride, ..; with a stride of 1 `at` is a multiple of `aligned` elements.
  mlir::Value load(mlir::Value buffer, mlir::Value at, mlir::Type type, int64_t width, int64_t stride,
                   int64_t aligned = 1);
  void store(mlir::Value value, mlir::Value buffer, mlir::Value at, mlir::Type type, int64_t width, int64_t stride,
             bool rounded = false, int64_t aligned = 1);
  /// Rounds an f32 to a narrow type's nearest value.
  virtual mlir::Value round(mlir::Value value, mlir::Type narrow) = 0;
  mlir::Value splat(mlir::Value scalar, int64_t width);
  /// All lanes in a fixed order.
  mlir::Value horizontal(mlir::Value vector, RowReduction kind);
  mlir::Value combine(mlir::Value a, mlir::Value x, RowReduction kind);
  static double neutral(RowReduction kind);

  mlir::ImplicitLocOpBuilder b;

protected:
  /// An element or a vector in its storage type, at a multiple of `aligned` elements.
  virtual mlir::Value loadStored(mlir::Value buffer, mlir::Value at, mlir::Type type, int64_t aligned) = 0;
  virtual void storeStored(mlir::Value value, mlir::Value buffer, mlir::Value at, int64_t aligned) = 0;
  /// Between narrow floats as they are stored and f32; `rounded`: the value is one that the narrow type has.
  virtual mlir::Value widenFloat(mlir::Value stored) = 0;
  virtual mlir::Value narrowFloat(mlir::Value value, mlir::Type type, bool rounded) = 0;
  /// Ends the run, or makes the index 0, where it is not in [low, size).
  virtual mlir::Value checkIndex(mlir::Value index, int64_t low, int64_t size, llvm::StringRef opName) = 0;

  /// `like` with another element type.
  static mlir::Type withElement(mlir::Type like, mlir::Type element);
  /// Lets products that feed sums be contracted, in all of a kernel; nothing is reassociated.
  void allowContraction(mlir::Operation *function);

  BodyEmitter &emitter;
  mlir::Type indexType;

private:
  mlir::Value widen(mlir::Value stored, mlir::Type type);
  mlir::Value narrow(mlir::Value value, mlir::Type type, bool rounded);
};

std::unique_ptr<KernelBuilder> createHostKernel(BodyEmitter &emitter);
std::unique_ptr<KernelBuilder> createGpuKernel(BodyEmitter &emitter);

/// Rows of a fixed block of a column sum, how many blocks there are, and the bytes of their partial sums. The order of
/// summation depends on the shape alone.
int64_t columnSumRows(Domain domain, Target target);
int64_t columnSumBlocks(Domain domain, Target target);
int64_t columnSumBytes(const RowProgram &program, const Sink &sink, Target target);

/// The kernels of a row program, for the emitter's target.
void emitRowKernel(BodyEmitter &emitter, const RowProgram &program);
void emitHostRows(BodyEmitter &emitter, const RowProgram &program);
void emitGpuRows(BodyEmitter &emitter, const RowProgram &program);
} // namespace drover::lower

#endif // DROVER_LIB_CONVERSION_TFMTORT_EMITTER_H
