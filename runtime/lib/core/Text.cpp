//===- Text.cpp - parsing and printing of small texts ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/text.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace drover::rt {

template <typename T> static std::optional<T> parseWhole(std::string_view text) {
  T value{};
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::optional<int64_t> parseInteger(std::string_view text) { return parseWhole<int64_t>(text); }
std::optional<uint64_t> parseUnsigned(std::string_view text) { return parseWhole<uint64_t>(text); }

std::optional<double> parseNumber(std::string_view text) {
  std::optional<double> value = parseWhole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (true) {
    size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos)
      return parts;
    begin = end + 1;
  }
}

bool endsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

std::string fileOfRank(const std::string &path, int64_t rank) {
  size_t dot = path.rfind('.'), slash = path.rfind('/');
  bool hasSuffix = dot != std::string::npos && dot > 0 && (slash == std::string::npos || dot > slash + 1);
  size_t place = hasSuffix ? dot : path.size();
  return path.substr(0, place) + "." + std::to_string(rank) + path.substr(place);
}

/// Levenshtein distance.
static size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string nearestName(std::string_view name, const std::vector<std::string> &candidates) {
  std::string best;
  size_t bestDistance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string &candidate : candidates) {
    size_t distance = editDistance(name, candidate);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

std::string formatBytes(int64_t bytes) {
  static const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = double(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 5; ++unit)
    value /= 1024;
  char text[32];
  std::snprintf(text, sizeof(text), unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return text;
}

std::string formatDuration(double seconds) {
  int64_t whole = std::max<int64_t>(0, std::llround(std::min(seconds, 3.6e9)));
  char text[48];
  if (whole >= 3600)
    std::snprintf(text, sizeof(text), "%lld:%02d:%02d", (long long)(whole / 3600), int(whole / 60 % 60),
                  int(whole % 60));
  else
    std::snprintf(text, sizeof(text), "%d:%02d", int(whole / 60), int(whole % 60));
  return text;
}

std::string formatShape(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::string formatNames(const std::vector<std::string> &names, size_t limit) {
  std::string text;
  for (size_t i = 0; i < std::min(limit, names.size()); ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  if (names.size() > limit)
    text += " and " + std::to_string(names.size() - limit) + " more";
  return text;
}

} // namespace drover::rt
