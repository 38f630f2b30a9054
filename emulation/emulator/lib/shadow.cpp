//===- shadow.cpp - device memory and what is known of it -------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "shadow.h"
#include "../emu.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <sys/mman.h>

using namespace drover::emu;

LazyMemory::LazyMemory(size_t bytes) : bytes(std::max<size_t>(bytes, 1)) {
  memory = mmap(nullptr, this->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "drover-emu: no address space for %zu bytes of shadow\n", bytes);
    std::abort();
  }
}

LazyMemory::~LazyMemory() { munmap(memory, bytes); }

/// The bits of a word that belong to bytes from .. from+count-1, of which the word holds `here`.
static uint64_t bitsOf(size_t from, size_t count, size_t &here) {
  size_t first = from % 64;
  here = std::min(count, 64 - first);
  return (here == 64 ? ~uint64_t(0) : ((uint64_t(1) << here) - 1)) << first;
}

void ByteSet::change(size_t from, size_t count, bool value) {
  for (size_t here; count; from += here, count -= here) {
    uint64_t bits = bitsOf(from, count, here), *at = word(from / 64);
    uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
    if (value && (old & bits) != bits)
      __atomic_fetch_or(at, bits, __ATOMIC_RELAXED);
    else if (!value && (old & bits) != 0)
      __atomic_fetch_and(at, ~bits, __ATOMIC_RELAXED);
  }
}

size_t ByteSet::find(size_t from, size_t count, bool value) const {
  size_t done = 0;
  for (size_t here; done < count; done += here) {
    uint64_t bits = bitsOf(from + done, count - done, here);
    uint64_t old = __atomic_load_n(word((from + done) / 64), __ATOMIC_RELAXED);
    if (uint64_t found = (value ? old : ~old) & bits)
      return done + __builtin_ctzll(found) - (from + done) % 64;
  }
  return count;
}

namespace {
struct Registry {
  std::shared_mutex mutex;
  std::map<uintptr_t, std::shared_ptr<Shadow>> allocations;
};

Registry &registry() {
  static Registry *instance = new Registry;
  return *instance;
}
} // namespace

std::shared_ptr<Shadow> drover::emu::findAllocation(const void *address) {
  Registry &from = registry();
  std::shared_lock<std::shared_mutex> lock(from.mutex);
  auto after = from.allocations.upper_bound(reinterpret_cast<uintptr_t>(address));
  if (after == from.allocations.begin())
    return nullptr;
  --after;
  return after->second->holds(address, 1) ? after->second : nullptr;
}

extern "C" {
void drover_emu_memory_add(void *base, size_t bytes) {
  Registry &to = registry();
  auto shadow = std::make_shared<Shadow>(static_cast<char *>(base), bytes);
  std::unique_lock<std::shared_mutex> lock(to.mutex);
  to.allocations[reinterpret_cast<uintptr_t>(base)] = std::move(shadow);
}

void drover_emu_memory_remove(void *base) {
  Registry &from = registry();
  std::unique_lock<std::shared_mutex> lock(from.mutex);
  from.allocations.erase(reinterpret_cast<uintptr_t>(base));
}

void drover_emu_memory_written(const void *base, size_t bytes) {
  auto shadow = findAllocation(base);
  if (shadow && shadow->holds(base, bytes))
    shadow->written.set(static_cast<const char *>(base) - shadow->base, bytes);
}

const void *drover_emu_memory_unwritten(const void *base, size_t bytes) {
  auto shadow = findAllocation(base);
  if (!shadow || !shadow->holds(base, bytes))
    return nullptr;
  size_t at = shadow->written.find(static_cast<const char *>(base) - shadow->base, bytes, false);
  return at == bytes ? nullptr : static_cast<const char *>(base) + at;
}

void drover_emu_memory_copied(const void *destination, const void *source, size_t bytes) {
  auto to = findAllocation(destination), from = findAllocation(source);
  if (!to || !to->holds(destination, bytes))
    return;
  size_t at = static_cast<const char *>(destination) - to->base;
  if (!from || !from->holds(source, bytes)) { // the host's memory
    to->written.set(at, bytes);
    return;
  }
  size_t other = static_cast<const char *>(source) - from->base;
  for (size_t done = 0; done < bytes;) {
    bool written = from->written.all(other + done, 1);
    size_t run = from->written.find(other + done, bytes - done, !written);
    if (written)
      to->written.set(at + done, run);
    else
      to->written.clear(at + done, run);
    done += run;
  }
}
}
