//===- Places.cpp - where ranks are, against the plan ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "comm/NcclSettings.h"
#include "drover/rt/error.h"
#include "drover/rt/rank_plan.h"
#include "drover/rt/topology.h"
#include <algorithm>

namespace drover::rt {

namespace {
/// By level of the plan the unit of each rank; no units where nothing says them.
using UnitsByLevel = std::vector<std::vector<std::string>>;

UnitsByLevel unitsOf(const std::vector<std::string> &levels, const std::vector<std::string> &hosts,
                     const Topology *topology) {
  UnitsByLevel units(levels.size());
  units.front() = hosts;
  if (!topology)
    return units;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    auto server = topology->servers.find(hosts[rank]);
    if (server == topology->servers.end())
      fail(topology->file, ": no line for '", hosts[rank], "', where rank ", rank, " is");
    for (size_t column = 1; column < topology->levels.size(); ++column) {
      size_t level = size_t(std::find(levels.begin(), levels.end(), topology->levels[column]) - levels.begin());
      units[level].push_back(server->second[column]);
    }
  }
  return units;
}

std::string shortList(const std::vector<int32_t> &ranks) {
  constexpr size_t shown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(ranks.size(), shown); ++i)
    text += concat(i ? ", " : "", ranks[i]);
  return ranks.size() > shown ? concat(text, ", .. (", ranks.size(), ")") : text;
}

/// The units that a group lies in, with its ranks there.
std::string describeUnits(const GroupPlan &group, const std::vector<std::string> &units) {
  std::map<std::string, std::vector<int32_t>> ranksOf;
  for (int32_t rank : group.members)
    ranksOf[units[size_t(rank)]].push_back(rank);
  constexpr size_t shown = 4;
  std::string text;
  size_t count = 0;
  for (const auto &[unit, ranks] : ranksOf)
    if (++count <= shown)
      text += concat(count > 1 ? "; " : "", unit, ": ", shortList(ranks));
  return count > shown ? text + "; .." : text;
}

/// Units of a group, where all of it is known.
int64_t countUnits(const GroupPlan &group, const std::vector<std::string> &units) {
  std::vector<std::string_view> own;
  for (int32_t rank : group.members)
    own.push_back(units[size_t(rank)]);
  std::sort(own.begin(), own.end());
  return std::unique(own.begin(), own.end()) - own.begin();
}
} // namespace

/// What the plan promised; of no cluster where it promised nothing.
static NcclSettings promiseOf(const Program &program) {
  return program.ncclSettings.empty() ? NcclSettings() : parseNcclSettings(program.ncclSettings, "nccl settings");
}

static std::optional<std::string> findMisplaced(const Program &program, const NcclSettings &promise,
                                                const std::vector<std::string> &hosts, const Topology *topology) {
  if (promise.cluster.empty())
    return std::nullopt;
  UnitsByLevel units = unitsOf(promise.levels, hosts, topology);
  for (int64_t rank = 0; rank < program.grid.ranks(); ++rank)
    for (const GroupPlan &group : RankPlan(program, rank).groups) {
      // The world is spread as its groups are.
      bool counts = group.members.front() == rank && group.id != DROVER_COMM_WORLD;
      const NcclDimension *dimension = counts ? promise.find(group.id) : nullptr;
      for (size_t level = 0; dimension && level < units.size(); ++level) {
        auto promised = dimension->units.find(promise.levels[level]);
        if (units[level].empty() || promised == dimension->units.end())
          continue;
        int64_t found = countUnits(group, units[level]);
        if (found > promised->second)
          return concat("the ", group.name, " group of ranks ", shortList(group.members), " lies in ", found,
                        " units of level '", promise.levels[level], "' (", describeUnits(group, units[level]),
                        "), where the plan for cluster ", promise.cluster, " promised ", promised->second,
                        ": start ranks in order, server by server, or compile for where they are");
      }
    }
  return std::nullopt;
}

std::optional<std::string> findMisplacedGroup(const Program &program, const std::vector<std::string> &hosts,
                                              const Topology *topology) {
  return findMisplaced(program, promiseOf(program), hosts, topology);
}

void checkPlaces(const Program &program, const std::string &topologyFile, World &world) {
  if (!topologyFile.empty() && std::string_view(world.backend()) != "nccl")
    fail("--topology=", topologyFile, ": backend ", world.backend(), " does not say where ranks are; expected nccl");
  NcclSettings promise = promiseOf(program);
  if (promise.cluster.empty()) {
    if (!topologyFile.empty())
      fail("--topology=", topologyFile,
           ": the program was compiled without --cluster=, so there is no placement to hold it against");
    return;
  }
  std::vector<std::string> hosts = world.hosts();
  if (hosts.empty() || world.rank() != 0)
    return;
  std::optional<Topology> topology;
  if (!topologyFile.empty())
    topology = parseTopology(readText(topologyFile), topologyFile, promise.levels);
  if (std::optional<std::string> fault = findMisplaced(program, promise, hosts, topology ? &*topology : nullptr))
    fail(*fault);
}

} // namespace drover::rt
