//===- faults.h - the log of what was found wrong ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_EMULATION_FAULTS_H
#define DROVER_EMULATION_FAULTS_H

#include <cstdint>
#include <string>

namespace drover::emu {

/// Adds a line unless one with this key is there already; counts it in any case.
void reportFault(const std::string &key, const std::string &line);
/// The checks that are on: DROVER_EMU_CHECKS, or what drover_emu_set_checks said last.
uint32_t enabledChecks();

} // namespace drover::emu

#endif // DROVER_EMULATION_FAULTS_H
