//===- IndexError.cpp - an index out of range -----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/abi.h"
#include "drover/rt/fatal.h"

extern "C" void drover_rt_index_error(const char *what, int64_t index, int64_t low, int64_t size) {
  drover::rt::endWithError("%s: index %lld is not in [%lld, %lld)", what, static_cast<long long>(index),
                           static_cast<long long>(low), static_cast<long long>(size));
}
