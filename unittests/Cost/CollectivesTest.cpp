//===- CollectivesTest.cpp - collectives against published tables ---------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cost/Collectives.h"
#include "../Cluster/TestClusters.h"
#include "gtest/gtest.h"

using namespace drover;
using namespace drover::cluster;
using namespace drover::cost;

namespace {

constexpr double kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

/// One row of a published table: seconds, and by which fraction of them the formulas may miss.
struct Row {
  double bytes, seconds, tolerance;
};

/// Seconds of an all-reduce over n ranks from its bus bandwidth (nccl-tests: 2 (n-1)/n bytes / seconds).
double allReduceSeconds(double bytes, double busBandwidth, double n) { return 2 * (n - 1) / n * bytes / busBandwidth; }

void expectRows(const Cluster &cluster, const Span &span, const std::vector<Row> &rows,
                Algorithm algorithm = Algorithm::Auto) {
  for (const Row &row : rows) {
    double seconds = collectiveSeconds(cluster, CollectiveKind::AllReduce, row.bytes, span, algorithm);
    EXPECT_NEAR(seconds / row.seconds, 1, row.tolerance)
        << row.bytes << " bytes: " << seconds << " against " << row.seconds;
  }
}

TEST(Collectives, allReduceOfEightH100) {
  // notes of NVIDIA/dgxc-benchmarking v25.10, nccl/README, NVLS on.
  Cluster cluster = makeDgxH100(1);
  expectRows(cluster, spanOfNeighbours(cluster, 8),
             {{8, 13.0e-6, 0.2},
              {64 * kKiB, 18.9e-6, 0.2},
              {kMiB, 26.9e-6, 0.1},
              {8 * kMiB, 82e-6, 0.1},
              {64 * kMiB, 325e-6, 0.15},
              {kGiB, allReduceSeconds(kGiB, 468e9, 8), 0.05},
              {16 * kGiB, allReduceSeconds(16 * kGiB, 480e9, 8), 0.03}});
}

} // namespace
