//===- memory_report.h - peak memory by category ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_MEMORY_REPORT_H
#define DROVER_RT_MEMORY_REPORT_H

#include "drover/rt/program.h"
#include <map>
#include <string>

namespace drover::rt {

/// Peak bytes of each category of memory over the batches compiled in and the stages, with the workspace that the
/// runtime holds.
std::map<std::string, int64_t> memoryByCategory(const Program &program, int64_t workspaceBytes);

/// The largest resident size that this process had; 0 where the system does not say.
int64_t residentBytes();

/// Prints the categories, the total, what the rank's GPU had less free (0: none), and the process's largest resident
/// size to standard error.
void printMemoryTable(const std::map<std::string, int64_t> &categories, int64_t totalBytes, int64_t deviceBytes);

} // namespace drover::rt

#endif // DROVER_RT_MEMORY_REPORT_H
