//===- Philox.cpp - counter-based random numbers --------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/philox.h"
#include "drover/rt/hash.h"
#include <cmath>

namespace drover::rt {

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t first = 0xd2511f53ull * counter[0], second = 0xcd9e8d57ull * counter[2];
    counter = {uint32_t(second >> 32) ^ counter[1] ^ key[0], uint32_t(second),
               uint32_t(first >> 32) ^ counter[3] ^ key[1], uint32_t(first)};
    key[0] += 0x9e3779b9; // golden ratio
    key[1] += 0xbb67ae85; // sqrt(3) - 1
  }
  return counter;
}

PhiloxKey philoxKey(uint64_t seed, RandomUse use) {
  return {uint32_t(seed), uint32_t(seed >> 32) ^ uint32_t(use) << 24};
}

/// A parameter draws by its name, so that the order of parameters does not matter.
static uint64_t hashName(std::string_view name) {
  Fnv1a hash;
  hash.mix(name);
  return hash.value();
}

void fillNormal(uint64_t seed, std::string_view parameter, double std, int64_t first, int64_t count, float *result) {
  constexpr double twoPi = 6.283185307179586476925;
  PhiloxKey key = philoxKey(seed, RandomUse::InitialWeights);
  uint64_t name = hashName(parameter);
  uint64_t current = UINT64_MAX;
  double normals[4] = {};
  for (int64_t i = 0; i < count; ++i) {
    uint64_t block = uint64_t(first + i) / 4;
    if (block != current) {
      current = block;
      PhiloxCounter words =
          philox4x32({uint32_t(block), uint32_t(block >> 32), uint32_t(name), uint32_t(name >> 32)}, key);
      for (int pair = 0; pair < 2; ++pair) { // Box and Muller 1958
        double radius = std::sqrt(-2 * std::log((words[2 * pair] + 1.0) * 0x1p-32));
        double angle = twoPi * words[2 * pair + 1] * 0x1p-32;
        normals[2 * pair] = radius * std::cos(angle);
        normals[2 * pair + 1] = radius * std::sin(angle);
      }
    }
    result[i] = float(std * normals[(first + i) % 4]);
  }
}

} // namespace drover::rt
