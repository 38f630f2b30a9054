//===- parameter_store.h - the parameters of a rank -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_PARAMETER_STORE_H
#define DROVER_RT_PARAMETER_STORE_H

#include "drover/rt/rank_plan.h"
#include <string>
#include <vector>

namespace drover::rt {

/// A range of a bucket and where it lies; null where the rank has none of it.
struct BucketMemory {
  uint8_t *data = nullptr;
  ElementRange range = {0, 0};
};

/// Where a rank's parameters live: f32 masters (training), or values in the compute dtype (forward).
struct ParameterMemory {
  std::vector<BucketMemory> buckets;
  DType dtype;
};

/// What --init, --model and --seed ask for.
struct InitOptions {
  std::string source; // model, random, a safetensors file or its index; empty: as the program has it
  std::string model;  // the model file where it has moved, else empty
  uint64_t seed;
  bool checkModel = true; // its digest; once is enough for the ranks of a process
};

/// Fills the rank's part of every parameter, padding with zeros. Values are the model's own, in its orientation; a
/// layout never changes them. Throws Error; all missing, unexpected and misshapen tensors of a file are in one message.
void initializeParameters(const Program &program, const Coordinates &place, const InitOptions &options,
                          const ParameterMemory &memory);

} // namespace drover::rt

#endif // DROVER_RT_PARAMETER_STORE_H
