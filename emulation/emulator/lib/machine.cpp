//===- machine.cpp - launches, blocks and their threads ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "machine.h"
#include "faults.h"
#include "hooks.h"
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <numeric>
#include <sstream>

using namespace drover::emu;

namespace drover::emu {
thread_local Machine *running __attribute__((tls_model("initial-exec"))) = nullptr;
} // namespace drover::emu

namespace {
std::atomic<uint32_t> epochs{1};

std::mutex countersMutex;
drover_emu_counters totals = {};
} // namespace

void Machine::Free::operator()(char *memory) const { std::free(memory); }

Machine::Machine()
    : sharedMemory(static_cast<char *>(std::aligned_alloc(1024, (maxSharedBytes + 1023) / 1024 * 1024))),
      sharedShadow(sharedMemory.get(), maxSharedBytes), inFlight(maxSharedBytes) {
  if (!sharedMemory)
    std::abort();
}

uint64_t Machine::random() { // xorshift64
  randomState ^= randomState << 13;
  randomState ^= randomState >> 7;
  randomState ^= randomState << 17;
  return randomState;
}

uint64_t Machine::run(const drover_emu_kernel &what, const drover_emu_launch &how, void **values) {
  kernel = &what;
  launch = &how;
  arguments = values;
  checks = enabledChecks();
  faults = 0;
  abandoned = false;
  counted = {};
  randomState = how.seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du;
  if (randomState == 0)
    randomState = 1;
  random();
  threadCount = how.block.x * how.block.y * how.block.z;
  sharedBytes = what.static_shared_bytes + how.dynamic_shared_bytes;
  std::ostringstream limits;
  if (threadCount == 0 || threadCount > maxThreads || (what.max_threads && threadCount > what.max_threads))
    limits << "launched with " << threadCount << " threads a block, at most "
           << (what.max_threads ? what.max_threads : maxThreads) << " are allowed";
  else if (sharedBytes > maxSharedBytes || sharedBytes < what.shared_bytes)
    limits << "launched with " << sharedBytes << " bytes of shared memory, needs " << what.shared_bytes
           << " and at most " << maxSharedBytes << " are there";
  if (!limits.str().empty()) {
    fault("launch", ~0u, -1, nullptr, limits.str());
    return faults;
  }
  launchEpoch = epochs.fetch_add(1, std::memory_order_relaxed) + 1;
  resolveArguments(values);

  Machine *outer = running;
  running = this;
  std::vector<uint32_t> order(size_t(how.grid.x) * how.grid.y * how.grid.z);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random() % i]);
  for (uint32_t index : order) {
    runBlock({index % how.grid.x, index / how.grid.x % how.grid.y, index / how.grid.x / how.grid.y});
    if (abandoned)
      break;
  }
  running = outer;
  reportTouched();
  regions.clear();
  std::lock_guard<std::mutex> lock(countersMutex);
  totals.bytes_read += counted.bytes_read;
  totals.bytes_written += counted.bytes_written;
  totals.switches += counted.switches;
  totals.warp_operations += counted.warp_operations;
  totals.barriers += counted.barriers;
  totals.blocks += counted.blocks;
  totals.flops += counted.flops;
  return faults;
}

void Machine::resolveArguments(void **values) {
  regions.assign(kernel->argument_count, Region());
  for (uint32_t i = 0; i < kernel->argument_count; ++i) {
    const drover_emu_argument &argument = kernel->arguments[i];
    Region &region = regions[i];
    region.flags = argument.flags;
    if (!(argument.flags & DROVER_EMU_POINTER))
      continue;
    std::memcpy(&region.base, values[i], sizeof region.base);
    region.shadow = findAllocation(region.base);
    if (!region.shadow)
      continue;
    uint64_t rest = region.shadow->bytes - (region.base - region.shadow->base);
    region.extent = argument.extent ? argument.extent : rest;
    if (region.extent <= rest)
      continue;
    if (checks & DROVER_EMU_CHECK_BOUNDS) {
      std::ostringstream what;
      what << "argument " << i << " promises " << region.extent << " bytes, its allocation ends after " << rest;
      fault("bounds", ~0u, -1, region.base, what.str());
    }
    region.extent = rest;
  }
  if (!(checks & DROVER_EMU_CHECK_BOUNDS))
    return;
  for (uint32_t i = 0; i < regions.size(); ++i)
    for (uint32_t j = 0; j < i; ++j) {
      const Region &a = regions[i], &b = regions[j];
      bool promised =
          ((a.flags | b.flags) & DROVER_EMU_NOALIAS) && kernel->arguments[i].extent && kernel->arguments[j].extent;
      bool written = !(a.flags & DROVER_EMU_READONLY) || !(b.flags & DROVER_EMU_READONLY);
      if (promised && written && a.extent && b.extent && a.base < b.base + b.extent && b.base < a.base + a.extent) {
        std::ostringstream what;
        what << "arguments " << j << " and " << i << " overlap, and one of them is noalias";
        fault("bounds", ~0u, -1, a.base, what.str());
      }
    }
}

void Machine::runBlock(drover_emu_dim at) {
  block = at;
  ++counted.blocks;
  blockEpoch = epoch = epochs.fetch_add(1, std::memory_order_relaxed) + 1;
  std::memset(sharedMemory.get(), 0xff, sharedBytes);
  sharedShadow.written.clear(0, sharedBytes);
  inFlight.clear(0, sharedBytes);
  std::fill_n(chunkReads.begin(), (sharedBytes + chunkBytes - 1) / chunkBytes, 0);
  std::fill_n(genericWrites.begin(), (sharedBytes + 3) / 4, GenericWrite());
  std::memset(scratch, 0xff, sizeof scratch);
  startThreads();
  while (liveThreads && !abandoned) {
    if (ready.empty()) {
      deadlock();
      abandoned = true;
      break;
    }
    current = takeReady();
    threads[current]->fiber.resume(main);
  }
}

void Machine::startThreads() {
  while (threads.size() < threadCount)
    threads.push_back(std::make_unique<Thread>());
  warps.assign((threadCount + warpSize - 1) / warpSize, Warp());
  warpgroups.assign((threadCount + 127) / 128, WarpgroupGathering());
  liveThreads = threadCount;
  atBarrier = 0;
  ready.clear();
  for (unsigned i = 0; i < threadCount; ++i) {
    Thread &thread = *threads[i];
    thread.state = Thread::Ready;
    thread.issued.clear();
    thread.groups.clear();
    thread.issuedProducts.clear();
    thread.productGroups.clear();
    thread.sums.clear();
    thread.registersFenced = false;
    thread.proxyFences.clear();
    thread.fiber.reset(threadMain);
    warps[i / warpSize].live |= 1u << i % warpSize;
    ready.push_back(i);
  }
}

void Machine::threadMain() {
  Machine &self = *running;
  self.threads[self.current]->fiber.entered();
  self.kernel->thread(self.arguments);
  running->threadEnded();
  std::abort(); // a thread that has ended is never resumed
}

void Machine::threadEnded() {
  Thread &me = *threads[current];
  me.state = Thread::Done;
  warps[current / warpSize].live &= ~(1u << current % warpSize);
  --liveThreads;
  if (!me.issued.empty() && (checks & DROVER_EMU_CHECK_ASYNC))
    fault("async", ~0u, current, me.issued.front().destination, "a cp.async was never committed");
  if ((!me.issuedProducts.empty() || !me.productGroups.empty()) && (checks & DROVER_EMU_CHECK_ASYNC))
    fault("async", ~0u, current, nullptr, "a wgmma was never waited for");
  if (liveThreads && atBarrier == liveThreads) {
    if (checks & DROVER_EMU_CHECK_BARRIER)
      fault("barrier", barrierSite, current, nullptr, "this thread returned, others wait at the barrier");
    abandonBlock();
  }
  yield();
}

void Machine::abandonBlock() {
  abandoned = true;
  ++counted.switches;
  main.resume(threads[current]->fiber);
  std::abort();
}

unsigned Machine::takeReady() {
  size_t at = random() % ready.size();
  unsigned next = ready[at];
  ready[at] = ready.back();
  ready.pop_back();
  return next;
}

/// Goes on in another thread of the block; returns when this one has been made ready and was drawn.
void Machine::yield() {
  Thread &me = *threads[current];
  ++counted.switches;
  if (ready.empty()) {
    main.resume(me.fiber);
    return;
  }
  current = takeReady();
  Thread &next = *threads[current];
  if (&next != &me)
    next.fiber.resume(me.fiber);
}

void Machine::barrier(uint32_t site) {
  if (atBarrier == 0)
    barrierSite = site;
  else if (barrierSite != site) {
    if (checks & DROVER_EMU_CHECK_BARRIER) {
      std::string other = barrierSite < kernel->site_count ? kernel->sites[barrierSite] : "another place";
      fault("barrier", site, current, nullptr, "divergent barrier: other threads wait in " + other);
    }
    abandonBlock();
  }
  if (++atBarrier < liveThreads) {
    threads[current]->state = Thread::AtBarrier;
    threads[current]->site = site;
    yield();
    return;
  }
  if (liveThreads != threadCount && (checks & DROVER_EMU_CHECK_BARRIER))
    fault("barrier", site, current, nullptr, "some threads of the block have returned before this barrier");
  releaseBarrier();
}

void Machine::releaseBarrier() {
  atBarrier = 0;
  ++counted.barriers;
  epoch = epochs.fetch_add(1, std::memory_order_relaxed) + 1;
  for (unsigned i = 0; i < threadCount; ++i)
    if (threads[i]->state == Thread::AtBarrier) {
      threads[i]->state = Thread::Ready;
      ready.push_back(i);
    }
}

void Machine::deadlock() {
  std::ostringstream what;
  unsigned barrierCount = 0, warpCount = 0;
  uint32_t barrierAt = ~0u, warpAt = ~0u;
  for (unsigned i = 0; i < threadCount; ++i) {
    if (threads[i]->state == Thread::AtBarrier)
      ++barrierCount, barrierAt = threads[i]->site;
    else if (threads[i]->state == Thread::InWarpOperation)
      ++warpCount, warpAt = threads[i]->site;
  }
  what << "no thread can go on: " << barrierCount << " of " << threadCount << " wait at a barrier, " << warpCount
       << " in a warp operation";
  if (barrierCount && warpCount && barrierAt < kernel->site_count)
    what << " (barrier: " << kernel->sites[barrierAt] << ")";
  fault("barrier", warpCount ? warpAt : barrierAt, -1, nullptr, what.str());
}

void Machine::reportTouched() {
  if (!launch->touched)
    return;
  for (const Region &region : regions) {
    if (!region.shadow)
      continue;
    // Without the cells of the race check: what the arguments promise.
    if (!(checks & DROVER_EMU_CHECK_RACES)) {
      launch->touched(launch->context, region.base, region.extent, !(region.flags & DROVER_EMU_READONLY));
      continue;
    }
    if (!region.touchedFrom)
      continue;
    size_t granule = size_t(1) << kernel->granule;
    size_t from = (region.touchedFrom - region.shadow->base) >> kernel->granule;
    size_t to = (region.touchedTo - region.shadow->base + granule - 1) >> kernel->granule;
    const Cell *cells = region.shadow->cells();
    for (int written = 0; written < 2; ++written)
      for (size_t i = from; i < to; ++i) {
        auto hit = [&](const Cell &cell) { return (written ? cell.write : cell.read).epoch >= launchEpoch; };
        if (!hit(cells[i]))
          continue;
        size_t start = i;
        while (i < to && hit(cells[i]))
          ++i;
        launch->touched(launch->context, region.shadow->base + (start << kernel->granule),
                        (i - start) << kernel->granule, written);
      }
  }
}

void Machine::fault(const char *check, uint32_t site, int thread, const void *at, const std::string &what) {
  ++faults;
  std::string place = site < kernel->site_count ? kernel->sites[site] : "";
  std::ostringstream key, line;
  key << kernel->name << '|' << check << '|' << site << '|' << (site == ~0u ? what : "");
  line << "kernel " << kernel->name << ": " << check << ": " << what << ": block (" << block.x << ',' << block.y << ','
       << block.z << ')';
  if (thread >= 0) {
    const drover_emu_dim &shape = launch->block;
    line << ", thread (" << thread % shape.x << ',' << thread / shape.x % shape.y << ',' << thread / shape.x / shape.y
         << ')';
  }
  if (at)
    line << ", address " << at;
  if (!place.empty())
    line << ", in " << place;
  reportFault(key.str(), line.str());
}

uint32_t Machine::registerValue(uint32_t which) const {
  const drover_emu_dim &shape = launch->block, &grid = launch->grid;
  switch (which) {
  case DROVER_EMU_TID_X:
    return current % shape.x;
  case DROVER_EMU_TID_Y:
    return current / shape.x % shape.y;
  case DROVER_EMU_TID_Z:
    return current / shape.x / shape.y;
  case DROVER_EMU_NTID_X:
    return shape.x;
  case DROVER_EMU_NTID_Y:
    return shape.y;
  case DROVER_EMU_NTID_Z:
    return shape.z;
  case DROVER_EMU_CTAID_X:
    return block.x;
  case DROVER_EMU_CTAID_Y:
    return block.y;
  case DROVER_EMU_CTAID_Z:
    return block.z;
  case DROVER_EMU_NCTAID_X:
    return grid.x;
  case DROVER_EMU_NCTAID_Y:
    return grid.y;
  case DROVER_EMU_NCTAID_Z:
    return grid.z;
  case DROVER_EMU_LANEID:
    return current % warpSize;
  case DROVER_EMU_WARPID:
    return current / warpSize;
  case DROVER_EMU_NWARPID:
    return (threadCount + warpSize - 1) / warpSize;
  default:
    return warpSize;
  }
}

extern "C" {
uint64_t drover_emu_run(const drover_emu_kernel *kernel, const drover_emu_launch *launch, void **arguments) {
  // Kept for its stacks.
  static thread_local std::unique_ptr<Machine> machine;
  if (!machine)
    machine = std::make_unique<Machine>();
  return machine->run(*kernel, *launch, arguments);
}

void drover_emu_flops(uint32_t count) { running->addFlops(count); }

void drover_emu_read_counters(drover_emu_counters *counters) {
  std::lock_guard<std::mutex> lock(countersMutex);
  *counters = totals;
}
}
