//===- Topology.cpp - files of servers, racks and pods --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/topology.h"
#include "drover/rt/error.h"
#include <algorithm>

namespace drover::rt {

namespace {
struct Word {
  std::string text;
  size_t column; // from 1
};

class TopologyReader {
public:
  TopologyReader(const std::string &file, const std::vector<std::string> &known) : known(known) { result.file = file; }

  Topology read(const std::string &text) {
    std::istringstream lines(text);
    for (std::string content; std::getline(lines, content);) {
      ++line;
      std::vector<Word> words = wordsOf(content);
      if (words.empty())
        continue;
      if (result.levels.empty())
        readHeader(words);
      else
        readServer(words);
    }
    if (result.levels.empty())
      failAt(1, "no columns: expected a line with the names of levels, such as '", header(), "'");
    return std::move(result);
  }

private:
  template <typename... Parts> [[noreturn]] void failAt(size_t column, const Parts &...parts) const {
    fail(result.file, ":", std::max<size_t>(1, line), ":", column, ": error: ", concat(parts...));
  }

  /// Up to a # that begins a word.
  static std::vector<Word> wordsOf(const std::string &content) {
    std::vector<Word> words;
    constexpr const char *blanks = " \t\r";
    for (size_t begin = content.find_first_not_of(blanks); begin != std::string::npos && content[begin] != '#';) {
      size_t end = std::min(content.find_first_of(blanks, begin), content.size());
      words.push_back({content.substr(begin, end - begin), begin + 1});
      begin = content.find_first_not_of(blanks, end);
    }
    return words;
  }

  std::string header() const {
    std::string all;
    for (const std::string &name : known)
      all += (all.empty() ? "" : " ") + name;
    return all;
  }

  void readHeader(const std::vector<Word> &words) {
    size_t next = 0;
    for (const Word &word : words) {
      auto found = std::find(known.begin() + int64_t(next), known.end(), word.text);
      if (found == known.end() || (next == 0 && found != known.begin()))
        failAt(word.column, "'", word.text, "': expected levels of the program's cluster from the innermost out, '",
               header(), "' or without some behind ", known.front());
      next = size_t(found - known.begin()) + 1;
      result.levels.push_back(word.text);
    }
  }

  void readServer(const std::vector<Word> &words) {
    if (words.size() != result.levels.size())
      failAt(words.back().column, words.size(), " columns, expected ", result.levels.size(), " as in the first line");
    std::vector<std::string> units;
    for (const Word &word : words)
      units.push_back(word.text);
    if (!result.servers.emplace(units.front(), units).second)
      failAt(1, "'", units.front(), "' stands in line ", lineOf[{0, units.front()}], " already");
    for (size_t level = 0; level < units.size(); ++level) {
      auto [first, isNew] = lineOf.emplace(std::pair(level, units[level]), line);
      if (isNew && level + 1 < units.size())
        outerOf[{level, units[level]}] = units[level + 1];
      if (!isNew && level + 1 < units.size() && outerOf[{level, units[level]}] != units[level + 1])
        failAt(words[level + 1].column, result.levels[level], " '", units[level], "' is in ", result.levels[level + 1],
               " '", units[level + 1], "' here, and in '", outerOf[{level, units[level]}], "' in line ", first->second);
    }
  }

  const std::vector<std::string> &known;
  Topology result;
  size_t line = 0;
  std::map<std::pair<size_t, std::string>, size_t> lineOf; // of a unit's first server
  std::map<std::pair<size_t, std::string>, std::string> outerOf;
};
} // namespace

Topology parseTopology(const std::string &text, const std::string &file, const std::vector<std::string> &levels) {
  return TopologyReader(file, levels).read(text);
}

} // namespace drover::rt
