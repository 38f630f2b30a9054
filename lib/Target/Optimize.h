//===- Optimize.h - LLVM's optimizer ----------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_TARGET_OPTIMIZE_H
#define DROVER_LIB_TARGET_OPTIMIZE_H

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace drover {

/// -O3 for the machine.
void optimizeModule(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace drover

#endif // DROVER_LIB_TARGET_OPTIMIZE_H
