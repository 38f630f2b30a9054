//===- MutateMain.cpp - a table of what becomes of wrong programs ---------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// usage: mutate-programs [STRIDE of mutants on all ranks, 1] [STRIDE of mutants on one rank, 8]
// Prints the Markdown tables of docs/proof.md; exit status 1 where a mutant is neither reported nor equal.
#include "MutantLayouts.h"
#include "MutantRuns.h"
#include <cstdio>
#include <cstdlib>

using namespace drover::rt::test;

static int printTable(const MutantTable &table, bool isOnOneRank) {
  int faults = 0;
  std::printf(isOnOneRank
                  ? "| mutation | of | mutants | refused at load | reported at start | without that: error that names "
                    "the operation | other values | equal |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
                  : "| mutation | of | mutants | reported by check | by compile alone | refused at load | executed and "
                    "equal |\n| --- | --- | --- | --- | --- | --- | --- |\n");
  MutantCounts total;
  auto print = [&](const char *mutation, const char *target, const MutantCounts &counts) {
    auto number = [](int64_t value) { return static_cast<long long>(value); };
    if (isOnOneRank && counts.isData && counts.ended + counts.differ + counts.equal == 0)
      std::printf("| %s | %s | %lld | %lld | %lld | - | - | - |\n", mutation, target, number(counts.mutants),
                  number(counts.refused), number(counts.reported));
    else if (isOnOneRank)
      std::printf("| %s | %s | %lld | %lld | %lld | %lld | %lld | %lld |\n", mutation, target, number(counts.mutants),
                  number(counts.refused), number(counts.reported), number(counts.ended), number(counts.differ),
                  number(counts.equal));
    else
      std::printf("| %s | %s | %lld | %lld | %lld | %lld | %lld |\n", mutation, target, number(counts.mutants),
                  number(counts.reported), number(counts.verified), number(counts.refused), number(counts.equal));
  };
  for (const auto &[key, counts] : table) {
    print(key.first.c_str(), key.second.c_str(), counts);
    total.add(counts);
  }
  print("all", "", total);
  for (const std::string &fault : total.faults) {
    std::fprintf(stderr, "%s\n", fault.c_str());
    ++faults;
  }
  return faults;
}

int main(int argc, char **argv) {
  int64_t everywhere = argc > 1 ? std::atoi(argv[1]) : 1, onOne = argc > 2 ? std::atoi(argv[2]) : 8;
  MutantTable all, one;
  for (const GridOptions &layout : mutantLayouts()) {
    MutantRuns runs(layout);
    // One row for what lies on anything else.
    for (auto &[key, counts] : runs.everywhere(everywhere))
      all[{key.first, key.second.substr(0, key.second.find(" on "))}].add(counts);
    for (auto &[key, counts] : runs.onOneRank(onOne))
      one[key].add(counts);
  }
  std::printf("On all ranks:\n\n");
  int faults = printTable(all, false);
  std::printf("\nOn one rank:\n\n");
  faults += printTable(one, true);
  return faults > 0;
}
