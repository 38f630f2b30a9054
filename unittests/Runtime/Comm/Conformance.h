//===- Conformance.h - what every backend must do ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// One body of tests, run by each rank of a world: here in threads, and by conformance-mpi in processes. Results are
// held against sums that the test makes itself, bit by bit, and reported as checksums, which must be equal for all
// backends.
#ifndef DROVER_UNITTESTS_RUNTIME_COMM_CONFORMANCE_H
#define DROVER_UNITTESTS_RUNTIME_COMM_CONFORMANCE_H

#include "drover/rt/communicator.h"
#include "drover/rt/device.h"
#include <map>
#include <string>
#include <vector>

namespace drover::rt::test {

/// One operation of a test, as all ranks know it.
struct TestOperation {
  int group = 0; // index into conformanceGroups()
  OperationKind kind = OperationKind::AllReduce;
  DType dtype = DROVER_F32;
  ReduceOp op = ReduceOp::Sum;
  TensorCut cut = {};
  int root = 0, to = 1; // members: broadcast's root; a message's sender and receiver (kind is Send)
  bool inPlace = false;
  uint32_t seed = 1;
};

/// The groups of the tests: (id, members), in the order of their creation. The world has at least 4 ranks.
std::vector<std::pair<int, std::vector<int>>> conformanceGroups(int worldSize);

/// Runs all cases as one rank: checksums of the rank's results by case. Throws std::runtime_error at a wrong result.
/// With a device buffers lie there, else in the host's memory.
std::map<std::string, uint64_t> runConformance(World &world, Device *device = nullptr);

/// What the rank must have counted after runConformance.
OperationCounts expectedCounts(int rank, int worldSize);

} // namespace drover::rt::test

#endif // DROVER_UNITTESTS_RUNTIME_COMM_CONFORMANCE_H
