//===- MutateTypesMain.cpp - a table of what becomes of wrong types -------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// usage: mutate-types [STRIDE of mutants, 1]
// Prints the Markdown tables of docs/proof.md; exit status 1 where a mutant is neither reported nor equal.
#include "MutantVerdicts.h"
#include <cstdio>
#include <cstdlib>
#include <string>

static size_t printTable(const VerdictTable &table) {
  std::printf("| mutation | of | mutants | reported by an op's verifier | by the types | executed and equal |\n"
              "| --- | --- | --- | --- | --- | --- |\n");
  VerdictCounts total;
  auto print = [](const std::string &mutation, const std::string &target, const VerdictCounts &counts) {
    auto number = [](int64_t value) { return static_cast<long long>(value); };
    std::printf("| %s | %s | %lld | %lld | %lld | %lld |\n", mutation.c_str(), target.c_str(), number(counts.mutants),
                number(counts.byOp), number(counts.byTypes), number(counts.equal));
  };
  for (const auto &[key, counts] : table) {
    print(key.first, key.second, counts);
    total.add(counts);
  }
  print("all", "", total);
  for (const std::string &fault : total.faults)
    std::fprintf(stderr, "%s\n", fault.c_str());
  return total.faults.size();
}

int main(int argc, char **argv) {
  int64_t stride = argc > 1 ? std::atoll(argv[1]) : 1;
  VerdictTable alone, followed;
  for (const MutatedStep &step : mutatedSteps()) {
    for (auto &[key, counts] : judgeMutants(step, /*follow=*/false, stride))
      alone[key].add(counts);
    for (auto &[key, counts] : judgeMutants(step, /*follow=*/true, stride))
      followed[key].add(counts);
  }
  std::printf("Alone:\n\n");
  size_t faults = printTable(alone);
  std::printf("\nWith the types that follow from it:\n\n");
  faults += printTable(followed);
  return faults > 0;
}
