//===- MatmulAlgorithms.cpp - how matrix products are computed ------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/atomic_file.h"
#include "drover/rt/error.h"
#include "drover/rt/matmul_algorithms.h"
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace drover::rt {

static constexpr size_t digitsOfWord = 16;
static constexpr size_t digits = 8 * digitsOfWord;

static std::string toText(const MatmulAlgorithms::Algorithm &algorithm) {
  std::string text;
  for (uint64_t word : algorithm) {
    char part[digitsOfWord + 1];
    std::snprintf(part, sizeof(part), "%016llx", static_cast<unsigned long long>(word));
    text += part;
  }
  return text;
}

/// False where it is no algorithm's text.
static bool fromText(const std::string &text, MatmulAlgorithms::Algorithm &algorithm) {
  if (text.size() != digits || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return false;
  for (size_t i = 0; i < algorithm.size(); ++i)
    algorithm[i] = std::stoull(text.substr(i * digitsOfWord, digitsOfWord), nullptr, 16);
  return true;
}

void MatmulAlgorithms::load(const std::string &file) {
  std::ifstream input(file);
  if (!input)
    fail(file, ": cannot read: ", std::strerror(errno));
  add({std::istreambuf_iterator<char>(input), {}}, file);
}

void MatmulAlgorithms::add(const std::string &text, const std::string &where) {
  std::istringstream input(text);
  int number = 0;
  for (std::string line; std::getline(input, line);) {
    ++number;
    size_t tab = line.find('\t');
    Algorithm algorithm;
    if (tab == std::string::npos || !fromText(line.substr(tab + 1), algorithm))
      fail(where, ": line ", number, ": expected a product, a tab and ", digits, " hexadecimal digits");
    table[line.substr(0, tab)] = algorithm;
  }
}

std::string MatmulAlgorithms::text() const {
  std::string lines;
  for (const auto &[key, algorithm] : table)
    lines += key + "\t" + toText(algorithm) + "\n";
  return lines;
}

void MatmulAlgorithms::save(const std::string &file) const {
  std::string lines = text();
  AtomicFile output(file);
  output.write(lines.data(), lines.size());
  output.commit();
}

MatmulAlgorithms::Algorithm MatmulAlgorithms::choose(const std::string &key,
                                                     const std::function<Algorithm()> &propose) {
  auto known = table.find(key);
  if (known != table.end())
    return known->second;
  std::string own = toText(propose());
  std::string agreed = agree ? agree(key, own) : own;
  Algorithm &chosen = table[key];
  if (!fromText(agreed, chosen))
    fail("the algorithm of ", key, ": another rank says ", agreed);
  return chosen;
}

} // namespace drover::rt
