//===- tracked_memory.cpp - allocations, and who touched what when --------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "tracked_memory.h"
#include "emu.h"
#include <cstring>
#include <sys/mman.h>

namespace drover::standin {

static constexpr size_t page = 4096;

void report(const std::string &line) { drover_emu_report(line.c_str()); }

Memory &Memory::instance() {
  static Memory *memory = new Memory;
  return *memory;
}

/// Between two pages that nobody may touch. Device memory starts as NaNs: what is read before it is written shows.
void *Memory::allocate(size_t bytes, int device) {
  size_t rounded = (bytes + page - 1) / page * page;
  std::lock_guard<std::mutex> guard(mutex);
  if (device != hostMemory && totals[device] + bytes > deviceBytes)
    return nullptr;
  void *mapping = ::mmap(nullptr, rounded + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return nullptr;
  char *base = static_cast<char *>(mapping) + page;
  if (::mprotect(base, rounded, PROT_READ | PROT_WRITE) != 0)
    return nullptr;
  constexpr size_t poisoned = size_t(64) << 20; // a whole arena would be resident
  if (device != hostMemory)
    std::memset(base, 0xff, std::min(bytes, poisoned));
  allocations[reinterpret_cast<uintptr_t>(base)] = {bytes, device, count++, {}};
  totals[device] += bytes;
  drover_emu_memory_add(base, bytes);
  if (device == hostMemory)
    drover_emu_memory_written(base, bytes);
  return base;
}

bool Memory::release(void *base, bool pinned) {
  std::lock_guard<std::mutex> guard(mutex);
  auto found = allocations.find(reinterpret_cast<uintptr_t>(base));
  if (found == allocations.end() || pinned != (found->second.device == hostMemory))
    return false;
  drover_emu_memory_remove(base);
  totals[found->second.device] -= found->second.bytes;
  ::munmap(static_cast<char *>(base) - page, (found->second.bytes + page - 1) / page * page + 2 * page);
  allocations.erase(found);
  return true;
}

Memory::Allocations::iterator Memory::holding(const void *base, size_t bytes) {
  auto address = reinterpret_cast<uintptr_t>(base);
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin())
    return allocations.end();
  --after;
  size_t offset = address - after->first;
  bool inside = offset <= after->second.bytes && bytes <= after->second.bytes - offset;
  return inside ? after : allocations.end();
}

bool Memory::find(const void *base, size_t bytes, int &device) const {
  std::lock_guard<std::mutex> guard(mutex);
  auto found = const_cast<Memory *>(this)->holding(base, bytes);
  if (found == allocations.end())
    return false;
  device = found->second.device;
  return true;
}

bool Memory::isKnown(const void *base) const {
  int device;
  return find(base, 1, device);
}

size_t Memory::allocated(int device) const {
  std::lock_guard<std::mutex> guard(mutex);
  auto found = totals.find(device);
  return found == totals.end() ? 0 : found->second;
}

//===----------------------------------------------------------------------===//
// Races
//===----------------------------------------------------------------------===//

/// Makes `at` the first byte of a span, where it lies in one.
void Memory::splitAt(std::map<uintptr_t, Span> &spans, uintptr_t at) {
  auto after = spans.upper_bound(at);
  if (after == spans.begin())
    return;
  auto &[begin, span] = *std::prev(after);
  if (begin == at || span.end <= at)
    return;
  Span upper = span;
  span.end = at;
  spans.emplace_hint(after, at, std::move(upper));
}

/// False where the access races; `conflict` says with what.
bool Memory::touchSpan(const Work &work, Span &span, const std::shared_ptr<const std::string> &what, bool written,
                       std::string &conflict) {
  bool ordered = true;
  auto check = [&](const Access &earlier, const char *verb) {
    if (earlier.tick <= work.clock.at(earlier.actor))
      return;
    ordered = false;
    conflict = *earlier.what + " " + verb;
  };
  check(span.write, "writes");
  if (written) {
    for (const Access &read : span.reads)
      check(read, "reads");
    span.write = {work.actor, work.tick, what};
    span.reads.clear();
    return ordered;
  }
  for (Access &read : span.reads)
    if (read.actor == work.actor) {
      read = {work.actor, work.tick, what};
      return ordered;
    }
  span.reads.push_back({work.actor, work.tick, what});
  return ordered;
}

bool Memory::touch(const Work &work, const void *base, size_t bytes, bool written) {
  if (bytes == 0)
    return true;
  std::lock_guard<std::mutex> guard(mutex);
  auto found = holding(base, bytes);
  std::string verb = written ? " writes " : " reads ";
  if (found == allocations.end()) {
    report("memory: " + work.what + verb + std::to_string(bytes) + " bytes outside of what is allocated");
    return false;
  }
  auto &spans = found->second.spans;
  uintptr_t begin = reinterpret_cast<uintptr_t>(base), end = begin + bytes;
  splitAt(spans, begin);
  splitAt(spans, end);
  auto what = std::make_shared<const std::string>(work.what);
  std::string conflict;
  uintptr_t at = begin;
  for (auto span = spans.lower_bound(begin); at < end; ++span) {
    if (span == spans.end() || span->first > at) { // nobody was here yet
      uintptr_t until = span == spans.end() ? end : std::min(end, span->first);
      span = spans.emplace_hint(span, at, Span{until, {}, {}});
    }
    if (!touchSpan(work, span->second, what, written, conflict)) {
      uintptr_t from = span->first - found->first;
      report("race: " + work.what + verb + "bytes " + std::to_string(from) + " to " +
             std::to_string(span->second.end - found->first) + " of allocation " +
             std::to_string(found->second.number) + ", which " + conflict + ", and nothing orders the two");
    }
    at = span->second.end;
  }
  return true;
}

} // namespace drover::standin
