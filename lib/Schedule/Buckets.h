//===- Buckets.h - parameters to buckets ------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_SCHEDULE_BUCKETS_H
#define DROVER_LIB_SCHEDULE_BUCKETS_H

#include "ChunkCut.h"

namespace drover::schedule {

/// Fills the buckets and parameters of `step`, whose grid and chunks are there. Bucket c is chunk c's own; behind
/// those come buckets of frozen parameters, one a chunk that has any, and of parameters that several chunks use.
/// `step.parameters` has the order of the program's.
void layOutBuckets(const MicrobatchProgram &program, const ChunkCut &cut, StepProgram &step);

} // namespace drover::schedule

#endif // DROVER_LIB_SCHEDULE_BUCKETS_H
