//===- MutantRuns.h - wrong programs checked, loaded, executed --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_RUNTIME_GRID_MUTANTRUNS_H
#define DROVER_UNITTESTS_RUNTIME_GRID_MUTANTRUNS_H

#include "../../Schedule/DataMutations.h"
#include "GridRunOptions.h"
#include <functional>
#include <map>

namespace drover::rt::test {

/// What became of the mutants of one kind.
struct MutantCounts {
  int64_t mutants = 0;
  int64_t reported = 0; // by check, or on one rank by the comparison of hashes
  int64_t verified = 0; // not by check, but by compile, which has the microbatch program
  int64_t refused = 0;  // by the loader
  int64_t equal = 0;    // executed: same losses, weights and peak
  int64_t ended = 0;    // executed with the checks off: an error that names an operation
  int64_t differ = 0;   // executed with the checks off: other values
  bool isData = false;  // never executed with the checks off: what is wrong may be a place in memory
  std::vector<std::string> faults;

  void add(const MutantCounts &other);
};

/// By mutation and target.
using MutantTable = std::map<std::pair<std::string, std::string>, MutantCounts>;

/// Mutates the step program of a layout and runs what is not reported, with small deadlines, on threads.
class MutantRuns {
public:
  explicit MutantRuns(const GridOptions &layout);

  /// Every `stride`-th mutant, of actions and of data, on all ranks: reported by check or compile, refused at load, or
  /// equal under early and late timing.
  MutantTable everywhere(int64_t stride);
  /// Every `stride`-th mutant on the last rank of its stage alone: reported when ranks compare their programs; those of
  /// actions then run without that comparison.
  MutantTable onOneRank(int64_t stride);

private:
  struct Outcome {
    std::string error;          // else what follows
    std::vector<double> losses; // and norms
    std::vector<float> weights;
    int64_t peakBytes = 0;
  };

  /// Another order of sums, of a norm's for example, changes last bits.
  static bool isEqual(const Outcome &a, const Outcome &b);

  /// A mutant: counted as `isReported` says, else as refused, or loaded and visited.
  void take(const schedule::test::Mutant &mutant, MutantTable &table,
            const std::function<bool(const schedule::test::Mutant &, MutantCounts &)> &isReported,
            const std::function<void(const schedule::test::Mutant &, Program &, MutantCounts &)> &visit);
  Outcome run(const Program &program, const Program *mutant = nullptr, int64_t mutantRank = -1);
  int64_t lastRankOf(const Program &program, size_t stage) const;

  TemporaryFolder folder;
  TrainOptions options;
  GridProgram toy, changed;
  Outcome expected;
};

} // namespace drover::rt::test

#endif // DROVER_UNITTESTS_RUNTIME_GRID_MUTANTRUNS_H
