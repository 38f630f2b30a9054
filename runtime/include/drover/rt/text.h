//===- text.h - parsing and printing of small texts -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_TEXT_H
#define DROVER_RT_TEXT_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drover::rt {

/// The whole text as a number, or nothing. parseNumber takes finite values only.
std::optional<int64_t> parseInteger(std::string_view text);
std::optional<uint64_t> parseUnsigned(std::string_view text);
std::optional<double> parseNumber(std::string_view text);

std::vector<std::string> split(std::string_view text, char separator);
bool endsWith(std::string_view text, std::string_view suffix);

/// "log.jsonl" of rank 3 is "log.3.jsonl".
std::string fileOfRank(const std::string &path, int64_t rank);

/// The candidate with the smallest edit distance, or empty where none is near enough to be meant.
std::string nearestName(std::string_view name, const std::vector<std::string> &candidates);

/// "12.5 MiB"; "1:02:03".
std::string formatBytes(int64_t bytes);
std::string formatDuration(double seconds);

/// "[2, 3]"
std::string formatShape(const std::vector<int64_t> &shape);

/// The first few names, quoted, and how many more there are.
std::string formatNames(const std::vector<std::string> &names, size_t limit = 8);

} // namespace drover::rt

#endif // DROVER_RT_TEXT_H
