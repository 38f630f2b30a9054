//===- RegistersInFlight.h - who may use what wgmma writes ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_EMULATION_REGISTERSINFLIGHT_H
#define DROVER_EMULATION_REGISTERSINFLIGHT_H

#include "mlir/IR/Operation.h"

namespace drover::emu {

/// Nothing else than another product and an empty asm may use what a wgmma writes: a wait names no registers, and what
/// a kernel puts behind it has to be tied to its place.
llvm::LogicalResult verifyRegistersInFlight(mlir::Operation *product);
bool isEmptyAsm(mlir::Operation *op);

} // namespace drover::emu

#endif // DROVER_EMULATION_REGISTERSINFLIGHT_H
