//===- matmul_algorithms.h - how matrix products are computed ---*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_MATMUL_ALGORITHMS_H
#define DROVER_RT_MATMUL_ALGORITHMS_H

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace drover::rt {

/// A library's algorithm for each product, by a text that says all that it depends on: shapes, types, device, version.
/// With one table two runs compute the same bits. In its file a line is the text, a tab, and 128 hexadecimal digits.
class MatmulAlgorithms {
public:
  using Algorithm = std::array<uint64_t, 8>;
  /// What whoever says first wants a key to be, of all ranks; World::agree.
  using Agree = std::function<std::string(const std::string &key, const std::string &own)>;

  explicit MatmulAlgorithms(Agree agree = nullptr) : agree(std::move(agree)) {}

  /// Adds what the file has, or what another table says. Throws Error where a line is none.
  void load(const std::string &file);
  void add(const std::string &text, const std::string &where);
  std::string text() const;
  /// Writes the table. Throws Error.
  void save(const std::string &file) const;

  /// The table's, else that of the first rank that asks, which `propose` says.
  Algorithm choose(const std::string &key, const std::function<Algorithm()> &propose);
  size_t size() const { return table.size(); }

private:
  Agree agree;
  std::map<std::string, Algorithm> table;
};

} // namespace drover::rt

#endif // DROVER_RT_MATMUL_ALGORITHMS_H
