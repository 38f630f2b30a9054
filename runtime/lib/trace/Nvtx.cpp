//===- Nvtx.cpp - ranges in a profiler's timeline -------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/nvtx.h"
#include "drover/rt/error.h"
#include "trace/NvtxApi.h"
#include <cstdlib>
#include <dlfcn.h>
#include <iterator>

namespace drover::rt {

using namespace nvtx;

namespace {
constexpr unsigned mostFunctions = 16;
constexpr int numModules = int(std::size(numFunctions));

/// The functions of one module, which the profiler's library fills in; behind its places is an empty one.
struct Functions {
  template <typename Type> Type get(unsigned which) const { return reinterpret_cast<Type>(functions[which]); }

  Function functions[mostFunctions] = {};
  Function *places[mostFunctions + 1] = {};
};

Functions modules[numModules];
const Functions &core = modules[Core], &core2 = modules[Core2];

int moduleFunctions(int module, Function ***table, unsigned *size) {
  if (module < Core || module >= numModules)
    return 0;
  Functions &known = modules[module];
  for (unsigned i = 1; i < numFunctions[module]; ++i)
    known.places[i] = known.functions + i;
  if (table)
    *table = known.places;
  if (size)
    *size = numFunctions[module];
  return 1;
}

const Callbacks callbacks = {sizeof(Callbacks), moduleFunctions};
const VersionInfo versionInfo = {sizeof(VersionInfo), nvtx::version, 0, [](uint32_t) {}};

const void *exportTable(uint32_t table) {
  return table == CallbacksTable ? static_cast<const void *>(&callbacks)
         : table == VersionTable ? &versionInfo
                                 : nullptr;
}

struct Profiler {
  Profiler() {
    const char *path = std::getenv(injectionVariable);
    if (!path || !*path)
      return;
    void *library = ::dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    auto initialize = library ? reinterpret_cast<Initialize>(::dlsym(library, injectionSymbol)) : nullptr;
    if (!initialize) {
      const char *reason = ::dlerror();
      fail(injectionVariable, "=", path, ": ", reason ? reason : "no such function");
    }
    if (initialize(exportTable) == 0)
      fail(injectionVariable, "=", path, ": ", injectionSymbol, " fails");
    if (auto create = core2.get<Domain (*)(const char *)>(DomainCreateA))
      domain = create("drover");
    listens = (domain && core2.functions[DomainRangePushEx] && core2.functions[DomainRangePop]) ||
              (core.functions[RangePushA] && core.functions[RangePop]);
  }

  Domain domain = nullptr; // null: ranges without one
  bool listens = false;
};

const Profiler &profiler() {
  static const Profiler it;
  return it;
}
} // namespace

bool nvtxListens() { return profiler().listens; }

void NvtxRange::push(const std::string &text) {
  if (!profiler().domain) {
    core.get<int (*)(const char *)>(RangePushA)(text.c_str());
    return;
  }
  Attributes attributes;
  attributes.message = text.c_str();
  core2.get<int (*)(Domain, const Attributes *)>(DomainRangePushEx)(profiler().domain, &attributes);
}

void NvtxRange::pop() {
  if (profiler().domain)
    core2.get<int (*)(Domain)>(DomainRangePop)(profiler().domain);
  else
    core.get<int (*)()>(RangePop)();
}

} // namespace drover::rt
