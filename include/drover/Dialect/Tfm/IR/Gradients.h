//===- Gradients.h - reverse-mode rules of upstream ops ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_DIALECT_TFM_IR_GRADIENTS_H
#define DROVER_DIALECT_TFM_IR_GRADIENTS_H

namespace mlir {
class DialectRegistry;
}

namespace drover::tfm {

/// Gives the float operations of arith and math DifferentiableOpInterface.
void registerUpstreamGradients(mlir::DialectRegistry &registry);

} // namespace drover::tfm

#endif // DROVER_DIALECT_TFM_IR_GRADIENTS_H
