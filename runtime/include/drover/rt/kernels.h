//===- kernels.h - what the runtime asks of the kernels ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_KERNELS_H
#define DROVER_RT_KERNELS_H

#include <cstdint>

namespace drover::rt {

/// Bytes that the kernels hold in buffers of their threads (packed panels, tiles), in all threads of the process.
int64_t kernelScratchBytes();
/// The most they held at once.
int64_t kernelScratchPeakBytes();

/// The instruction set of the tile kernels: "avx2" or "avx512".
const char *kernelInstructionSet();

} // namespace drover::rt

#endif // DROVER_RT_KERNELS_H
