//===- PluginSettings.h - the settings that a plugin works by ---*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_PLUGINS_PLUGINSETTINGS_H
#define DROVER_RT_PLUGINS_PLUGINSETTINGS_H

#include "comm/NcclSettings.h"

namespace drover::rt {

/// Those that the process has handed over, else those of the file that the variable names. Read once; they stay to the
/// end of the process.
struct PluginSettings {
  const NcclSettings *settings = nullptr; // null: none, or not usable
  std::string problem;                    // why there are none; empty where all is well
};
const PluginSettings &pluginSettings();

} // namespace drover::rt

#endif // DROVER_RT_PLUGINS_PLUGINSETTINGS_H
