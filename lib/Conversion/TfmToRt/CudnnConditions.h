//===- CudnnConditions.h - where cuDNN computes attention -------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CONVERSION_TFMTORT_CUDNNCONDITIONS_H
#define DROVER_LIB_CONVERSION_TFMTORT_CUDNNCONDITIONS_H

#include "drover/rt/cudnn_attention.h"
#include <string>

namespace mlir {
class Operation;
}

namespace drover::lower {

/// An attention, as far as it decides whether cuDNN computes it. `sizes` has the sizes, types, causality, window and
/// softcap.
struct CudnnQuestion {
  drover_attention sizes;
  bool backward = false;
  bool hasMask = false, hasKeyMask = false, hasDocuments = false, hasQueryIndex = false, hasSlopes = false;
};

/// Why cuDNN does not compute it, empty where it does. Conditions are of what cuDNN supports on Hopper, of what this
/// project asks of it, and of the cases for which its results are known to be wrong.
std::string whyNotCudnn(const CudnnQuestion &question);

/// Leaves to cuDNN the attention of a body that it computes; a warning says of the rest why not.
void markCudnnAttention(mlir::Operation *body);

} // namespace drover::lower

#endif // DROVER_LIB_CONVERSION_TFMTORT_CUDNNCONDITIONS_H
