//===- Measure.h - what this machine achieves -------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// `drover calibrate` runs this program and fits the constants of a cluster file to what it prints (docs/calibrate.md).
#ifndef DROVER_RT_MEASURE_MEASURE_H
#define DROVER_RT_MEASURE_MEASURE_H

#include "drover/rt/communicator.h"
#include <nlohmann/json.hpp>

namespace drover::rt {

struct MeasureOptions {
  /// Cores that ranks share, each busy with a rank of one thread while kernels are measured.
  int cores = 1;
  /// Times that everything is measured; the best counts.
  int turns = 5;
};

/// Matmuls, attention, passes over memory, calls, memory sizes: seconds of processor time of one core.
nlohmann::ordered_json measureKernels(const MeasureOptions &options);

/// Seconds of each kind of collective and of a message over all ranks of the world, by bytes of the whole tensor. Every
/// rank calls it.
nlohmann::ordered_json measureCollectives(World &world, const MeasureOptions &options);

} // namespace drover::rt

#endif // DROVER_RT_MEASURE_MEASURE_H
