//===- Tfm.h - the model dialect --------------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_DIALECT_TFM_IR_TFM_H
#define DROVER_DIALECT_TFM_IR_TFM_H

#include "drover/Dialect/Tfm/IR/Axis.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "drover/Dialect/Tfm/IR/TfmDialect.h.inc"
#include "drover/Dialect/Tfm/IR/TfmEnums.h.inc"

namespace drover::tfm {
class GradientBuilder;

/// What it costs to run an op a second time, in the words of `--recompute` and `--rebuild`.
enum class RecomputeClass {
  Contraction, ///< matrix products: never twice but with recompute=full
  Attention,   ///< twice with recompute=selective
  Reduction,   ///< statistics of the logits: small results of a large read, never twice but with full
  Norm,        ///< --rebuild=norms
  Activation,  ///< --rebuild=act
  Rope,        ///< --rebuild=rope
  Cast,        ///< --rebuild=casts
  Elementwise, ///< --rebuild=act where it saves bytes: parts of an activation, residual adds
  Movement     ///< reshapes, slices, constants: only rebuild=auto
};
} // namespace drover::tfm

namespace drover::tfm {
class Distribution;
class LocalValues;
struct FactorSignature;
namespace detail {
/// The default of PartitionOpInterface: the one rule on the op's factors.
llvm::LogicalResult inferByFactors(mlir::Operation *op, llvm::ArrayRef<Distribution> operands,
                                   llvm::ArrayRef<Distribution> hints, llvm::SmallVectorImpl<Distribution> &results,
                                   std::string &reason);
} // namespace detail
} // namespace drover::tfm

namespace drover::tfm::detail {
/// Bytes of an operation's distinct operands and of its results; an i1 is a byte, an index eight.
uint64_t minimumBytes(mlir::Operation *op);
} // namespace drover::tfm::detail

#include "drover/Dialect/Tfm/IR/TfmInterfaces.h.inc"

namespace drover::tfm {
/// The class of any op of a body, those of arith and math included.
RecomputeClass recomputeClassOf(mlir::Operation *op);
} // namespace drover::tfm

namespace drover::tfm::detail {
/// Parsing and printing of attribute parameters that MLIR has no field parser for.
mlir::FailureOr<llvm::APFloat> parseDouble(mlir::AsmParser &parser);
mlir::FailureOr<bool> parseBool(mlir::AsmParser &parser);
} // namespace drover::tfm::detail

#define GET_ATTRDEF_CLASSES
#include "drover/Dialect/Tfm/IR/TfmAttrs.h.inc"

#define GET_OP_CLASSES
#include "drover/Dialect/Tfm/IR/TfmOps.h.inc"

namespace drover::tfm {
/// The results of ()[s0, ..] -> (..), a map over the module's symbols; kDynamic where a symbol without a value or a
/// division by zero leaves one open.
llvm::SmallVector<int64_t> evaluateSizes(mlir::AffineMap map, llvm::ArrayRef<int64_t> symbols);

/// The rotary/2 frequencies of RoPE in radians per position, in the f32 arithmetic of the reference
/// implementation (Hugging Face transformers, modeling_rope_utils). `scaling` may be null.
llvm::SmallVector<float> ropeFrequencies(int64_t rotary, float theta, RopeScalingAttr scaling);

/// Sizes of `axes` in the nearest `tfm.grid` around the op; failure, without a diagnostic, where one is not in it.
mlir::FailureOr<llvm::SmallVector<int64_t>> gridSizes(mlir::Operation *op, mlir::ArrayAttr axes);
} // namespace drover::tfm

#endif // DROVER_DIALECT_TFM_IR_TFM_H
