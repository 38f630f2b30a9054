//===- GpuKernel.h - kernels of a GPU ---------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A kernel is an llvm.func in a gpu.module of its own, on bare pointers (docs/cuda.md, A kernel). By `indices` it is
// one thread an index; kernels whose threads work together place themselves by `thread` and `block`.
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CONVERSION_TFMTORT_GPUKERNEL_H
#define DROVER_LIB_CONVERSION_TFMTORT_GPUKERNEL_H

#include "Emitter.h"
#include "llvm/ADT/MapVector.h"

namespace drover::lower {

class GpuKernel final : public KernelBuilder {
public:
  static constexpr int64_t kWarp = 32;
  static constexpr int64_t kThreads = 256; // of a block, where nothing asks for another number

  explicit GpuKernel(BodyEmitter &emitter);

  mlir::Value argument(mlir::Value bodyValue) override;
  mlir::Value table(llvm::ArrayRef<float> values) override;
  mlir::Value callSize() override;
  mlir::Value callAccumulates() override;
  mlir::Value rankIndex(const Axes &axes) override;
  void indices(llvm::function_ref<void(mlir::Value)> build) override;
  void launch(mlir::Value count, int64_t grain) override;
  using KernelBuilder::launch;
  mlir::Value round(mlir::Value value, mlir::Type narrow) override;

  /// Ends the kernel and launches `blocks` blocks of `threads` threads.
  void launchBlocks(mlir::Value blocks, int64_t threads);
  void launchBlocks(int64_t blocks, int64_t threads) { launchBlocks(emitter.index(blocks), threads); }
  /// The kernel has instructions of compute capability 9.0 alone.
  void setOnlyForHopper();
  /// Blocks that a multiprocessor is to hold: ptxas saves no registers for more of them.
  void setResidentBlocks(int64_t blocks);

  /// The thread's number in its block, and its block's, as indices.
  mlir::Value thread();
  mlir::Value block();
  void barrier();
  void warpBarrier();
  /// Runs `build` where the condition holds; a null condition always does.
  void when(mlir::Value condition, llvm::function_ref<void()> build);
  /// `build` of `otherwise` where the condition holds, else `otherwise`.
  mlir::Value either(mlir::Value condition, mlir::Value otherwise, llvm::function_ref<mlir::Value(mlir::Value)> build);
  mlir::Value lessThan(mlir::Value a, mlir::Value x);
  mlir::Value isZero(mlir::Value index);

  /// The value of the lane whose number differs by `distance`, a power of two.
  mlir::Value exchange(mlir::Value value, int64_t distance);
  /// The lanes of the warp where an i1 holds, as bits.
  mlir::Value ballot(mlir::Value predicate);
  /// Each value over the threads of a group of neighbours: a power of two up to a warp, or whole warps: a block. In a
  /// fixed order, and all threads get it. All threads of the block must take part.
  llvm::SmallVector<mlir::Value> reduce(mlir::ValueRange values, llvm::ArrayRef<RowReduction> kinds, int64_t group);
  mlir::Value reduce(mlir::Value value, RowReduction kind, int64_t group) {
    return reduce(mlir::ValueRange(value), kind, group).front();
  }

  /// The offset of bytes of shared memory, and the address of an offset.
  int64_t allocateShared(int64_t bytes, int64_t alignment = 16);
  mlir::Value sharedAddress(mlir::Value offset);
  /// The address of an element of an argument's memory.
  mlir::Value globalAddress(mlir::Value buffer, mlir::Value at, mlir::Type element);
  /// 2^x of f32 by the hardware's approximation.
  mlir::Value exp2(mlir::Value x);

private:
  mlir::Block &entry() { return function->getRegion(0).front(); }
  mlir::Value loadStored(mlir::Value buffer, mlir::Value at, mlir::Type type, int64_t aligned) override;
  void storeStored(mlir::Value value, mlir::Value buffer, mlir::Value at, int64_t aligned) override;
  mlir::Value widenFloat(mlir::Value stored) override;
  mlir::Value narrowFloat(mlir::Value value, mlir::Type type, bool rounded) override;
  mlir::Value checkIndex(mlir::Value index, int64_t low, int64_t size, llvm::StringRef opName) override;

  mlir::Value number(mlir::Value hostValue);
  mlir::Value constantData(mlir::DenseElementsAttr data);
  template <typename Op> mlir::Value readRegister();
  mlir::Value shuffle32(mlir::Value value, int64_t distance);
  mlir::Value sharedSlot(int64_t offset, mlir::Value at, mlir::Type type);
  void setArgumentAttributes();

  /// Where an argument points: an operand of the body by number, or workspace by its offset.
  using Place = std::pair<int, int64_t>;
  struct Pointer {
    mlir::Value operand; // of the launch: the longest of those at this place
    mlir::BlockArgument argument;
    int64_t bytes = 0; // 0: known at run time only
    bool written = false;
  };

  mlir::Operation *module, *function; // gpu.module, llvm.func
  mlir::Type globalPointer, sharedPointer;
  llvm::MapVector<Place, Pointer> pointers;
  llvm::DenseMap<mlir::Value, mlir::Value> constants; // by the body's value
  llvm::SmallVector<std::pair<mlir::Value, mlir::BlockArgument>> numbers;
  mlir::BlockArgument checkNumber, errorWords;
  std::string check;
  int64_t sharedBytes = 0, sharedAlignment = 16;
  mlir::Value threadIndex, blockIndex;
  mlir::arith::ConstantOp indexCount; // of a kernel over indices
};

} // namespace drover::lower

#endif // DROVER_LIB_CONVERSION_TFMTORT_GPUKERNEL_H
