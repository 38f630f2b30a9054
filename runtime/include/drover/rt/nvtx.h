//===- nvtx.h - ranges in a profiler's timeline -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Nsight Systems and others set NVTX_INJECTION64_PATH in a process that they look at; without it a range costs a test
// of a flag.
#ifndef DROVER_RT_NVTX_H
#define DROVER_RT_NVTX_H

#include <string>

namespace drover::rt {

/// Whether a profiler listens. Throws Error where it cannot be loaded.
bool nvtxListens();

/// What the thread does until the object's end, in domain "drover".
class NvtxRange {
public:
  /// `describe` makes the range's text, and is called where somebody listens only.
  template <typename Fn> explicit NvtxRange(Fn &&describe) : pushed(nvtxListens()) {
    if (pushed)
      push(describe());
  }
  ~NvtxRange() {
    if (pushed)
      pop();
  }
  NvtxRange(const NvtxRange &) = delete;
  NvtxRange &operator=(const NvtxRange &) = delete;

private:
  static void push(const std::string &text);
  static void pop();
  bool pushed;
};

} // namespace drover::rt

#endif // DROVER_RT_NVTX_H
