//===- topology.h - where ranks are, against the plan -----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// docs/nccl.md, Where ranks are.
#ifndef DROVER_RT_TOPOLOGY_H
#define DROVER_RT_TOPOLOGY_H

#include "drover/rt/communicator.h"
#include "drover/rt/program.h"

namespace drover::rt {

/// A file of servers with their racks, pods, ..
struct Topology {
  std::string file;
  std::vector<std::string> levels;                         // of the columns, innermost first
  std::map<std::string, std::vector<std::string>> servers; // units by level, the server's own name first
};
/// `levels` are those that the columns may have, innermost first. Throws Error, located.
Topology parseTopology(const std::string &text, const std::string &file, const std::vector<std::string> &levels);

/// What is wrong with the places of a program's ranks: the first group that lies in more units of a level than its plan
/// promises. `hosts` are the servers by rank; `topology` may be null. Nothing where all is as promised, or nothing was.
std::optional<std::string> findMisplacedGroup(const Program &program, const std::vector<std::string> &hosts,
                                              const Topology *topology);

/// Collective: holds where the ranks are against the plan, with a topology file where one is given. Throws Error.
void checkPlaces(const Program &program, const std::string &topologyFile, World &world);

} // namespace drover::rt

#endif // DROVER_RT_TOPOLOGY_H
