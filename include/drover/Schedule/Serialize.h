//===- Serialize.h - the step program as an executable holds it -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SCHEDULE_SERIALIZE_H
#define DROVER_SCHEDULE_SERIALIZE_H

#include "drover/Schedule/StepProgram.h"

namespace drover::schedule {

/// The metadata (docs/step-program.md). Actions are apart: `StepProgram::actions` as they stand in memory.
/// `ncclSettings`: its member `nccl`, as nccl::printSettings has it; empty: none.
std::string serializeMetadata(const StepProgram &step, const std::string &ncclSettings = "");

/// Reads what `serializeMetadata` wrote; the inverse but for `StepCall::source`.
Result<StepProgram> readMetadata(const std::string &text, std::vector<drover_action> actions);

/// The plan's options alone, as `plan --json` prints them and `compile --plan=` reads them.
std::string serializePlan(const Plan &plan);
Result<Plan> readPlan(const std::string &text);

/// Layers of chunks as `parseLayersPerChunk` reads them, repeats put together.
std::string printLayersPerChunk(const std::vector<int64_t> &layers);

/// For people: chunks, calls, buckets, and each batch's actions with their slots.
std::string printStepProgram(const StepProgram &step);

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_SERIALIZE_H
