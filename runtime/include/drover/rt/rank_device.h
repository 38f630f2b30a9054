//===- rank_device.h - a rank's device, as its interpreter uses it -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_RANK_DEVICE_H
#define DROVER_RT_RANK_DEVICE_H

#include "drover/rt/body_device.h"
#include "drover/rt/communicator.h"
#include "drover/rt/program.h"
#include <array>

namespace drover::rt {

/// Where a rank computes: the host, or its GPU with the program's kernels loaded, what bodies issue on, waits of the
/// host with a deadline, and copies between the device and memory of the host.
class RankDevice {
public:
  /// The host where the program has no kernels for a GPU; else the world's device, or the one of a rank that is alone.
  /// Loads the kernels and opens cuBLASLt. Throws Error that says what is missing.
  RankDevice(const Program &program, World &world);
  ~RankDevice();
  RankDevice(const RankDevice &) = delete;
  RankDevice &operator=(const RankDevice &) = delete;

  bool isHost() const { return device().isHost(); }
  Device &device() const { return *place; }
  Stream &stream(int which) const { return place->stream(drover_stream(which)); }
  /// drover_call.device of bodies on a stream; null on the host. Throws Error where none issue there.
  drover_device *bodies(int which) const;

  /// Memory for the tensors of bodies, which groups may gather in (World::openWindow). Collective over the ranks.
  DeviceMemory allocateTensors(int64_t bytes) const;

  /// Returns when `isDone` says so. Throws Error at the world's deadline, with what `describe` says, or where the
  /// device or another rank has failed.
  void wait(const std::function<bool()> &isDone, const std::function<std::string()> &describe) const;
  /// What is on the stream has happened.
  void finish(int which, const std::function<std::string()> &describe) const;

  /// Between memory of the device and ordinary memory of the host; done at return. After what is on the compute stream.
  void toHost(void *to, const void *from, int64_t bytes);
  void toDevice(void *to, const void *from, int64_t bytes);

  /// Bytes that the device had less free at the end of this call than when it was opened; 0 on the host.
  int64_t usedBytes() const;

  /// Of a GPU's products so far.
  MatmulAlgorithms algorithms;

private:
  void open(const Program &program);
  /// Calls `move` for each piece that fits the pinned memory.
  void inPieces(int64_t bytes, const std::function<void(int64_t offset, int64_t count)> &move);

  World &world;
  std::unique_ptr<Device> own;
  Device *place = nullptr;
  int64_t freeAtStart = 0;
  std::array<std::unique_ptr<drover_device>, DROVER_NUM_STREAMS> sides;
  DeviceMemory staged; // pinned
};

} // namespace drover::rt

#endif // DROVER_RT_RANK_DEVICE_H
