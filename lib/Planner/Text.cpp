//===- Text.cpp - numbers and tables for readers --------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Text.h"
#include "drover/Schedule/Serialize.h"
#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace drover;
using namespace drover::planner;
using schedule::Plan;

std::string planner::fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::string planner::seconds(double value) {
  return fixed(value, value < 0.01 ? 6 : value < 0.1 ? 5 : value < 1 ? 4 : 3);
}

std::string planner::grouped(double value) {
  std::string text = fixed(value, 0);
  for (auto place = static_cast<int64_t>(text.size()) - 3; place > 0; place -= 3)
    text.insert(static_cast<size_t>(place), ",");
  return text;
}

std::string planner::plural(int64_t count, const std::string &noun) {
  return grouped(static_cast<double>(count)) + " " + noun + (count == 1 ? "" : "s");
}

std::string planner::counted(double value) {
  return value >= 1e9   ? fixed(value / 1e9, 2) + " billion"
         : value >= 1e6 ? fixed(value / 1e6, 1) + " million"
                        : grouped(value);
}

std::string planner::gib(double bytes) { return fixed(bytes / (1024.0 * 1024 * 1024), 1) + " GiB"; }

std::string planner::duration(double seconds) {
  if (seconds < 1e-3)
    return fixed(seconds * 1e6, 1) + " us";
  if (seconds < 1)
    return fixed(seconds * 1e3, 2) + " ms";
  if (seconds < 600)
    return fixed(seconds, seconds < 10 ? 3 : 1) + " s";
  if (seconds < 100 * 3600)
    return seconds < 7200 ? fixed(seconds / 60, 1) + " min" : fixed(seconds / 3600, 1) + " h";
  return fixed(seconds / 86400, 1) + " d";
}

std::vector<std::pair<std::string, std::string>> planner::optionsOf(const Layout &layout) {
  const Plan &plan = layout.plan;
  auto number = [](int64_t value) { return std::to_string(value); };
  std::string run;
  for (int64_t size : plan.run)
    run += (run.empty() ? "" : ",") + number(size);
  return {{"tp", number(plan.tp)},
          {"cp", number(plan.cp)},
          {"pp", number(plan.pp)},
          {"dp", number(plan.dp)},
          {"chunks", number(plan.chunks)},
          {"run", run.empty() ? number(plan.pp) : run},
          {"microbatch", number(plan.microbatch)},
          {"schedule", nameOf(plan.schedule())},
          {"layers per chunk", schedule::printLayersPerChunk(plan.layersPerChunk)},
          {"recompute", plan.recompute},
          {"zero", number(plan.zero)},
          {"tp overlap", plan.tpOverlap},
          {"order", cluster::str(layout.order)}};
}

std::string planner::describe(const Plan &plan) {
  return "tp " + std::to_string(plan.tp) + ", cp " + std::to_string(plan.cp) + ", pp " + std::to_string(plan.pp) +
         ", dp " + std::to_string(plan.dp) + ", chunks " + std::to_string(plan.chunks) + ", microbatch " +
         std::to_string(plan.microbatch) + ", recompute " + plan.recompute + ", zero " + std::to_string(plan.zero);
}

std::string planner::hashOf(const Plan &plan) {
  // FNV-1a (RFC 9923): short, and nothing depends on its strength.
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : schedule::serializePlan(plan)) {
    hash ^= c;
    hash *= 0x100000001b3u;
  }
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::string TextTable::print(const std::string &indent, const std::vector<size_t> &left) const {
  std::vector<size_t> widths;
  for (const std::vector<std::string> &row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size())
        widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string text;
  for (const std::vector<std::string> &row : rows) {
    std::string line = indent;
    for (size_t i = 0; i < row.size(); ++i) {
      std::string pad(widths[i] - row[i].size(), ' ');
      bool toLeft = std::find(left.begin(), left.end(), i) != left.end();
      line += (i ? "  " : "") + (toLeft ? row[i] + pad : pad + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}
