//===- HostMachine.h - the CPU to compile for -------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_TARGET_HOST_HOSTMACHINE_H
#define DROVER_LIB_TARGET_HOST_HOSTMACHINE_H

#include "drover/Target/Host/Host.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>

namespace drover::host {

/// Null, with a message, where LLVM has no such CPU.
std::unique_ptr<llvm::TargetMachine> createMachine(const HostOptions &options, std::string &error);

/// Bits of the CPU's vector registers that are worth using.
unsigned vectorBits(const llvm::TargetMachine &machine);

} // namespace drover::host

#endif // DROVER_LIB_TARGET_HOST_HOSTMACHINE_H
