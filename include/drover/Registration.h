//===- Registration.h - all dialects and passes -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_REGISTRATION_H
#define DROVER_REGISTRATION_H

#include "mlir/IR/DialectRegistry.h"

namespace drover {

/// Upstream's dialects and drover's, with drover's interfaces on upstream ops.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Upstream's passes and pipelines and drover's.
void registerAllPasses();

} // namespace drover

#endif // DROVER_REGISTRATION_H
