//===- nccl_window.cpp - the stand-in NCCL: registered memory -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Windows change nothing in what operations do here. It is checked that all members register as much in one order, of
// memory that ncclMemAlloc gave, that buffers of a gather lie at one place of them on all members, and that nothing
// goes while it is registered.
#include "nccl_group.h"
#include <cstdio>
#include <cstdlib>
#include <set>

using namespace drover::standin;
using namespace drover::rt::nccl;

#define DROVER_DECLARE(result, member, symbol, parameters) extern "C" result symbol parameters;
DROVER_NCCL_WINDOW_FUNCTIONS(DROVER_DECLARE)
#undef DROVER_DECLARE

namespace {
std::mutex mutex;
std::map<void *, int> allocated; // how many windows are there
} // namespace

int64_t drover::standin::placeInWindow(const Comm &comm, const void *buffer) {
  constexpr int64_t apart = int64_t(1) << 44;
  for (size_t i = 0; i < comm.windows.size(); ++i) {
    const Comm::Window &window = comm.windows[i];
    const char *base = static_cast<const char *>(window.base), *at = static_cast<const char *>(buffer);
    if (window.open && at >= base && at < base + window.bytes)
      return int64_t(i) * apart + (at - base);
  }
  return -1;
}

extern "C" {

int ncclMemAlloc(void **memory, size_t bytes) {
  *memory = currentDevice() < 0 || bytes == 0 ? nullptr : Memory::instance().allocate(bytes, currentDevice());
  if (!*memory)
    return UnhandledCudaError;
  std::lock_guard<std::mutex> guard(mutex);
  allocated[*memory] = 0;
  return Success;
}

int ncclMemFree(void *memory) {
  {
    std::lock_guard<std::mutex> guard(mutex);
    auto found = allocated.find(memory);
    if (found == allocated.end())
      return InvalidArgument;
    if (found->second > 0)
      report("nccl: memory is given back before its windows are");
    allocated.erase(found);
  }
  return Memory::instance().release(memory, false) ? Success : InvalidArgument;
}

int ncclCommWindowRegister(Handle handle, void *base, size_t bytes, Handle *window, int flags) {
  Comm &comm = *static_cast<Comm *>(handle);
  {
    std::lock_guard<std::mutex> guard(mutex);
    auto found = allocated.find(base);
    if (found == allocated.end() || flags != windowIsSymmetric) {
      report("nccl: a window that is not symmetric, or not of what ncclMemAlloc gave");
      return InvalidArgument;
    }
    ++found->second;
  }
  std::lock_guard<std::mutex> guard(Engine::instance().lock());
  size_t number = comm.windows.size();
  comm.windows.push_back({base, bytes, true});
  if (comm.group->windowBytes.size() <= number)
    comm.group->windowBytes.push_back(bytes);
  if (comm.group->windowBytes[number] != bytes && comm.group->failure.empty())
    comm.group->failure = "members register windows of " + std::to_string(bytes) + " and " +
                          std::to_string(comm.group->windowBytes[number]) + " bytes in one place";
  *window = reinterpret_cast<Handle>(number + 1); // NOLINT(performance-no-int-to-ptr)
  const char *path = std::getenv("DROVER_EMU_NCCL_LOG");
  if (FILE *file = path && *path ? std::fopen(path, "a") : nullptr) {
    std::fprintf(file, "{\"name\": \"%s\", \"rank\": %d, \"window_bytes\": %zu}\n", comm.name.c_str(), comm.rank,
                 bytes);
    std::fclose(file);
  }
  return comm.group->failure.empty() ? Success : InvalidUsage;
}

int ncclCommWindowDeregister(Handle handle, Handle window) {
  Comm &comm = *static_cast<Comm *>(handle);
  size_t number = reinterpret_cast<uintptr_t>(window) - 1;
  void *base;
  {
    std::lock_guard<std::mutex> guard(Engine::instance().lock());
    if (number >= comm.windows.size() || !comm.windows[number].open)
      return InvalidArgument;
    comm.windows[number].open = false;
    base = comm.windows[number].base;
    if (comm.inFlight)
      report("nccl: a window goes with operations in flight");
  }
  std::lock_guard<std::mutex> guard(mutex);
  --allocated[base];
  return Success;
}

} // extern "C"
