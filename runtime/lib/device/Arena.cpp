//===- Arena.cpp - memory of a rank ---------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/arena.h"
#include "drover/rt/error.h"
#include "drover/rt/text.h"
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace drover::rt {

static constexpr uint64_t hugePage = 2 << 20;

Arena::Arena(int64_t size) : bytes(size) {
  if (size == 0)
    return;
  uint64_t slack = uint64_t(size) >= hugePage ? hugePage : 0;
  mappedBytes = uint64_t(size) + slack;
  mapping = ::mmap(nullptr, mappedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    mapping = nullptr;
    fail("cannot allocate ", formatBytes(size), ": ", std::strerror(errno));
  }
  base = static_cast<uint8_t *>(mapping);
  if (slack) {
    base += (hugePage - reinterpret_cast<uintptr_t>(base) % hugePage) % hugePage;
    ::madvise(base, uint64_t(size), MADV_HUGEPAGE); // advice only
  }
}

Arena::~Arena() {
  if (mapping)
    ::munmap(mapping, mappedBytes);
}

} // namespace drover::rt
