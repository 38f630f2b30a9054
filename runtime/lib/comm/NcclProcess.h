//===- NcclProcess.h - what a process sets up for NCCL ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_LIB_COMM_NCCLPROCESS_H
#define DROVER_RT_LIB_COMM_NCCLPROCESS_H

#include "comm/NcclApi.h"
#include "comm/NcclSettings.h"
#include "drover/rt/communicator.h"

namespace drover::rt {

/// docs/nccl.md, At start.
struct NcclProcess {
  NcclSettings settings;
  std::string digest;                  // of their text: equal on all ranks
  void (*creating)(int64_t) = nullptr; // tells the tuner which communicator comes next; null: it goes by its shape
  std::vector<std::string> notes;      // for people
};

/// Fields of a communicator's configuration that this version of NCCL has; the others are left at its defaults.
void configure(nccl::Config &config, const NcclDimension &dimension, int version);

} // namespace drover::rt

#endif // DROVER_RT_LIB_COMM_NCCLPROCESS_H
