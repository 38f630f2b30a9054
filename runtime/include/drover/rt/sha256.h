//===- sha256.h - SHA-256 ---------------------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_SHA256_H
#define DROVER_RT_SHA256_H

#include <array>
#include <cstdint>
#include <string>

namespace drover::rt {

/// Folds `blocks` blocks of 64 bytes into a state.
using Sha256Blocks = void (*)(std::array<uint32_t, 8> &state, const uint8_t *data, uint64_t blocks);

/// On any CPU, and with the SHA instructions of x86-64: null on a CPU without them.
void sha256Portable(std::array<uint32_t, 8> &state, const uint8_t *data, uint64_t blocks);
Sha256Blocks sha256Instructions();

/// FIPS 180-4.
class Sha256 {
public:
  /// With the fastest code for this CPU, or the given one.
  Sha256();
  explicit Sha256(Sha256Blocks compress);

  void update(const void *data, uint64_t bytes);
  /// Lower-case hexadecimal digest; the object is used up.
  std::string finish();

private:
  Sha256Blocks compress;
  std::array<uint32_t, 8> state;
  std::array<uint8_t, 64> pending;
  uint64_t total = 0;
};

std::string sha256(const void *data, uint64_t bytes);

} // namespace drover::rt

#endif // DROVER_RT_SHA256_H
