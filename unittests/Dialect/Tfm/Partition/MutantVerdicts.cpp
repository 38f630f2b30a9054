//===- MutantVerdicts.cpp - wrong distributions judged --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "MutantVerdicts.h"
#include "TypeMutations.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace drover;

void VerdictCounts::add(const VerdictCounts &other) {
  mutants += other.mutants;
  byOp += other.byOp;
  byTypes += other.byTypes;
  equal += other.equal;
  faults.insert(faults.end(), other.faults.begin(), other.faults.end());
}

std::vector<MutatedStep> mutatedSteps() {
  ModelShape llama, gpt2, oneKvHead, paddedHeads, oddWidth;
  for (ModelShape *shape : {&llama, &gpt2, &oneKvHead, &paddedHeads, &oddWidth})
    shape->layers = 1;
  gpt2.kvHeads = 4;
  gpt2.layerNorm = gpt2.bias = gpt2.tied = gpt2.fusedQkv = gpt2.positionTable = true;
  gpt2.activation = ModelShape::Activation::Gelu;
  gpt2.vocabulary = 17;
  oneKvHead.heads = 6;
  oneKvHead.kvHeads = 1;
  oneKvHead.qkNorm = true;
  oneKvHead.vocabulary = 17;
  paddedHeads.heads = 6;
  paddedHeads.kvHeads = 3;
  paddedHeads.parallel = paddedHeads.bias = true;
  oddWidth.width = 13;
  oddWidth.tied = oddWidth.scaledEmbedding = oddWidth.fusedGateUp = true;
  oddWidth.activation = ModelShape::Activation::Exp;
  std::vector<MutatedStep> steps;
  for (const ModelShape &shape : {llama, gpt2, oneKvHead, paddedHeads, oddWidth})
    for (const Layout &layout : {Layout{2, 1}, Layout{4, 1}, Layout{1, 2}, Layout{4, 2}, Layout{2, 2, 2},
                                 Layout{2, 2, 1, true}, Layout{4, 2, 1, true}})
      steps.push_back({shape, layout, {}});
  StepOptions narrow, split, full, documents;
  narrow.computeType = "bf16";
  split.split = true;
  full.recompute = "full";
  documents.documents = documents.ignoredLabels = true;
  for (const StepOptions &options : {narrow, split, full, documents})
    for (const ModelShape &shape : {oneKvHead, gpt2})
      steps.push_back({shape, {4, 2}, options});
  return steps;
}

/// The step as it is; nothing where the partition fails.
static OwningOpRef<ModuleOp> partitioned(const MutatedStep &step) {
  OwningOpRef<ModuleOp> module = trainingStep(step.shape, step.options);
  EXPECT_TRUE(module && succeeded(partitionStep(*module, step.layout)));
  return module;
}

static std::string describe(const MutatedStep &step, const TypeMutant &mutant) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "tp " << step.layout.tp << " cp " << step.layout.cp << " dp " << step.layout.dp
         << (step.layout.rings ? " in rings" : "") << ", " << step.shape.heads << " heads, " << step.shape.kvHeads
         << " kv heads: " << mutant.mutation << " " << mutant.target << ": " << mutant.where();
  return text;
}

VerdictTable judgeMutants(const MutatedStep &step, bool follow, int64_t stride, int64_t first) {
  VerdictTable table;
  OwningOpRef<ModuleOp> module = partitioned(step);
  ModelShape allBatches = step.shape;
  allBatches.batch *= step.layout.dp;
  StepResults expected = runWhole(*trainingStep(allBatches, step.options), step.options);
  ScopedDiagnosticHandler silent(module->getContext(), [](Diagnostic &) { return success(); });
  forEachTypeMutant(*module, follow, stride, first, [&](const TypeMutant &mutant) {
    VerdictCounts &counts = table[{mutant.mutation.str(), mutant.target.str()}];
    ++counts.mutants;
    if (failed(verify(mutant.module))) {
      ++counts.byOp;
      return;
    }
    if (failed(tfm::verifyDistributions(mutant.module))) {
      ++counts.byTypes;
      return;
    }
    std::string reason;
    FailureOr<StepResults> results = runRanks(mutant.module, step.options, reason);
    auto [difference, name] = failed(results) ? std::pair(1.0, reason) : worstDifference(expected, *results);
    if (difference < 1e-10)
      ++counts.equal;
    else
      counts.faults.push_back(describe(step, mutant) + " is not reported: " + name);
  });
  return table;
}
