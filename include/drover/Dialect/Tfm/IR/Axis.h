//===- Axis.h - axes of the grid and a tensor's states on them --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The plain data of docs/distributions.md, below the attributes that hold it.
//===----------------------------------------------------------------------===//
#ifndef DROVER_DIALECT_TFM_IR_AXIS_H
#define DROVER_DIALECT_TFM_IR_AXIS_H

#include "mlir/IR/Attributes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace drover::tfm {

/// Axes in the order in which they are listed. Where several shard one dimension they nest as `nestingOrder` says.
enum class Axis : uint8_t { Tp, Kv, Replica, Cp, Dp };
inline constexpr unsigned kNumAxes = 5;
inline constexpr Axis kAxes[kNumAxes] = {Axis::Tp, Axis::Kv, Axis::Replica, Axis::Cp, Axis::Dp};
/// Outermost first: the rows of a CP rank are cut over TP, and a replica holds a part of a kv group's share.
inline constexpr Axis kNestingOrder[kNumAxes] = {Axis::Dp, Axis::Cp, Axis::Tp, Axis::Kv, Axis::Replica};

llvm::StringRef name(Axis axis);
std::optional<Axis> parseAxis(llvm::StringRef name);

enum class StateKind : uint8_t { Replicated, Sharded, Partial, Varying };
enum class Reduction : uint8_t { Sum, Max };
enum class ReductionType : uint8_t { F32, BF16, F64, I64 };

llvm::StringRef name(Reduction reduction);
llvm::StringRef name(ReductionType type);
/// The type in which values of element type `type` are reduced; nullopt where none is.
std::optional<ReductionType> reductionTypeOf(mlir::Type type);
mlir::Type elementTypeOf(ReductionType type, mlir::MLIRContext *context);
unsigned bitWidth(ReductionType type);

/// How a tensor is held along one axis. Fields that its kind does not use are 0.
struct AxisState {
  StateKind kind = StateKind::Replicated;
  uint8_t dim = 0;       // Sharded
  bool twoChunk = false; // Sharded: CP's two chunks
  Reduction reduction = Reduction::Sum;
  ReductionType type = ReductionType::F32; // Partial

  static AxisState sharded(unsigned dim, bool twoChunk = false) {
    return {StateKind::Sharded, static_cast<uint8_t>(dim), twoChunk, Reduction::Sum, ReductionType::F32};
  }
  static AxisState partial(Reduction reduction, ReductionType type) {
    return {StateKind::Partial, 0, false, reduction, type};
  }
  static AxisState varying() { return {StateKind::Varying, 0, false, Reduction::Sum, ReductionType::F32}; }

  bool isSharded() const { return kind == StateKind::Sharded; }
  bool isPartial() const { return kind == StateKind::Partial; }
  bool operator==(const AxisState &other) const {
    return kind == other.kind && dim == other.dim && twoChunk == other.twoChunk && reduction == other.reduction &&
           type == other.type;
  }
  bool operator!=(const AxisState &other) const { return !(*this == other); }
};
inline llvm::hash_code hash_value(const AxisState &state) {
  return llvm::hash_combine(state.kind, state.dim, state.twoChunk, state.reduction, state.type);
}

/// One part of a dimension that is padded: `groups` groups of `valid` elements, each padded to `padded`, and groups of
/// padding up to `total` (docs/distributions.md, Padding).
struct PaddedSegment {
  int64_t groups, valid, padded, total;

  int64_t validSize() const { return groups * valid; }
  int64_t paddedSize() const { return total * padded; }
  bool operator==(const PaddedSegment &other) const {
    return groups == other.groups && valid == other.valid && padded == other.padded && total == other.total;
  }
};
inline llvm::hash_code hash_value(const PaddedSegment &segment) {
  return llvm::hash_combine(segment.groups, segment.valid, segment.padded, segment.total);
}

/// The layout of one dimension of a tensor: a #tfm.segments.
struct DimLayout {
  unsigned dim;
  mlir::Attribute segments;
  bool operator==(const DimLayout &other) const { return dim == other.dim && segments == other.segments; }
};
inline llvm::hash_code hash_value(const DimLayout &layout) { return llvm::hash_combine(layout.dim, layout.segments); }

} // namespace drover::tfm

#endif // DROVER_DIALECT_TFM_IR_AXIS_H
