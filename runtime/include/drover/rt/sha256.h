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

/// FIPS 180-4.
class Sha256 {
public:
  Sha256();
  void update(const void *data, uint64_t bytes);
  /// Lower-case hexadecimal digest; the object is used up.
  std::string finish();

private:
  void block(const uint8_t *data);

  std::array<uint32_t, 8> state;
  std::array<uint8_t, 64> pending;
  uint64_t total = 0;
};

std::string sha256(const void *data, uint64_t bytes);

} // namespace drover::rt

#endif // DROVER_RT_SHA256_H
