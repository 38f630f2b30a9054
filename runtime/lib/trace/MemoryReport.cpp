//===- MemoryReport.cpp - peak memory by category -------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/memory_report.h"
#include "drover/rt/text.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace drover::rt {

std::map<std::string, int64_t> memoryByCategory(const Program &program, int64_t workspaceBytes) {
  std::map<std::string, int64_t> categories;
  for (const BatchInfo &batch : program.batches)
    for (const StageInfo &stage : batch.stages)
      for (const auto &[name, bytes] : stage.memory)
        categories[name] = std::max(categories[name], bytes);
  categories["workspace"] = std::max(categories["workspace"], workspaceBytes);
  return categories;
}

/// Not getrusage's: that one begins with what the process had before it became this executable.
int64_t residentBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0)
      return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  return 0;
}

void printMemoryTable(const std::map<std::string, int64_t> &categories, int64_t totalBytes, int64_t deviceBytes) {
  std::fprintf(stderr, "peak memory\n");
  for (const auto &[name, bytes] : categories)
    std::fprintf(stderr, "  %-12s %12s\n", name.c_str(), formatBytes(bytes).c_str());
  std::fprintf(stderr, "  %-12s %12s  (slots share memory, so the sum may be larger)\n", "allocated",
               formatBytes(totalBytes).c_str());
  if (deviceBytes)
    std::fprintf(stderr, "  %-12s %12s  (of the GPU, with code and libraries)\n", "device",
                 formatBytes(deviceBytes).c_str());
  if (int64_t bytes = residentBytes())
    std::fprintf(stderr, "  %-12s %12s\n", "resident", formatBytes(bytes).c_str());
}

} // namespace drover::rt
