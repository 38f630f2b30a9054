//===- Npy.h - NumPy's array files ------------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SUPPORT_NPY_H
#define DROVER_SUPPORT_NPY_H

#include "drover/Support/Tensor.h"
#include "llvm/Support/Error.h"

namespace drover {

/// Reads a little-endian, C-ordered array of bool, (u)int8..64 or float16..64 (NEP 1, versions 1 to 3). Unsigned
/// integers become the signed kind that holds them.
llvm::Expected<Tensor> readNpy(llvm::StringRef path);

/// Writes a version 1.0 file; bf16, which NumPy lacks, is written as float32.
llvm::Error writeNpy(llvm::StringRef path, const Tensor &tensor);

} // namespace drover

#endif // DROVER_SUPPORT_NPY_H
