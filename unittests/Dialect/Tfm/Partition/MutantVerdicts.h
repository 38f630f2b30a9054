//===- MutantVerdicts.h - wrong distributions judged ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_DIALECT_TFM_PARTITION_MUTANTVERDICTS_H
#define DROVER_UNITTESTS_DIALECT_TFM_PARTITION_MUTANTVERDICTS_H

#include "PartitionedModel.h"
#include <map>
#include <vector>

/// What became of the mutants of one kind.
struct VerdictCounts {
  int64_t mutants = 0;
  int64_t byOp = 0;    ///< an op's or an attribute's own verifier reports it
  int64_t byTypes = 0; ///< tfm-verify-distributions does
  int64_t equal = 0;   ///< executed on all ranks: the whole step's loss and gradients
  std::vector<std::string> faults;

  void add(const VerdictCounts &other);
};

/// By mutation and target.
using VerdictTable = std::map<std::pair<std::string, std::string>, VerdictCounts>;

/// A training step that is partitioned and mutated.
struct MutatedStep {
  ModelShape shape;
  Layout layout;
  StepOptions options;
};

/// Llama, GPT-2, few kv heads, padded ones, an odd width; over tp, cp and dp, in rings, in bf16, with split backwards,
/// with full recompute, with documents.
std::vector<MutatedStep> mutatedSteps();

/// Judges every `stride`-th mutant of a step (TypeMutations.h), from the `first`.
VerdictTable judgeMutants(const MutatedStep &step, bool follow, int64_t stride, int64_t first = 0);

#endif // DROVER_UNITTESTS_DIALECT_TFM_PARTITION_MUTANTVERDICTS_H
