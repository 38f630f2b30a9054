//===- Env.cpp - NCCL's environment plugin, by the compiler's settings ----===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// NCCL has put what its own configuration files say into the environment by the time it asks: both go before ours.
#include "PluginSettings.h"
#include "nccl_plugins.h"
#include <cstdlib>

using namespace drover::rt;

namespace {
int start(uint8_t, uint8_t, uint8_t, const char *) { return 0; }

int finish() { return 0; }

const char *get(const char *variable) {
  if (const char *own = std::getenv(variable))
    return own;
  if (const NcclSettings *settings = pluginSettings().settings)
    for (const NcclVariable &each : settings->environment)
      if (each.name == variable)
        return each.value.c_str();
  return nullptr;
}
} // namespace

extern "C" {
extern __attribute__((visibility("default"))) const drover_nccl_env_v1 ncclEnvPlugin_v1;
const drover_nccl_env_v1 ncclEnvPlugin_v1 = {"drover", start, finish, get};
}
