//===- IndexRange.h - what indices can be -----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_INDEXRANGE_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_INDEXRANGE_H

#include "drover/Dialect/Tfm/IR/Tfm.h"

namespace drover::tfm {

/// The least and the largest element of an integer tensor that counts up (iotas, constants, their sums and views, all
/// of static sizes); nothing where it comes from elsewhere.
std::optional<std::pair<int64_t, int64_t>> indexRange(mlir::Value value);

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_INDEXRANGE_H
