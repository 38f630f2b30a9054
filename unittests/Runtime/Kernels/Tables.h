//===- Tables.h - the tables of tile kernels under test ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_RUNTIME_KERNELS_TABLES_H
#define DROVER_UNITTESTS_RUNTIME_KERNELS_TABLES_H

#include "kernels/tiles/Tiles.h"

#include <gtest/gtest.h>

namespace drover::rt {

/// The source of the AVX-512 tables, compiled for AVX2 (CMakeLists.txt).
extern const TileKernels tileKernelsWide;

namespace test {

inline std::string tableName(const testing::TestParamInfo<const TileKernels *> &info) {
  return info.param == &tileKernelsWide ? "Wide" : "Avx2";
}

/// Runs a test on one of the tables.
class WithTable : public testing::TestWithParam<const TileKernels *> {
protected:
  void SetUp() override { useTileKernels(GetParam()); }
  void TearDown() override { useTileKernels(nullptr); }
};

} // namespace test
} // namespace drover::rt

#endif // DROVER_UNITTESTS_RUNTIME_KERNELS_TABLES_H
