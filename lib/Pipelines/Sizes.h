//===- Sizes.h - sizes of a model and of a plan -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_PIPELINES_SIZES_H
#define DROVER_LIB_PIPELINES_SIZES_H

#include "drover/Conversion/TfmToSchedule/TfmToSchedule.h"
#include "drover/Schedule/Plan.h"
#include "mlir/IR/BuiltinOps.h"
#include <map>

namespace drover {

/// Values for every symbol of the module, as `tfm-specialize` takes them: the microbatch and sequence length from the
/// plan for the dimensions of the token input, the rest from `dims`. Completes the plan: B and S where the model fixes
/// them or by default, G = B*DP*PP where none is given. Exactly one error where they contradict each other.
mlir::FailureOr<std::vector<std::string>> resolveSizes(mlir::ModuleOp module, const ModelFacts &facts,
                                                       const std::map<std::string, int64_t> &dims, bool train,
                                                       schedule::Plan &plan);

} // namespace drover

#endif // DROVER_LIB_PIPELINES_SIZES_H
