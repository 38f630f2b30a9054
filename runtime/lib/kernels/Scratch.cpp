//===- Scratch.cpp - per-thread buffers of the kernels --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "kernels/Scratch.h"

#include "drover/rt/fatal.h"
#include "drover/rt/kernels.h"

#include <atomic>
#include <cstdlib>

using namespace drover::rt;

namespace {

std::atomic<int64_t> heldBytes{0}, peakBytes{0};

void account(int64_t change) {
  const int64_t held = heldBytes.fetch_add(change) + change;
  int64_t peak = peakBytes.load();
  while (held > peak && !peakBytes.compare_exchange_weak(peak, held)) {
  }
}

struct Buffer {
  Buffer() = default;
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  ~Buffer() { release(); }

  void release() {
    std::free(data);
    account(-bytes);
    data = nullptr;
    bytes = 0;
  }

  float *grow(int64_t floats) {
    // Whole pages, so that sizes that differ a little do not reallocate.
    const int64_t wanted = (floats * int64_t(sizeof(float)) + 4095) / 4096 * 4096;
    if (wanted > bytes) {
      release();
      data = static_cast<float *>(std::aligned_alloc(4096, wanted));
      if (!data)
        fatal("out of memory: %lld bytes for the buffers of a kernel", static_cast<long long>(wanted));
      bytes = wanted;
      account(bytes);
    }
    return data;
  }

  float *data = nullptr;
  int64_t bytes = 0;
};

thread_local Buffer buffers[static_cast<int>(ScratchUse::Count)];

} // namespace

float *drover::rt::threadScratch(ScratchUse use, int64_t floats) { return buffers[static_cast<int>(use)].grow(floats); }

int64_t drover::rt::kernelScratchBytes() { return heldBytes.load(); }

int64_t drover::rt::kernelScratchPeakBytes() { return peakBytes.load(); }
