//===- data_order.h - which sequence comes when -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_DATA_ORDER_H
#define DROVER_RT_DATA_ORDER_H

#include <cstdint>

namespace drover::rt {

/// Maps the running number of a sequence to its place in the data: number modulo `sequences` in order, or through
/// another permutation in every epoch. Any number can be asked for, in any order (docs/runtime.md).
class DataOrder {
public:
  DataOrder(int64_t sequences, bool shuffle, uint64_t seed);

  int64_t place(int64_t number) const;

  /// The number of the sequence of a step whose first is `consumed` (DESIGN section 4).
  static int64_t number(int64_t consumed, int64_t microbatch, int64_t dataRanks, int64_t dataRank,
                        int64_t microbatchSize, int64_t index) {
    return consumed + microbatch * dataRanks * microbatchSize + dataRank * microbatchSize + index;
  }

private:
  uint64_t permute(uint64_t value, uint64_t epoch) const;

  uint64_t sequences;
  bool shuffle;
  uint64_t seed;
  int halfBits; // the Feistel network's domain is 2^(2 * halfBits) >= sequences
};

} // namespace drover::rt

#endif // DROVER_RT_DATA_ORDER_H
