//===- cuda_module.cpp - the stand-in driver: modules and launches --------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Names of kernels hold a hash of their content, so a function is found by its name in the libraries that
// drover-emulate-kernels made of the program's modules (DROVER_EMU_KERNELS, with colons between them); of an image it
// is only looked at whether it is one.
#include "driver.h"
#include "emu.h"
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <map>
#include <sstream>

using namespace drover::standin;
using namespace drover::rt::cuda;

namespace {
struct Function {
  const drover_emu_kernel *kernel;
  uint32_t dynamicLimit = 48 << 10;
};
struct Module {
  std::vector<std::unique_ptr<Function>> functions;
};

/// The kernels of all libraries, opened once.
const std::map<std::string, const drover_emu_kernel *> &knownKernels() {
  static const auto *const known = [] {
    auto *kernels = new std::map<std::string, const drover_emu_kernel *>;
    const char *names = std::getenv("DROVER_EMU_KERNELS");
    std::istringstream list(names ? names : "");
    for (std::string file; std::getline(list, file, ':');) {
      void *library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
      const auto *table =
          static_cast<const drover_emu_library *>(library ? ::dlsym(library, DROVER_EMU_LIBRARY_SYMBOL) : nullptr);
      if (!table || table->version != DROVER_EMU_LIBRARY_VERSION) {
        const char *reason = ::dlerror();
        report("driver: no library of kernels: " + std::string(reason ? reason : file + " is of another version"));
        continue;
      }
      for (uint32_t i = 0; i < table->kernel_count; ++i)
        kernels->emplace(table->kernels[i].name, table->kernels + i);
    }
    return kernels;
  }();
  return *known;
}

/// A launch in flight: a copy of the arguments, as the driver makes one at the call.
struct Launch {
  const drover_emu_kernel *kernel;
  drover_emu_launch how;
  std::vector<std::vector<char>> bytes;
  std::vector<void *> pointers;
};

void touched(void *context, const void *base, size_t bytes, int written) {
  const auto *work = static_cast<const Work *>(context);
  Memory::instance().touch(*work, base, bytes, written != 0);
}
} // namespace

extern "C" {

int cuModuleLoadDataEx(Handle *handle, const void *image, unsigned options, int *names, void **values) {
  if (currentDevice() < 0)
    return InvalidContext;
  if (int code = refuseInCapture("cuModuleLoadDataEx"))
    return code;
  bool isCubin = std::memcmp(image, ELFMAG, SELFMAG) == 0;
  if (!isCubin && !std::strstr(static_cast<const char *>(image), ".version"))
    return InvalidPtx;
  *handle = new Module;
  return Success;
}

int cuModuleUnload(Handle module) {
  delete static_cast<Module *>(module);
  return Success;
}

int cuModuleGetFunction(Handle *handle, Handle module, const char *name) {
  auto found = knownKernels().find(name);
  if (found == knownKernels().end())
    return NotFound;
  auto *owner = static_cast<Module *>(module);
  owner->functions.push_back(std::make_unique<Function>());
  owner->functions.back()->kernel = found->second;
  *handle = owner->functions.back().get();
  return Success;
}

int cuFuncGetAttribute(int *value, int attribute, Handle handle) {
  const auto *function = static_cast<const Function *>(handle);
  if (attribute == StaticSharedBytes)
    *value = int(function->kernel->static_shared_bytes);
  else if (attribute == MaxDynamicSharedBytes)
    *value = int(function->dynamicLimit);
  else
    return InvalidValue;
  return Success;
}

int cuFuncSetAttribute(Handle handle, int attribute, int value) {
  auto *function = static_cast<Function *>(handle);
  if (attribute != MaxDynamicSharedBytes || value < 0 ||
      uint32_t(value) + function->kernel->static_shared_bytes > (227u << 10))
    return InvalidValue;
  function->dynamicLimit = uint32_t(value);
  return Success;
}

int cuLaunchKernel(Handle handle, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,
                   unsigned blockZ, unsigned shared, Handle streamHandle, void **arguments, void **extra) {
  const auto *function = static_cast<const Function *>(handle);
  Stream *stream = streamOf(streamHandle, "cuLaunchKernel");
  if (!stream)
    return InvalidHandle;
  const drover_emu_kernel &kernel = *function->kernel;
  auto refuse = [&](const std::string &why) {
    report("driver: launch of " + std::string(kernel.name) + ": " + why);
    return InvalidValue;
  };
  uint64_t threads = uint64_t(blockX) * blockY * blockZ;
  if (extra || !gridX || !gridY || !gridZ || !threads || threads > 1024)
    return refuse("no blocks, no threads, or more than 1024 of them");
  if (shared > function->dynamicLimit)
    return refuse(std::to_string(shared) + " bytes of shared memory, allowed are " +
                  std::to_string(function->dynamicLimit));
  auto launch = std::make_shared<Launch>();
  launch->kernel = &kernel;
  launch->how = {
      {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, shared, Engine::instance().drawSeed(), touched, nullptr};
  for (uint32_t i = 0; i < kernel.argument_count; ++i) {
    const char *from = static_cast<const char *>(arguments[i]);
    launch->bytes.emplace_back(from, from + kernel.arguments[i].bytes);
  }
  for (std::vector<char> &argument : launch->bytes)
    launch->pointers.push_back(argument.data());
  Engine::instance().enqueue(*stream, "kernel " + std::string(kernel.name) + " on " + describe(*stream),
                             [launch](const Work &work) {
                               launch->how.context = const_cast<Work *>(&work);
                               drover_emu_run(launch->kernel, &launch->how, launch->pointers.data());
                             });
  return Success;
}

} // extern "C"
