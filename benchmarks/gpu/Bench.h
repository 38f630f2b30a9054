//===- Bench.h - what gpu-benchmark's parts share ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_BENCHMARKS_GPU_BENCH_H
#define DROVER_BENCHMARKS_GPU_BENCH_H

#include "drover/rt/device.h"
#include <functional>
#include <vector>

namespace drover::bench {

/// Waits for all that is on the device; throws Error after a minute.
void finish(rt::Device &device);

/// Seconds of one call of each of `work` in turn, on the compute stream: the best of a few turns that last about
/// `seconds` together. As a graph, so that the host is not what is measured.
double timeOf(rt::Device &device, const std::vector<std::function<void()>> &work, double seconds);

/// The kernels of FOLDER/kernels.json: `check` holds them against recorded results, else they are timed.
int runKernels(rt::Device &device, const std::string &folder, bool check, double seconds);
/// Products of the shapes in a file, by the runtime and by cuBLASLt called directly.
int runMatmuls(rt::Device &device, const std::string &file, double seconds);

} // namespace drover::bench

#endif // DROVER_BENCHMARKS_GPU_BENCH_H
