//===- Dispatch.cpp - the tile kernels of this processor ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/fatal.h"
#include "drover/rt/kernels.h"
#include "kernels/tiles/Tiles.h"

#include <cstdlib>
#include <cstring>

using namespace drover::rt;

static const TileKernels &choose() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    fatal("this program needs a processor with AVX2 and FMA");
  const bool has512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const char *wanted = std::getenv("DROVER_RT_ISA");
  if (!has512 || (wanted && std::strcmp(wanted, "avx2") == 0))
    return tileKernelsAvx2;
  return tileKernelsAvx512;
}

const TileKernels &drover::rt::tileKernels() {
  static const TileKernels &chosen = choose();
  return chosen;
}

const char *drover::rt::kernelInstructionSet() { return tileKernels().name; }
