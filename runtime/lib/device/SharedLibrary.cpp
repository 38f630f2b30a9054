//===- SharedLibrary.cpp - a library of the machine's ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "device/SharedLibrary.h"
#include "drover/rt/error.h"
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>

namespace drover::rt {

/// Where the loader has it from; the name that was asked for where it does not say.
static std::string placeOf(void *library, const std::string &asked) {
  link_map *map = nullptr;
  bool known = ::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name;
  return known ? map->l_name : asked;
}

void setVariable(const char *name, const char *value) {
  if (!std::getenv(name))
    ::setenv(name, value, 0);
}

SharedLibrary::SharedLibrary(const LibraryNames &names, const std::string &asked) : what(names.what) {
  std::vector<std::string> candidates = names.usual;
  const char *variable = std::getenv(names.variable);
  if (!asked.empty())
    candidates = {asked};
  else if (variable && *variable)
    candidates = {variable};
  std::string tried;
  for (const std::string &candidate : candidates) {
    library = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) {
      name = placeOf(library, candidate);
      return;
    }
    const char *reason = ::dlerror();
    tried += concat("\n  ", candidate, ": ", reason ? reason : "cannot be opened");
  }
  const char *path = std::getenv("LD_LIBRARY_PATH");
  fail(what, ": library not found; ", names.advice, ", add its folder to LD_LIBRARY_PATH (now ",
       path && *path ? path : "empty", "), or name the file in ", names.variable, "; tried", tried);
}

void *SharedLibrary::find(const char *symbol) const {
  void *address = ::dlsym(library, symbol);
  if (!address)
    fail(what, ": ", name, " has no ", symbol, ": a newer version is needed");
  return address;
}

} // namespace drover::rt
