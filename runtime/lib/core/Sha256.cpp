//===- Sha256.cpp - SHA-256 -----------------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/sha256.h"
#include <algorithm>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace drover::rt {

// FIPS 180-4, section 4.2.2: first 32 bits of the fractional parts of the cube roots of the first 64 primes.
alignas(16) static constexpr uint32_t roundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

//===----------------------------------------------------------------------===//
// Portable
//===----------------------------------------------------------------------===//

static uint32_t rotate(uint32_t value, int bits) { return value >> bits | value << (32 - bits); }

static void compressBlock(std::array<uint32_t, 8> &state, const uint8_t *data) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = uint32_t(data[4 * i]) << 24 | data[4 * i + 1] << 16 | data[4 * i + 2] << 8 | data[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (int i = 0; i < 64; ++i) {
    uint32_t t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + roundConstants[i] + w[i];
    uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i)
    state[i] += sums[i];
}

void sha256Portable(std::array<uint32_t, 8> &state, const uint8_t *data, uint64_t blocks) {
  for (uint64_t i = 0; i < blocks; ++i)
    compressBlock(state, data + 64 * i);
}

//===----------------------------------------------------------------------===//
// With the CPU's instructions
//===----------------------------------------------------------------------===//

#if defined(__x86_64__)
// sha256rnds2 does two rounds on two registers, {a, b, e, f} and {c, d, g, h} from the highest lane down, and returns
// the new {a, b, e, f}; what was there before is the new {c, d, g, h} (Intel SDM, SHA256RNDS2).
__attribute__((target("sha,sse4.1"))) static void compressWithInstructions(std::array<uint32_t, 8> &state,
                                                                           const uint8_t *data, uint64_t blocks) {
  const __m128i bigEndian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
  __m128i abef = _mm_set_epi32(int(state[0]), int(state[1]), int(state[4]), int(state[5]));
  __m128i cdgh = _mm_set_epi32(int(state[2]), int(state[3]), int(state[6]), int(state[7]));
  for (; blocks; --blocks, data += 64) {
    const __m128i abefBefore = abef, cdghBefore = cdgh;
    __m128i w[4]; // words i-16 to i-1 of the message schedule
    for (int i = 0; i < 4; ++i)
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i *>(data) + i), bigEndian);
    for (int i = 0; i < 16; ++i) {
      __m128i sum = _mm_add_epi32(w[0], _mm_load_si128(reinterpret_cast<const __m128i *>(roundConstants) + i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
      __m128i next = _mm_add_epi32(_mm_sha256msg1_epu32(w[0], w[1]), _mm_alignr_epi8(w[3], w[2], 4));
      next = _mm_sha256msg2_epu32(next, w[3]);
      w[0] = w[1], w[1] = w[2], w[2] = w[3], w[3] = next;
    }
    abef = _mm_add_epi32(abef, abefBefore);
    cdgh = _mm_add_epi32(cdgh, cdghBefore);
  }
  alignas(16) uint32_t high[4], low[4];
  _mm_store_si128(reinterpret_cast<__m128i *>(high), abef);
  _mm_store_si128(reinterpret_cast<__m128i *>(low), cdgh);
  state = {high[3], high[2], low[3], low[2], high[1], high[0], low[1], low[0]};
}

Sha256Blocks sha256Instructions() {
  uint32_t a, b, c, d;
  const bool sse41 = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_1);
  const bool sha = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
  return sse41 && sha ? compressWithInstructions : nullptr;
}
#else
Sha256Blocks sha256Instructions() { return nullptr; }
#endif

//===----------------------------------------------------------------------===//
// The digest
//===----------------------------------------------------------------------===//

static Sha256Blocks fastest() {
  static const Sha256Blocks instructions = sha256Instructions();
  return instructions ? instructions : sha256Portable;
}

Sha256::Sha256() : Sha256(fastest()) {}

Sha256::Sha256(Sha256Blocks compress)
    : compress(compress),
      state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::update(const void *data, uint64_t bytes) {
  const auto *next = static_cast<const uint8_t *>(data);
  while (bytes) {
    uint64_t filled = total % 64, part = std::min<uint64_t>(64 - filled, bytes);
    if (part == 64) {
      part = bytes / 64 * 64;
      compress(state, next, part / 64);
    } else {
      std::memcpy(pending.data() + filled, next, part);
      if (filled + part == 64)
        compress(state, pending.data(), 1);
    }
    next += part;
    bytes -= part;
    total += part;
  }
}

std::string Sha256::finish() {
  uint64_t bits = total * 8;
  uint8_t padding[72] = {0x80};
  uint64_t length = 64 - (total + 8) % 64;
  for (int i = 0; i < 8; ++i)
    padding[length + i] = uint8_t(bits >> (56 - 8 * i));
  update(padding, length + 8);
  std::string text;
  for (uint32_t word : state)
    for (int shift = 28; shift >= 0; shift -= 4)
      text += "0123456789abcdef"[word >> shift & 15];
  return text;
}

std::string sha256(const void *data, uint64_t bytes) {
  Sha256 hash;
  hash.update(data, bytes);
  return hash.finish();
}

} // namespace drover::rt
