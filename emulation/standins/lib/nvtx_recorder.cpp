//===- nvtx_recorder.cpp - a profiler that writes ranges down -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Named in NVTX_INJECTION64_PATH. DROVER_EMU_NVTX_LOG=FILE gets a line for each range: the domain, so many spaces as
// ranges it lies in, its text, once it has ended; ranges of one thread are therefore listed from the inside out.
// DROVER_EMU_NVTX=core: a profiler that knows ranges without domains only.
#include "trace/NvtxApi.h"
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

using namespace drover::rt::nvtx;

namespace {
std::mutex mutex;
thread_local std::vector<std::string> open;

int push(const std::string &domain, const char *text) {
  open.push_back(domain + ": " + std::string(open.size(), ' ') + text);
  return int(open.size()) - 1;
}

int pop() {
  if (open.empty())
    return -2;
  std::lock_guard<std::mutex> guard(mutex);
  const char *path = std::getenv("DROVER_EMU_NVTX_LOG");
  if (FILE *file = path ? std::fopen(path, "a") : nullptr) {
    std::fputs((open.back() + "\n").c_str(), file);
    std::fclose(file);
  }
  open.pop_back();
  return int(open.size());
}

Domain createDomain(const char *name) { return new std::string(name); }

int pushInDomain(Domain domain, const Attributes *attributes) {
  bool known = attributes->version == version && attributes->size == sizeof(Attributes) && attributes->messageType == 1;
  return push(*static_cast<std::string *>(domain), known ? attributes->message : "?");
}

int popInDomain(Domain domain) { return pop(); }
} // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(ExportTable exportTable) {
  const auto *info = static_cast<const VersionInfo *>(exportTable(VersionTable));
  const auto *callbacks = static_cast<const Callbacks *>(exportTable(CallbacksTable));
  if (!info || info->version != version || !callbacks || callbacks->size < sizeof(Callbacks))
    return 0;
  info->setInjectionVersion(version);
  Function **core = nullptr, **core2 = nullptr;
  unsigned size = 0;
  if (!callbacks->moduleFunctions(Core, &core, &size) || size != numFunctions[Core] || core[size] ||
      !callbacks->moduleFunctions(Core2, &core2, &size) || size != numFunctions[Core2] || core2[size])
    return 0;
  const char *kind = std::getenv("DROVER_EMU_NVTX");
  if (kind && std::string(kind) == "core") {
    *core[RangePushA] = reinterpret_cast<Function>(+[](const char *text) { return push("none", text); });
    *core[RangePop] = reinterpret_cast<Function>(pop);
    return 1;
  }
  *core2[DomainCreateA] = reinterpret_cast<Function>(createDomain);
  *core2[DomainRangePushEx] = reinterpret_cast<Function>(pushInDomain);
  *core2[DomainRangePop] = reinterpret_cast<Function>(popInDomain);
  return 1;
}
