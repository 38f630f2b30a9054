//===- MutantRuns.cpp - wrong programs checked, loaded, executed ----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "MutantRuns.h"
#include "drover/Schedule/Check.h"
#include "drover/Schedule/Verify.h"
#include "drover/rt/safetensors.h"
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace drover::rt::test {

using schedule::test::Mutant;

void MutantCounts::add(const MutantCounts &other) {
  mutants += other.mutants;
  reported += other.reported;
  verified += other.verified;
  refused += other.refused;
  equal += other.equal;
  ended += other.ended;
  differ += other.differ;
  isData |= other.isData;
  faults.insert(faults.end(), other.faults.begin(), other.faults.end());
}

MutantRuns::MutantRuns(const GridOptions &layout) : options(gridRunOptions(folder)), toy(layout), changed(layout) {
  options.steps = 2;
  expected = run(Program(toy.program()));
  options.deadlines = {20, 0.4, 0.4};
}

MutantRuns::Outcome MutantRuns::run(const Program &program, const Program *mutant, int64_t mutantRank) {
  Outcome outcome;
  ::testing::internal::CaptureStderr(); // progress lines
  try {
    runOnRanks(program, options,
               [&](World &world) { trainRank(world.rank() == mutantRank ? *mutant : program, options, world); });
    std::ifstream log(options.log);
    for (std::string line; std::getline(log, line);) {
      nlohmann::json row = nlohmann::json::parse(line);
      for (const char *key : {"loss", "grad_norm"})
        if (row.contains("loss"))
          outcome.losses.push_back(row[key].get<double>());
      outcome.peakBytes = row["peak_bytes"].get<int64_t>();
    }
    SafetensorsFile file(options.saveWeights);
    for (const auto &[name, tensor] : file.tensors()) {
      const auto *values = reinterpret_cast<const float *>(tensor.data);
      outcome.weights.insert(outcome.weights.end(), values, values + tensor.bytes / sizeof(float));
    }
  } catch (const std::exception &error) {
    outcome.error = error.what();
  }
  ::testing::internal::GetCapturedStderr();
  return outcome;
}

bool MutantRuns::isEqual(const Outcome &a, const Outcome &b) {
  auto areClose = [](const auto &x, const auto &y) {
    return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [](double p, double q) {
             return std::abs(p - q) <= 1e-6 * std::max(std::abs(p), std::abs(q));
           });
  };
  return a.error == b.error && a.peakBytes == b.peakBytes && areClose(a.losses, b.losses) &&
         areClose(a.weights, b.weights);
}

int64_t MutantRuns::lastRankOf(const Program &program, size_t stage) const {
  int64_t rank = program.grid.ranks() - 1;
  while (program.grid.coordinates(rank)[DROVER_AXIS_PP] != int32_t(stage))
    --rank;
  return rank;
}

static std::string describe(const Mutant &mutant) {
  return concat(mutant.mutation, " ", mutant.target, " at stage ", mutant.place.stage, ", action ", mutant.place.index);
}

/// The program of a mutant as the loader takes it; null where it is refused.
static std::unique_ptr<Program> load(const GridProgram &mutant) {
  try {
    return std::make_unique<Program>(mutant.program());
  } catch (const Error &) {
    return nullptr;
  }
}

void MutantRuns::take(const Mutant &mutant, MutantTable &table,
                      const std::function<bool(const Mutant &, MutantCounts &)> &isReported,
                      const std::function<void(const Mutant &, Program &, MutantCounts &)> &visit) {
  MutantCounts &counts = table[{mutant.mutation, mutant.target}];
  ++counts.mutants;
  if (isReported(mutant, counts))
    return;
  changed.step = mutant.step;
  changed.finish();
  if (std::unique_ptr<Program> program = load(changed))
    visit(mutant, *program, counts);
  else
    ++counts.refused;
}

MutantTable MutantRuns::everywhere(int64_t stride) {
  auto isReported = [&](const Mutant &mutant, MutantCounts &counts) {
    if (!schedule::checkStepProgram(mutant.step, 1).empty())
      return ++counts.reported > 0;
    return !schedule::verifyStepProgram(toy.microbatch, mutant.step, 1).empty() && ++counts.verified > 0;
  };
  auto visit = [&](const Mutant &mutant, Program &program, MutantCounts &counts) {
    bool isAlike = true;
    for (const char *timing : {"early", "late"}) {
      ::setenv("DROVER_RT_TIMING", timing, 1);
      Outcome outcome = run(program);
      if (!outcome.error.empty()) { // a hang, or a machine that is busy
        options.deadlines.firstStep = options.deadlines.step = 20;
        outcome = run(program);
        options.deadlines.firstStep = options.deadlines.step = 0.4;
      }
      if (!isEqual(outcome, expected)) {
        isAlike = false;
        counts.faults.push_back(concat(describe(mutant), ", ", timing, ": ",
                                       outcome.error.empty() ? "other values" : outcome.error.c_str()));
      }
    }
    ::unsetenv("DROVER_RT_TIMING");
    counts.equal += isAlike;
  };
  MutantTable table;
  int64_t number = 0;
  auto takeEach = [&](Mutant &&mutant) {
    if (number++ % stride == 0)
      take(mutant, table, isReported, visit);
  };
  schedule::test::forEachMutant(toy.step, takeEach);
  schedule::test::forEachDataMutant(toy.step, takeEach);
  return table;
}

MutantTable MutantRuns::onOneRank(int64_t stride) {
  Program program(toy.program());
  auto isReported = [](const Mutant &, MutantCounts &) { return false; }; // before it runs
  auto compare = [&](const Mutant &mutant, Program &other, MutantCounts &counts) {
    int64_t rank = lastRankOf(program, mutant.place.stage);
    Outcome outcome = run(program, &other, rank);
    bool isTold = outcome.error.find("expected one executable on all ranks") != std::string::npos;
    counts.reported += isTold;
    if (!isTold)
      counts.faults.push_back(concat(describe(mutant), " on rank ", rank, " is not reported: ", outcome.error));
  };
  auto compareAndRun = [&](const Mutant &mutant, Program &other, MutantCounts &counts) {
    compare(mutant, other, counts);
    int64_t rank = lastRankOf(program, mutant.place.stage);
    other.hash = program.hash;
    Outcome outcome = run(program, &other, rank);
    // Operation, communicator and who is missing; or a parameter of which replicas differ.
    bool isNamed = outcome.error.find("communicator") != std::string::npos ||
                   outcome.error.find("parameter '") != std::string::npos;
    if (!outcome.error.empty() && !isNamed)
      counts.faults.push_back(
          concat(describe(mutant), " on rank ", rank, ": an error without a name: ", outcome.error));
    ++(!outcome.error.empty() ? counts.ended : isEqual(outcome, expected) ? counts.equal : counts.differ);
  };
  MutantTable table;
  int64_t number = 0;
  schedule::test::forEachMutant(toy.step, [&](Mutant &&mutant) {
    if (number++ % stride == 0)
      take(mutant, table, isReported, compareAndRun);
  });
  schedule::test::forEachDataMutant(toy.step, [&](Mutant &&mutant) {
    if (number++ % stride != 0)
      return;
    // One row for what lies on anything else, apart from those of actions.
    MutantTable own;
    take(mutant, own, isReported, compare);
    for (auto &[key, counts] : own) {
      counts.isData = true;
      table[{key.first, key.second.substr(0, key.second.find(" on ")) + " (data)"}].add(counts);
    }
  });
  return table;
}

} // namespace drover::rt::test
