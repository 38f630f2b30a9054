//===- access.cpp - loads, stores and cp.async under checks -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "hooks.h"
#include "machine.h"
#include <cstring>
#include <sstream>

using namespace drover::emu;

/// Whether what the stamp tells of happened before anything that this thread does now.
/// `since` is the epoch in which the memory came to be: the launch's, and for shared memory the block's.
bool Machine::ordered(const Stamp &stamp, unsigned thread, uint32_t since) const {
  if (stamp.epoch < since)
    return true;
  if (stamp.blocks || stamp.epoch < blockEpoch)
    return false;
  if (stamp.epoch < epoch)
    return true;
  if (stamp.warps || stamp.thread / warpSize != thread / warpSize)
    return false;
  if (stamp.warpEpoch < (warps[thread / warpSize].epoch & 0x3ffff))
    return true;
  return !stamp.lanes && stamp.thread == thread;
}

Stamp Machine::stampOf(unsigned thread) const {
  Stamp stamp;
  stamp.epoch = epoch;
  stamp.thread = thread;
  stamp.warpEpoch = warps[thread / warpSize].epoch;
  return stamp;
}

/// Checks the cells of an access to `bytes` bytes at `offset` of the shadowed memory.
void Machine::checkCells(Shadow &shadow, size_t offset, uint32_t bytes, uint32_t flags, unsigned thread, bool shared,
                         uint32_t site) {
  if (!(checks & DROVER_EMU_CHECK_RACES))
    return;
  Cell *cells = shadow.cells();
  for (size_t i = offset >> kernel->granule, last = (offset + bytes - 1) >> kernel->granule; i <= last; ++i)
    checkOrder(cells[i], flags, thread, shared, shadow.base + (i << kernel->granule), site);
}

void Machine::checkOrder(Cell &cell, uint32_t flags, unsigned thread, bool shared, const void *at, uint32_t site) {
  uint32_t since = shared ? blockEpoch : launchEpoch;
  bool write = flags & DROVER_EMU_WRITE, atomic = flags & DROVER_EMU_ATOMIC;
  auto race = [&](const Stamp &other, const char *did) {
    std::ostringstream what;
    what << (write ? "write" : "read") << " of " << (shared ? "shared" : "global") << " memory races with a " << did;
    if (other.blocks || other.epoch < blockEpoch)
      what << " of another block";
    else
      what << " of thread " << other.thread;
    fault("race", site, thread, at, what.str());
  };
  if (!(atomic && cell.write.atomic) && !ordered(cell.write, thread, since))
    race(cell.write, "write");
  Stamp now = stampOf(thread);
  now.atomic = atomic;
  if (write) {
    if (!ordered(cell.read, thread, since))
      race(cell.read, "read");
    cell.write = now;
    return;
  }
  // The newest read stands for all earlier ones of the launch that it does not follow.
  const Stamp &old = cell.read;
  if (old.epoch >= since) {
    now.blocks = old.blocks || old.epoch < blockEpoch;
    if (!ordered(old, thread, since) && old.epoch == epoch) {
      now.warps = old.warps || old.thread / warpSize != thread / warpSize;
      now.lanes = old.lanes || old.thread != thread;
    }
  }
  cell.read = now;
}

/// Where an access goes that must not be made.
void *Machine::faultPlace(bool write) {
  if (!write)
    std::memset(scratch[0], 0xff, sizeof scratch[0]);
  return scratch[write];
}

void *Machine::access(void *address, uint32_t bytes, uint32_t flags, uint32_t alignment, int32_t argument,
                      uint32_t site) {
  char *at = static_cast<char *>(address);
  bool write = flags & DROVER_EMU_WRITE;
  bool shared = flags & DROVER_EMU_SHARED;
  if (!(flags & (DROVER_EMU_SHARED | DROVER_EMU_GLOBAL))) {
    if (threads[current]->fiber.holds(address))
      return address;
    shared = at >= sharedMemory.get() && at < sharedMemory.get() + maxSharedBytes;
  }
  if (reinterpret_cast<uintptr_t>(at) % alignment && (checks & DROVER_EMU_CHECK_ALIGN)) {
    std::ostringstream what;
    what << (write ? "write" : "read") << " of " << bytes << " bytes at an address that is no multiple of "
         << alignment;
    fault("align", site, current, at, what.str());
    return faultPlace(write);
  }
  return shared ? sharedAccess(at, bytes, flags, current, site) : globalAccess(at, bytes, flags, argument, site);
}

void *Machine::sharedAccess(char *at, uint32_t bytes, uint32_t flags, unsigned thread, uint32_t site) {
  bool write = flags & DROVER_EMU_WRITE;
  size_t offset = at - sharedMemory.get();
  if (at < sharedMemory.get() || offset > sharedBytes || bytes > sharedBytes - offset) {
    if (checks & DROVER_EMU_CHECK_BOUNDS) {
      std::ostringstream what;
      what << (write ? "write" : "read") << " of " << bytes << " bytes at offset " << at - sharedMemory.get() << " of "
           << sharedBytes << " bytes of shared memory";
      fault("bounds", site, thread, at, what.str());
    }
    return faultPlace(write);
  }
  if ((checks & DROVER_EMU_CHECK_ASYNC) && !inFlight.none(offset, bytes))
    fault("async", site, thread, at, "access to shared memory that a cp.async without a wait is to fill");
  if (write && (checks & DROVER_EMU_CHECK_ASYNC))
    for (size_t i = offset / chunkBytes; i <= (offset + bytes - 1) / chunkBytes; ++i)
      if (chunkReads[i]) {
        fault("async", site, thread, at, "write to shared memory that a wgmma without a wait reads");
        break;
      }
  if (write)
    noteGenericWrite(offset, bytes, thread);
  if (write)
    sharedShadow.written.set(offset, bytes);
  else if ((checks & DROVER_EMU_CHECK_INIT) && !sharedShadow.written.all(offset, bytes) && inFlight.none(offset, bytes))
    fault("init", site, thread, at, "read of shared memory that nobody wrote");
  checkCells(sharedShadow, offset, bytes, flags, thread, /*shared=*/true, site);
  return at;
}

/// The argument that an address of unknown origin lies in; where several do, one that may be written.
Region *Machine::findRegion(const char *at, uint32_t bytes, bool write) {
  Region *found = nullptr;
  for (Region &region : regions)
    if (region.shadow && region.holds(at, bytes) &&
        (!found || (write && (found->flags & DROVER_EMU_READONLY) && !(region.flags & DROVER_EMU_READONLY))))
      found = &region;
  return found;
}

void *Machine::globalAccess(char *at, uint32_t bytes, uint32_t flags, int32_t argument, uint32_t site) {
  bool write = flags & DROVER_EMU_WRITE;
  Region *region = argument >= 0 ? &regions[argument] : findRegion(at, bytes, write);
  auto refuse = [&](const std::string &why) {
    if (checks & DROVER_EMU_CHECK_BOUNDS) {
      std::ostringstream what;
      what << (write ? "write" : "read") << " of " << bytes << " bytes " << why;
      fault("bounds", site, current, at, what.str());
    }
    return faultPlace(write);
  };
  if (!region)
    return refuse("outside the extents of all arguments");
  if (!region->shadow || !region->holds(at, bytes)) {
    std::ostringstream why;
    if (region->shadow)
      why << "at offset " << at - region->base << " of argument " << region - regions.data() << ", which has "
          << region->extent << " bytes";
    else
      why << "through argument " << region - regions.data() << ", which points to no device memory";
    return refuse(why.str());
  }
  if (write && (region->flags & DROVER_EMU_READONLY))
    return refuse("through a readonly argument");
  (write ? counted.bytes_written : counted.bytes_read) += bytes;
  if (!region->touchedFrom || at < region->touchedFrom)
    region->touchedFrom = at;
  if (at + bytes > region->touchedTo)
    region->touchedTo = at + bytes;
  Shadow &shadow = *region->shadow;
  size_t offset = at - shadow.base;
  if (write && !(flags & DROVER_EMU_ATOMIC))
    shadow.written.set(offset, bytes);
  else if ((checks & DROVER_EMU_CHECK_INIT) && !shadow.written.all(offset, bytes))
    fault("init", site, current, at, "read of global memory that nobody wrote");
  checkCells(shadow, offset, bytes, flags, current, /*shared=*/false, site);
  return at;
}

void Machine::issueCopy(char *destination, const char *source, uint32_t bytes, uint32_t copied, int32_t argument,
                        uint32_t site) {
  auto misaligned = [&](const void *address) { return reinterpret_cast<uintptr_t>(address) % bytes != 0; };
  if ((checks & DROVER_EMU_CHECK_ALIGN) && (misaligned(destination) || misaligned(source))) {
    fault("align", site, current, misaligned(source) ? source : destination,
          "cp.async at an address that is no multiple of its size");
    return;
  }
  const char *from = source;
  if (copied)
    from = static_cast<char *>(globalAccess(const_cast<char *>(source), copied, DROVER_EMU_GLOBAL, argument, site));
  void *to = sharedAccess(destination, bytes, DROVER_EMU_WRITE | DROVER_EMU_SHARED, current, site);
  if (from != source || to != destination)
    return;
  size_t offset = destination - sharedMemory.get();
  sharedShadow.written.clear(offset, bytes);
  inFlight.set(offset, bytes);
  threads[current]->issued.push_back({destination, source, bytes, copied});
}

void Machine::commitCopies() {
  Thread &me = *threads[current];
  me.groups.push_back(std::move(me.issued));
  me.issued.clear();
}

/// Data arrives here and no earlier, so that a missing wait never works by luck.
void Machine::waitForCopies(uint32_t pending) {
  Thread &me = *threads[current];
  for (; me.groups.size() > pending; me.groups.pop_front())
    for (const AsyncCopy &copy : me.groups.front()) {
      std::memcpy(copy.destination, copy.source, copy.copied);
      std::memset(copy.destination + copy.copied, 0, copy.bytes - copy.copied);
      size_t offset = copy.destination - sharedMemory.get();
      inFlight.clear(offset, copy.bytes);
      sharedShadow.written.set(offset, copy.bytes);
      noteGenericWrite(offset, copy.bytes, current); // cp.async is of the generic proxy, cp.async.bulk is not
      if (!(checks & DROVER_EMU_CHECK_RACES))
        continue;
      // Others see the data after a barrier that follows the wait.
      Cell *cells = sharedShadow.cells();
      for (size_t i = offset >> kernel->granule; i <= (offset + copy.bytes - 1) >> kernel->granule; ++i)
        cells[i].write = stampOf(current);
    }
}

extern "C" {
void *drover_emu_access(void *address, uint32_t bytes, uint32_t flags, uint32_t alignment, int32_t argument,
                        uint32_t site) {
  return running->access(address, bytes, flags, alignment, argument, site);
}

void *drover_emu_shared() { return running->sharedBase(); }

uint32_t drover_emu_special_register(uint32_t which) { return running->registerValue(which); }

void drover_emu_barrier(uint32_t site) { running->barrier(site); }

void drover_emu_cp_async(void *shared, const void *global, uint32_t bytes, uint32_t copied, int32_t argument,
                         uint32_t site) {
  running->issueCopy(static_cast<char *>(shared), static_cast<const char *>(global), bytes, copied, argument, site);
}

void drover_emu_cp_async_commit(uint32_t) { running->commitCopies(); }

void drover_emu_cp_async_wait(uint32_t pending, uint32_t) { running->waitForCopies(pending); }
}
