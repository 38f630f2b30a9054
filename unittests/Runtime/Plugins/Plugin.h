//===- Plugin.h - a plugin as NCCL loads it ---------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_RUNTIME_PLUGINS_PLUGIN_H
#define DROVER_UNITTESTS_RUNTIME_PLUGINS_PLUGIN_H

#include "nccl_plugins.h"
#include "gtest/gtest.h"
#include <dlfcn.h>
#include <string>

namespace drover::rt::test {

class Plugin {
public:
  explicit Plugin(const char *path) : library(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (!library)
      ADD_FAILURE() << ::dlerror();
  }
  ~Plugin() {
    if (library)
      ::dlclose(library);
  }

  template <typename T> T *find(const char *symbol) const {
    void *address = library ? ::dlsym(library, symbol) : nullptr;
    EXPECT_NE(address, nullptr) << symbol;
    return reinterpret_cast<T *>(address);
  }
  /// What is wrong with the settings; empty: nothing.
  std::string use(const std::string &settings) const {
    const char *problem =
        find<const char *(const char *, size_t)>("drover_nccl_use_settings")(settings.data(), settings.size());
    return problem ? problem : "";
  }

private:
  void *library;
};

/// Two communicators that differ in shape, and two that don't.
inline std::string testSettings() {
  auto dimension = [](const char *name, int id, int members, int servers, const std::string &rules) {
    return "{\"name\": \"" + std::string(name) + "\", \"ids\": [" + std::to_string(id) +
           "], \"members\": " + std::to_string(members) +
           ", \"groups\": 1, \"units\": {\"server\": " + std::to_string(servers) +
           ", \"pod\": 1}, \"settings\": {}, \"tuner\": [" + rules + "]}";
  };
  auto rule = [](const char *collective, const char *limit, const char *algorithm, const char *protocol, int channels,
                 int chunk) {
    return "{\"collective\": \"" + std::string(collective) + "\", \"up_to_bytes\": " + limit + ", \"algorithm\": \"" +
           algorithm + "\", \"protocol\": \"" + protocol + "\", \"channels\": " + std::to_string(channels) +
           ", \"chunk_bytes\": " + std::to_string(chunk) + "}";
  };
  return "{\"format\": 1, \"cluster\": \"test\", \"note\": \"\", \"levels\": [{\"name\": \"server\", \"gpus\": 8}, "
         "{\"name\": \"pod\", \"gpus\": 64}], \"environment\": [{\"name\": \"NCCL_COMM_ID\", \"value\": "
         "\"127.0.0.1:23456\", \"reason\": \"a test\"}], \"communicators\": [" +
         dimension("tp", 1, 8, 1,
                   rule("all_gather", "65536", "ring", "ll", 2, 0) + "," +
                       rule("all_gather", "null", "ring", "simple", 24, 0) + "," +
                       rule("all_reduce", "1048576", "tree", "ll128", 4, 0) + "," +
                       rule("all_reduce", "null", "nvls", "simple", 16, 0)) +
         "," + dimension("fsdp", 5, 16, 16, rule("reduce_scatter", "null", "ring", "simple", 2, 1048576)) + "," +
         dimension("cp", 4, 4, 4, rule("all_gather", "null", "ring", "ll128", 2, 0)) + "," +
         dimension("dp", 6, 4, 4, rule("all_gather", "null", "ring", "simple", 2, 0)) + "]}";
}

} // namespace drover::rt::test

#endif // DROVER_UNITTESTS_RUNTIME_PLUGINS_PLUGIN_H
