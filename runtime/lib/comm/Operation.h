//===- Operation.h - an operation that a rank issued ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_LIB_COMM_OPERATION_H
#define DROVER_RT_LIB_COMM_OPERATION_H

#include "drover/rt/communicator.h"
#include <chrono>

namespace drover::rt {

using TimePoint = std::chrono::steady_clock::time_point;

/// "ranks 0, 1, 2"; long lists are cut.
std::string rankList(const std::vector<int> &ranks);

/// "3 x 4096 x 1 bf16, sum": what the members of an operation must agree on.
std::string describeShape(const OperationInfo &info);

/// Empty where `theirs` fits `mine`, else what differs. A send fits a receive.
std::string describeMismatch(const OperationInfo &mine, const OperationInfo &theirs, int theirRank);

class Operation {
public:
  Operation(World &world, const Communicator &communicator, const OperationInfo &info)
      : world(world), communicator(communicator), info(info) {}
  virtual ~Operation() = default;

  /// True when it is complete; false when that is not so by `deadline` (one in the past: do not block). Throws Error
  /// where it failed.
  virtual bool waitUntil(TimePoint deadline) = 0;
  /// The stream goes on after it. False where the backend cannot do that.
  virtual bool waitOn(Stream &stream) { return false; }
  /// World ranks of the members that have not issued it.
  virtual std::vector<int> missing() = 0;
  /// When it was complete, on the monotonic clock.
  virtual int64_t completedNs() const = 0;

  /// "all_reduce 17 of communicator 1 (tp; ranks 0, 1), 4096 f32, sum"
  std::string describe() const;

  World &world;
  const Communicator &communicator;
  const OperationInfo info;
  OperationObserver *observer = nullptr; // null: nobody is told
  int64_t token = 0, issuedNs = 0;
  uint32_t mark = 0; // what its backend writes behind it, if anything
};

} // namespace drover::rt

#endif // DROVER_RT_LIB_COMM_OPERATION_H
