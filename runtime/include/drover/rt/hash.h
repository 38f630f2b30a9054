//===- hash.h - a short hash ------------------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_HASH_H
#define DROVER_RT_HASH_H

#include <cstdint>
#include <string_view>

namespace drover::rt {

/// FNV-1a of 64 bits (RFC 9923), of bytes or of larger words: the same on every machine, and of no cryptographic
/// strength.
class Fnv1a {
public:
  void mix(uint64_t word) { hash = (hash ^ word) * 0x100000001b3; }
  void mix(std::string_view text) {
    for (char letter : text)
      mix(uint64_t(uint8_t(letter)));
  }
  uint64_t value() const { return hash; }

private:
  uint64_t hash = 0xcbf29ce484222325;
};

} // namespace drover::rt

#endif // DROVER_RT_HASH_H
