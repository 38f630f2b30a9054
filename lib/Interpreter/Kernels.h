//===- Kernels.h - what a kernel of the interpreter sees --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_INTERPRETER_KERNELS_H
#define DROVER_LIB_INTERPRETER_KERNELS_H

#include "drover/Interpreter/Interpreter.h"

namespace drover::interpreter {

/// One execution of an operation. Kernels compute in double; the caller rounds the results and checks their types.
struct Call {
  mlir::Operation *op;
  llvm::ArrayRef<const Tensor *> operands;
  llvm::MutableArrayRef<Tensor> results;
  const InterpreterOptions &options;
  std::string &reason;

  const Tensor &operand(unsigned i) const { return *operands[i]; }
  /// The last operand of an op that may lack it, null where it does.
  const Tensor *optionalOperand(unsigned i) const { return i < operands.size() ? operands[i] : nullptr; }
  mlir::LogicalResult fail(const llvm::Twine &why) {
    reason = why.str();
    return mlir::failure();
  }
  /// Makes result `i` zeros of this shape, in the element kind of its type.
  mlir::LogicalResult allocate(unsigned i, llvm::ArrayRef<int64_t> shape);
  /// The sizes of result `i`: those of its type, dynamic ones from `map` over the symbols.
  mlir::LogicalResult shapeOf(unsigned i, std::optional<mlir::AffineMap> map, llvm::SmallVectorImpl<int64_t> &shape);
};

using Kernel = std::function<mlir::LogicalResult(Call &)>;

/// Kernels by operation.
class KernelTable {
public:
  template <typename OpT> void add(mlir::LogicalResult (*kernel)(OpT, Call &)) {
    kernels[OpT::getOperationName()] = [kernel](Call &call) { return kernel(mlir::cast<OpT>(call.op), call); };
  }
  template <typename OpT> void add(Kernel kernel) { kernels[OpT::getOperationName()] = std::move(kernel); }
  const Kernel *find(llvm::StringRef name) const {
    auto it = kernels.find(name);
    return it == kernels.end() ? nullptr : &it->second;
  }

private:
  llvm::StringMap<Kernel> kernels;
};

void addArithKernels(KernelTable &table);
void addMathKernels(KernelTable &table);
void addLayerKernels(KernelTable &table);
void addNormKernels(KernelTable &table);
void addAttentionKernels(KernelTable &table);
void addLossKernels(KernelTable &table);
void addRankKernels(KernelTable &table);
void addStructuralKernels(KernelTable &table);
void addIndexingKernels(KernelTable &table);

/// c [m, n] += a [m, k] times b [k, n]; with a flag the operand is stored with its two dimensions exchanged.
void multiply(int64_t m, int64_t n, int64_t k, const double *a, bool transposeA, const double *b, bool transposeB,
              double *c);

/// input times weight[N, K], or [K, N] with `inOut`, not rounded.
Tensor multiplyRows(const Tensor &input, const Tensor &weight, bool inOut, ElementKind kind);

double sigmoid(double x);

/// The values of `map` at `symbols`; failure where one is unknown.
mlir::LogicalResult evaluateMap(mlir::AffineMap map, llvm::ArrayRef<int64_t> symbols,
                                llvm::SmallVectorImpl<int64_t> &values);

} // namespace drover::interpreter

#endif // DROVER_LIB_INTERPRETER_KERNELS_H
