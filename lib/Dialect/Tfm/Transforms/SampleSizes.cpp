//===- SampleSizes.cpp - sizes at which a graph is evaluated --------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "SampleSizes.h"
#include "SymbolicSizes.h"

using namespace mlir;

SmallVector<SmallVector<int64_t>> drover::tfm::sampleSizes(Operation *scope) {
  unsigned count = numSymbols(scope);
  if (count == 0)
    return {SmallVector<int64_t>()};
  SmallVector<SmallVector<int64_t>> samples;
  for (int64_t length : {9, 33})
    for (unsigned longest = 0; longest < count; ++longest) {
      SmallVector<int64_t> &sample = samples.emplace_back();
      for (unsigned symbol = 0; symbol < count; ++symbol)
        sample.push_back(symbol == longest ? length : 2 + symbol % 2);
    }
  return samples;
}
