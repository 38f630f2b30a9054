//===- parameter_store.h - the parameters of a rank -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_PARAMETER_STORE_H
#define DROVER_RT_PARAMETER_STORE_H

#include "drover/rt/program.h"
#include "drover/rt/safetensors.h"
#include <string>
#include <vector>

namespace drover::rt {

/// Where a rank's parameters live: per bucket the f32 masters (training), or values in the compute dtype (forward).
struct ParameterMemory {
  std::vector<uint8_t *> buckets;
  DType dtype;
};

/// What --init, --model and --seed ask for.
struct InitOptions {
  std::string source; // model, random, a safetensors file or its index; empty: as the program has it
  std::string model;  // the model file where it has moved, else empty
  uint64_t seed;
};

/// Fills every parameter. Values are the model's own, in its orientation. Throws Error; all missing, unexpected and
/// misshapen tensors of a file are in one message.
void initializeParameters(const Program &program, const InitOptions &options, const ParameterMemory &memory);

/// f32 values of the parameters for writeTensors, in place; `frozen` says whether frozen ones are among them.
std::vector<TensorToStore> listParameters(const Program &program, const std::vector<const float *> &buckets,
                                          bool frozen);

} // namespace drover::rt

#endif // DROVER_RT_PARAMETER_STORE_H
