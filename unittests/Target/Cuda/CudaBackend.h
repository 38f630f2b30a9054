//===- CudaBackend.h - kernels of a GPU by the emulator ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_TARGET_CUDA_CUDABACKEND_H
#define DROVER_UNITTESTS_TARGET_CUDA_CUDABACKEND_H

#include "../Host/Backend.h"

namespace drover::test {

/// What the device's error words say, which are cleared; empty where no index was out of range.
std::string takeIndexError();

} // namespace drover::test

#endif // DROVER_UNITTESTS_TARGET_CUDA_CUDABACKEND_H
