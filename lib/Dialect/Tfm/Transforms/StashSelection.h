//===- StashSelection.h - what a forward keeps ------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_STASHSELECTION_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_STASHSELECTION_H

#include "TransformUtils.h"
#include "llvm/ADT/SetVector.h"
#include <set>

namespace drover::tfm {

/// What a body's argument is to the microbatch program.
enum class OperandKind { Boundary, Input, Parameter };

enum class RecomputeMode { None, Selective, Full };

/// What may run twice (DESIGN section 3, "Recompute").
struct RecomputePolicy {
  RecomputeMode mode = RecomputeMode::None;
  /// Rebuild whatever is memory-bound where it saves bytes.
  bool automatic = true;
  /// Else rebuild exactly these.
  std::set<RecomputeClass> rebuilt;
};

/// Reads the options of `tfm-differentiate`; an error on `op` that says what would be accepted.
llvm::FailureOr<RecomputePolicy> parsePolicy(mlir::Operation *op, llvm::StringRef mode,
                                             llvm::ArrayRef<std::string> rebuild);

/// Another look at one tensor: a slice of a packed projection, a reshape. It can be had from the tensor at any time,
/// and keeping it instead would be a copy.
bool isView(mlir::Operation *op);

/// What the policy says of one operation's results.
struct Treatment {
  bool rebuildable; ///< may run again
  bool stashable;   ///< may be kept
};
Treatment treatmentOf(mlir::Operation *op, const RecomputePolicy &policy);

/// The values of a straight-line `body` to stash so that its backward can have `needed`: a minimum cut in
/// bytes between what exists (arguments; results of what may not run twice) and what is needed. Inputs and
/// parameters are free, a boundary costs its bytes: it would live as long as a stash. Among equal cuts the
/// one nearest to `needed`, which repeats the least work. Never contains an argument or a view of one.
llvm::SetVector<mlir::Value> selectStash(mlir::Block &body, llvm::ArrayRef<OperandKind> kinds,
                                         const llvm::SetVector<mlir::Value> &needed, const RecomputePolicy &policy);

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_STASHSELECTION_H
