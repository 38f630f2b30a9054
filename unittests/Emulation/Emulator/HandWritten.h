//===- HandWritten.h - kernels in C++ for the emulator's tests --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_EMULATION_HANDWRITTEN_H
#define DROVER_UNITTESTS_EMULATION_HANDWRITTEN_H

#include "emu.h"
#include "hooks.h"
#include "gtest/gtest.h"
#include <cstring>
#include <string>
#include <vector>

namespace drover::emu::test {

/// Device memory of T for a test: registered while it lives.
template <typename T> struct DeviceArray {
  explicit DeviceArray(size_t count, bool written = true) : values(count) {
    drover_emu_memory_add(values.data(), count * sizeof(T));
    if (written)
      drover_emu_memory_written(values.data(), count * sizeof(T));
  }
  ~DeviceArray() { drover_emu_memory_remove(values.data()); }
  T *data() { return values.data(); }
  std::vector<T> values;
};

/// A pointer argument of a kernel with its promises.
template <typename T> drover_emu_argument pointer(size_t count, uint32_t flags = 0) {
  return {8, DROVER_EMU_POINTER | flags, count * sizeof(T)};
}

/// A kernel in C++ and its launch; all kernels of a test share the sites "site 0" .. "site 9".
struct Launcher {
  explicit Launcher(void (*thread)(void **), std::vector<drover_emu_argument> arguments = {}, uint32_t granule = 2)
      : arguments(std::move(arguments)) {
    static const char *const sites[] = {"site 0", "site 1", "site 2", "site 3", "site 4",
                                        "site 5", "site 6", "site 7", "site 8", "site 9"};
    kernel = {"hand_written", thread, nullptr, sites, 0, 10, 0, 0, 0, granule};
  }

  uint64_t run(std::vector<void *> pointers, unsigned blocks, unsigned threads, unsigned sharedBytes = 0,
               uint64_t seed = 1) {
    kernel.arguments = arguments.data();
    kernel.argument_count = arguments.size();
    std::vector<void *> addresses;
    for (void *&value : pointers)
      addresses.push_back(&value);
    drover_emu_launch launch = {{blocks, 1, 1}, {threads, 1, 1}, sharedBytes, seed, touched, context};
    return drover_emu_run(&kernel, &launch, addresses.data());
  }

  drover_emu_kernel kernel;
  std::vector<drover_emu_argument> arguments;
  drover_emu_touched touched = nullptr;
  void *context = nullptr;
};

template <typename T> T &argument(void **arguments, unsigned index) { return *static_cast<T *>(arguments[index]); }

inline unsigned threadIndex() { return drover_emu_special_register(DROVER_EMU_TID_X); }
inline unsigned blockIndex() { return drover_emu_special_register(DROVER_EMU_CTAID_X); }

template <typename T> void store(T *to, T value, uint32_t site, int argument = -1, uint32_t flags = 0) {
  std::memcpy(drover_emu_access(to, sizeof(T), DROVER_EMU_WRITE | flags, alignof(T), argument, site), &value,
              sizeof value);
}
template <typename T> T load(const T *from, uint32_t site, int argument = -1, uint32_t flags = 0) {
  T value;
  std::memcpy(&value, drover_emu_access(const_cast<T *>(from), sizeof(T), flags, alignof(T), argument, site),
              sizeof value);
  return value;
}

/// The log is empty before each test; faults of a test are looked for in it.
class EmulatorTest : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("DROVER_EMU_QUIET", "1", 1);
    drover_emu_set_checks(~0u);
    drover_emu_clear_faults();
  }
  void TearDown() override { drover_emu_clear_faults(); }

  static std::string faults() {
    std::string all;
    for (uint64_t i = 0; const char *line = drover_emu_fault(i); ++i)
      all += std::string(line) + "\n";
    return all;
  }
};

/// Passes when the log names the fault.
#define EXPECT_FAULT(text)                                                                                             \
  EXPECT_NE(faults().find(text), std::string::npos) << "looked for: " << (text) << "\nfound: " << faults()

} // namespace drover::emu::test

#endif // DROVER_UNITTESTS_EMULATION_HANDWRITTEN_H
