//===- faults.cpp - the log of what was found wrong -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "faults.h"
#include "../emu.h"
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <set>
#include <sstream>

using namespace drover::emu;

namespace {
struct Log {
  std::mutex mutex;
  std::set<std::string> keys;
  std::deque<std::string> lines;
  uint64_t count = 0;
};

/// Never destroyed: threads of the stand-ins may report while the process ends.
Log &log() {
  static Log *instance = new Log;
  return *instance;
}

struct CheckName {
  const char *name;
  uint32_t bits;
};
constexpr CheckName checkNames[] = {
    {"all", ~0u},
    {"none", 0},
    {"bounds", DROVER_EMU_CHECK_BOUNDS},
    {"align", DROVER_EMU_CHECK_ALIGN},
    {"init", DROVER_EMU_CHECK_INIT},
    {"races", DROVER_EMU_CHECK_RACES},
    {"async", DROVER_EMU_CHECK_ASYNC},
    {"barrier", DROVER_EMU_CHECK_BARRIER},
};

uint32_t checksOfEnvironment() {
  const char *text = std::getenv("DROVER_EMU_CHECKS");
  if (!text || !*text)
    return ~0u;
  uint32_t bits = 0;
  std::istringstream list(text);
  for (std::string word; std::getline(list, word, ',');) {
    bool known = false;
    for (const CheckName &check : checkNames)
      if (word == check.name) {
        bits |= check.bits;
        known = true;
      }
    if (!known) {
      std::fprintf(stderr,
                   "drover-emu: DROVER_EMU_CHECKS names '%s'; accepted are all, none, bounds, align, init, races, "
                   "async, barrier\n",
                   word.c_str());
      std::exit(2);
    }
  }
  return bits;
}

std::atomic<uint32_t> &checks() {
  static std::atomic<uint32_t> bits{checksOfEnvironment()};
  return bits;
}
} // namespace

void drover::emu::reportFault(const std::string &key, const std::string &line) {
  static const bool quiet = std::getenv("DROVER_EMU_QUIET") != nullptr;
  Log &to = log();
  std::lock_guard<std::mutex> lock(to.mutex);
  ++to.count;
  if (!to.keys.insert(key).second)
    return;
  to.lines.push_back(line);
  if (!quiet)
    std::fprintf(stderr, "drover-emu: %s\n", line.c_str());
}

uint32_t drover::emu::enabledChecks() { return checks().load(std::memory_order_relaxed); }

extern "C" {
void drover_emu_set_checks(uint32_t bits) { checks().store(bits); }

void drover_emu_report(const char *line) { reportFault(line, line); }

uint64_t drover_emu_fault_count() {
  Log &from = log();
  std::lock_guard<std::mutex> lock(from.mutex);
  return from.count;
}

const char *drover_emu_fault(uint64_t index) {
  Log &from = log();
  std::lock_guard<std::mutex> lock(from.mutex);
  return index < from.lines.size() ? from.lines[index].c_str() : nullptr;
}

void drover_emu_clear_faults() {
  Log &from = log();
  std::lock_guard<std::mutex> lock(from.mutex);
  from.keys.clear();
  from.lines.clear();
  from.count = 0;
}
}
