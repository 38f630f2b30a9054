//===- Report.h - what a step program moves, computes, holds ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SCHEDULE_REPORT_H
#define DROVER_SCHEDULE_REPORT_H

#include "drover/Schedule/StepProgram.h"

namespace drover::schedule {

/// Collectives of one kind over one axis, in one step of a rank of one stage.
struct Traffic {
  std::string axis; // tp, kv, replica, cp, dp, cp*dp, pp (ties), world
  std::string kind; // all_gather, reduce_scatter, all_reduce, broadcast, shift
  DType dtype = DType::F32;
  int64_t count = 0;
  /// What a rank sends with the ring algorithm: (n-1)/n of the whole for all_gather and reduce_scatter, twice that for
  /// all_reduce, the part for a shift, n-1 of which are a gather or a scatter; of a broadcast what its root sends
  /// (Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in MPICH, 2005).
  int64_t bytesPerRank = 0;
};

/// Point-to-point messages of one pipeline: all stages of one tp, cp and dp.
struct Messages {
  int64_t count = 0, bytes = 0;
};

/// Collectives of one communicator, of one kind and size, in one step of a rank of one stage.
struct CollectiveUse {
  uint32_t communicator = 0;
  std::string kind; // as Traffic's
  DType dtype = DType::F32;
  int64_t bytes = 0; // of the whole: the larger one of operand and result; of a shift the part that it moves
  int64_t count = 0;
};

/// Members of a communicator with a fixed id, or of a listed one.
int64_t membersOf(const StepProgram &step, uint32_t communicator);

/// Collectives of a step of the ranks of `stage`, over two or more: those of bodies and those of the list. The scalars
/// of COUNT and CLIP are among them.
std::vector<CollectiveUse> collectivesOf(const StepProgram &step, const Batch &batch, size_t stage);
/// The same by axis, kind and dtype.
std::vector<Traffic> trafficOf(const StepProgram &step, const Batch &batch, size_t stage);
Messages messagesOf(const StepProgram &step, const Batch &batch);
/// Bytes of what a SEND moves.
int64_t messageBytes(const StepProgram &step, const drover_action &send);

/// Floating-point operations of a step of a rank of `stage`, recomputation included.
double flopsOf(const StepProgram &step, const Batch &batch, size_t stage);

/// Arena and workspace of a rank of `stage`, in bytes.
int64_t peakMemoryOf(const StepProgram &step, const Batch &batch, size_t stage);

/// The report of `drover check --json` (DESIGN section 6). Where stages differ, traffic and FLOPs are those of the
/// stage with most of it; memory is listed by stage.
std::string reportJson(const StepProgram &step, const std::vector<std::string> &faults);
/// The same for people.
std::string reportText(const StepProgram &step, const std::vector<std::string> &faults);

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_REPORT_H
