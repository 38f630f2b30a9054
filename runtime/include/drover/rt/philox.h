//===- philox.h - counter-based random numbers ------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011). A number is a
// function of key and counter alone, so that no layout of ranks or threads can change it. docs/runtime.md says which
// counter each use draws.
#ifndef DROVER_RT_PHILOX_H
#define DROVER_RT_PHILOX_H

#include <array>
#include <cstdint>
#include <string_view>

namespace drover::rt {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key);

/// What numbers are drawn for; each use has its own key.
enum class RandomUse : uint32_t { InitialWeights = 1, DataOrder = 2 };

PhiloxKey philoxKey(uint64_t seed, RandomUse use);

/// result[i] = N(0, std) for element first + i of the named parameter.
void fillNormal(uint64_t seed, std::string_view parameter, double std, int64_t first, int64_t count, float *result);

} // namespace drover::rt

#endif // DROVER_RT_PHILOX_H
