//===- TestDevice.h - the CUDA device on the stand-in driver ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_RUNTIME_DEVICE_TESTDEVICE_H
#define DROVER_UNITTESTS_RUNTIME_DEVICE_TESTDEVICE_H

#include "../TestFiles.h"
#include "drover/rt/device.h"
#include "emu.h"
#include "standins.h"
#include <cstdlib>

namespace drover::rt::test {

/// The log of what the emulator and the stand-ins found, from here on.
class FaultLog {
public:
  FaultLog() {
    ::setenv("DROVER_EMU_QUIET", "1", 1);
    drover_emu_clear_faults();
  }
  ~FaultLog() { drover_emu_clear_faults(); }
  /// The first line, or nothing.
  std::string first() const { return drover_emu_fault(0) ? drover_emu_fault(0) : ""; }
};

inline std::unique_ptr<Device> openStandin(int ordinal = 0) {
  ::setenv("DROVER_EMU_DEVICES", "8", 1);
  CudaOptions options;
  options.library = DROVER_STANDIN_CUDA;
  options.ordinal = ordinal;
  return openCudaDevice(options);
}

inline void finish(Device &device, Stream &stream) {
  ASSERT_TRUE(device.finish(stream, std::chrono::steady_clock::now() + std::chrono::seconds(30)));
}

} // namespace drover::rt::test

#endif // DROVER_UNITTESTS_RUNTIME_DEVICE_TESTDEVICE_H
