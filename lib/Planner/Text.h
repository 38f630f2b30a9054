//===- Text.h - numbers and tables for readers ------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_PLANNER_TEXT_H
#define DROVER_LIB_PLANNER_TEXT_H

#include "drover/Planner/Projection.h"

namespace drover::planner {

/// With so many digits behind the point.
std::string fixed(double value, int digits);
/// Seconds with four or five digits that count.
std::string seconds(double value);
/// A whole number with commas.
std::string grouped(double value);
/// `1 layout`, `2,048 layouts`.
std::string plural(int64_t count, const std::string &noun);
/// `405.85 billion`, `7.2 million`, `4,816`.
std::string counted(double value);
/// `1.5 GiB`; binary units, as memory is sold.
std::string gib(double bytes);
/// `12.3 s`, `4.56 ms`, `3.1 h`, `54.2 d`.
std::string duration(double seconds);

/// Options of a layout by name in a fixed order, as tables and comparisons show them.
std::vector<std::pair<std::string, std::string>> optionsOf(const Layout &layout);
/// A line of the ones that tell layouts apart: `tp 8, cp 1, ..`.
std::string describe(const schedule::Plan &plan);

/// A hash of every option, to name a plan by: 16 hex digits.
std::string hashOf(const schedule::Plan &plan);

/// Columns as wide as their widest cell, numbers to the right.
class TextTable {
public:
  explicit TextTable(std::vector<std::string> header) : rows{std::move(header)} {}
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  /// Each line begins with `indent`. Columns of `left` are aligned to the left.
  std::string print(const std::string &indent, const std::vector<size_t> &left = {}) const;

private:
  std::vector<std::vector<std::string>> rows;
};

} // namespace drover::planner

#endif // DROVER_LIB_PLANNER_TEXT_H
