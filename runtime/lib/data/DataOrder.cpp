//===- DataOrder.cpp - which sequence comes when --------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/data_order.h"
#include "drover/rt/error.h"
#include "drover/rt/philox.h"

namespace drover::rt {

DataOrder::DataOrder(int64_t count, bool shuffle, uint64_t seed)
    : sequences(uint64_t(count)), shuffle(shuffle), seed(seed), halfBits(1) {
  if (count < 1)
    fail("no sequence to order");
  while (halfBits < 31 && (uint64_t(1) << (2 * halfBits)) < sequences)
    ++halfBits;
}

int64_t DataOrder::place(int64_t number) const {
  uint64_t epoch = uint64_t(number) / sequences, value = uint64_t(number) % sequences;
  if (!shuffle)
    return int64_t(value);
  // A permutation of a larger domain, walked until it is back inside, is one of the smaller domain (Black and
  // Rogaway, Ciphers with arbitrary finite domains, 2002). The domain is below four times `sequences`, or four.
  do
    value = permute(value, epoch);
  while (value >= sequences);
  return int64_t(value);
}

/// A Feistel network whose round function is Philox keyed by the seed, its counter (half, round, epoch).
uint64_t DataOrder::permute(uint64_t value, uint64_t epoch) const {
  uint32_t mask = uint32_t((uint64_t(1) << halfBits) - 1);
  uint32_t left = uint32_t(value >> halfBits), right = uint32_t(value) & mask;
  for (uint32_t round = 0; round < 8; ++round) {
    uint32_t word =
        philox4x32({right, round, uint32_t(epoch), uint32_t(epoch >> 32)}, philoxKey(seed, RandomUse::DataOrder))[0];
    uint32_t next = left ^ (word & mask);
    left = right;
    right = next;
  }
  return uint64_t(left) << halfBits | right;
}

} // namespace drover::rt
