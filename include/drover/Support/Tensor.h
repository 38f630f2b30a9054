//===- Tensor.h - dense tensors on the host ---------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SUPPORT_TENSOR_H
#define DROVER_SUPPORT_TENSOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <vector>

namespace drover {

enum class ElementKind { I1, I8, I16, I32, I64, F16, BF16, F32, F64 };

inline bool isFloat(ElementKind kind) { return kind >= ElementKind::F16; }
unsigned bitWidth(ElementKind kind);
/// Bytes of one element in files and memory; an i1 is a byte.
unsigned byteWidth(ElementKind kind);
/// MLIR's spelling: "i1", "bf16", ..
llvm::StringRef name(ElementKind kind);

/// `value` rounded to nearest even in the precision and range of a float kind.
double roundTo(double value, ElementKind kind);
/// `value` wrapped to the width of an integer kind and sign-extended; i1 is 0 or 1.
int64_t wrapTo(int64_t value, ElementKind kind);

/// A dense row-major tensor. Floats are held as doubles and integers as int64, so that no kernel switches over kinds;
/// the kind says what they are rounded to and how they are stored in files.
struct Tensor {
  ElementKind kind = ElementKind::F32;
  llvm::SmallVector<int64_t> shape;
  /// The elements, of a float kind and of an integer kind; the other vector is empty.
  std::vector<double> floats;
  std::vector<int64_t> ints;

  Tensor() = default;
  /// Zeros.
  Tensor(ElementKind kind, llvm::ArrayRef<int64_t> shape);

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t size() const { return static_cast<int64_t>(isFloat(kind) ? floats.size() : ints.size()); }

  /// Element `i` whatever the kind.
  double asDouble(int64_t i) const { return isFloat(kind) ? floats[i] : static_cast<double>(ints[i]); }
  /// Stores `value` in element `i`; an integer kind drops the fraction.
  void setDouble(int64_t i, double value) {
    if (isFloat(kind))
      floats[i] = value;
    else
      ints[i] = static_cast<int64_t>(value);
  }
};

/// Elements of a shape; -1 where a size is negative or the product exceeds `limit`.
int64_t countElements(llvm::ArrayRef<int64_t> shape, int64_t limit = INT64_MAX);

/// Row-major strides.
llvm::SmallVector<int64_t> stridesOf(llvm::ArrayRef<int64_t> shape);

/// Little-endian row-major elements of `kind` from `bytes`, which holds at least tensor.size() of them, and back.
void decode(llvm::ArrayRef<char> bytes, Tensor &tensor);
std::vector<char> encode(const Tensor &tensor);

} // namespace drover

#endif // DROVER_SUPPORT_TENSOR_H
