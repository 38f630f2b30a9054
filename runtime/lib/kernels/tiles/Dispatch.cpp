//===- Dispatch.cpp - the tile kernels of this processor ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/fatal.h"
#include "drover/rt/kernels.h"
#include "kernels/tiles/Tiles.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

using namespace drover::rt;

static std::atomic<const TileKernels *> forced{nullptr};

/// Tables that the processor claims to run are also held against the plainest one: a wrong bit here would be a wrong
/// gradient.
static const TileKernels &choose() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    fatal("this program needs a processor with AVX2 and FMA");
  const char *wanted = std::getenv("DROVER_RT_ISA");
  const bool has512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!has512 || (wanted && std::strcmp(wanted, "avx2") == 0))
    return tileKernelsAvx2;
  const bool plain = wanted && std::strcmp(wanted, "avx512") == 0;
  const bool hasPairs = __builtin_cpu_supports("avx512bf16") && !plain;
  for (const TileKernels *candidate : {hasPairs ? &tileKernelsAvx512Bf16 : nullptr, &tileKernelsAvx512}) {
    if (candidate && agreesWith(*candidate, tileKernelsAvx2))
      return *candidate;
    if (candidate)
      std::fprintf(stderr, "warning: the %s kernels fail their self-check on this processor and are not used\n",
                   candidate->name);
  }
  return tileKernelsAvx2;
}

const TileKernels &drover::rt::tileKernels() {
  if (const TileKernels *table = forced.load(std::memory_order_relaxed))
    return *table;
  static const TileKernels &chosen = choose();
  return chosen;
}

void drover::rt::useTileKernels(const TileKernels *table) { forced.store(table); }

const char *drover::rt::kernelInstructionSet() { return tileKernels().name; }
