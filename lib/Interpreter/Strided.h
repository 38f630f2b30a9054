//===- Strided.h - walks over index spaces ----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_INTERPRETER_STRIDED_H
#define DROVER_LIB_INTERPRETER_STRIDED_H

#include "Kernels.h"

namespace drover::interpreter {

/// Calls function(i, at) for each index of `shape` in row-major order: i counts, at[s] is the index in strides[s].
template <typename Function>
void forEachIndex(llvm::ArrayRef<int64_t> shape, std::initializer_list<llvm::SmallVector<int64_t>> strides,
                  Function function) {
  int64_t count = countElements(shape);
  llvm::SmallVector<int64_t> index(shape.size(), 0), at(strides.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    function(i, llvm::ArrayRef<int64_t>(at));
    for (size_t dim = shape.size(); dim-- > 0;) {
      bool wraps = ++index[dim] == shape[dim];
      for (auto [position, stride] : llvm::zip(at, strides))
        position += wraps ? -stride[dim] * (shape[dim] - 1) : stride[dim];
      if (!wraps)
        break;
      index[dim] = 0;
    }
  }
}

/// Copies an element between tensors of one kind.
inline void copyElement(const Tensor &from, int64_t i, Tensor &to, int64_t j) {
  if (isFloat(from.kind))
    to.floats[j] = from.floats[i];
  else
    to.ints[j] = from.ints[i];
}

} // namespace drover::interpreter

#endif // DROVER_LIB_INTERPRETER_STRIDED_H
