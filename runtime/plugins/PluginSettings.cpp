//===- PluginSettings.cpp - the settings that a plugin works by -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "PluginSettings.h"
#include "drover/rt/error.h"
#include "nccl_plugins.h"
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>

using namespace drover::rt;

namespace {
std::mutex mutex;
bool known = false;
std::unique_ptr<NcclSettings> owned;
PluginSettings current;

/// Under the mutex. Nothing may be thrown into NCCL.
template <typename Read> void take(Read read) noexcept {
  known = true;
  current = {};
  try {
    owned = std::make_unique<NcclSettings>(read());
    current.settings = owned.get();
  } catch (const std::exception &error) {
    current.problem = error.what();
  }
}
} // namespace

const PluginSettings &drover::rt::pluginSettings() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!known)
    take([]() -> NcclSettings {
      const char *path = std::getenv(ncclSettingsVariable);
      if (!path || !*path)
        fail("no settings: ", ncclSettingsVariable, " names no file");
      return readNcclSettings(path);
    });
  return current;
}

extern "C" __attribute__((visibility("default"))) const char *drover_nccl_use_settings(const char *text, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  take([&] { return parseNcclSettings(std::string(text, bytes), "nccl settings"); });
  return current.problem.empty() ? nullptr : current.problem.c_str();
}
