//===- RopeFrequencies.h - from a table of angles to its formula -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_ROPEFREQUENCIES_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_ROPEFREQUENCIES_H

#include "drover/Dialect/Tfm/IR/Tfm.h"

namespace drover::tfm {

/// How a list of frequencies is written in `tfm.rope`.
struct RopeFormula {
  double theta = 10000.0;
  RopeScalingAttr scaling;          // may be null
  llvm::SmallVector<float> inverse; // the frequencies themselves, where no formula agrees
};

/// The formula whose frequencies agree with `frequencies` within 1e-6 of each; the usual settings of
/// published models are tried first.
RopeFormula fitRopeFormula(llvm::ArrayRef<double> frequencies, mlir::MLIRContext *context);

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_ROPEFREQUENCIES_H
