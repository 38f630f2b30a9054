//===- NcclSettings.h - how NCCL is set up for a program --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The file that the compiler writes (docs/nccl.md), as the runtime and the plugins read it.
#ifndef DROVER_RT_LIB_COMM_NCCLSETTINGS_H
#define DROVER_RT_LIB_COMM_NCCLSETTINGS_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace drover::rt {

/// A line of the tuner's table. Numbers are NCCL's (plugins/nccl_plugins.h).
struct NcclRule {
  int collective = 0;
  std::optional<uint64_t> upToBytes; // of the whole tensor; absent: any size
  int algorithm = 0, protocol = 0, channels = 1;
  uint64_t chunkBytes = 0; // 0: NCCL's own

  bool operator==(const NcclRule &other) const {
    return collective == other.collective && upToBytes == other.upToBytes && algorithm == other.algorithm &&
           protocol == other.protocol && channels == other.channels && chunkBytes == other.chunkBytes;
  }
};

/// Communicators that are set up alike.
struct NcclDimension {
  std::string name;
  std::vector<int64_t> ids;
  int64_t members = 1;
  std::map<std::string, int64_t> units;  // by level: that a group lies in
  std::map<std::string, int64_t> fields; // of ncclConfig_t, by their names in the file
  std::vector<NcclRule> rules;
};

struct NcclVariable {
  std::string name, value, reason;
};

struct NcclSettings {
  std::string cluster, note;
  std::vector<std::string> levels; // innermost first
  std::vector<NcclDimension> dimensions;
  std::vector<NcclVariable> environment;

  const NcclDimension *find(int64_t id) const;
  /// Units of the innermost level, servers; 0: not known.
  int64_t serversOf(const NcclDimension &dimension) const;
};

/// `source` names the text in errors. Throws Error.
NcclSettings parseNcclSettings(const std::string &text, const std::string &source);
NcclSettings readNcclSettings(const std::string &path);
/// What a file holds. Throws Error.
std::string readText(const std::string &path);

/// Names a file that takes the place of what was compiled in.
constexpr const char *ncclSettingsVariable = "DROVER_RT_NCCL_SETTINGS";

} // namespace drover::rt

#endif // DROVER_RT_LIB_COMM_NCCLSETTINGS_H
