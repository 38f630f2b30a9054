//===- RankSurvey.cpp - the plans of all ranks of a program ---------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/flight_recorder.h"
#include "drover/rt/hash.h"
#include "drover/rt/rank_survey.h"
#include "drover/rt/slot_guard.h"
#include "drover/rt/text.h"
#include <algorithm>

namespace drover::rt {

namespace {
/// What ranks say of the groups of one communicator id.
class KindCheck {
public:
  KindCheck(int32_t id, std::string name, int64_t ranks) : id(id), name(std::move(name)), toldBy(size_t(ranks)) {}

  void add(const GroupPlan &group, int64_t rank);
  /// `belongs`: whether a rank must be in a group.
  GroupKind finish(const std::function<bool(int64_t)> &belongs) const;

private:
  /// A rank's list by its first member, its length, and a number that other lists are unlikely to have.
  struct Told {
    int32_t first = -1;
    int64_t size = 0;
    uint64_t hash = 0;
  };

  int32_t id;
  std::string name;
  std::vector<Told> toldBy;                     // by rank
  std::map<int32_t, std::vector<int32_t>> list; // by first member
};
} // namespace

static uint64_t hashOf(const std::vector<int32_t> &members) {
  Fnv1a hash;
  for (int32_t member : members)
    hash.mix(uint64_t(uint32_t(member)));
  return hash.value();
}

void KindCheck::add(const GroupPlan &group, int64_t rank) {
  if (!std::binary_search(group.members.begin(), group.members.end(), int32_t(rank)))
    fail("communicator ", id, " (", name, "): rank ", rank, " is no member of the group it is told");
  toldBy[size_t(rank)] = {group.members.front(), int64_t(group.members.size()), hashOf(group.members)};
  if (group.members.front() == rank)
    list[int32_t(rank)] = group.members;
}

GroupKind KindCheck::finish(const std::function<bool(int64_t)> &belongs) const {
  GroupKind kind{name, int64_t(list.size()), 0};
  for (int64_t rank = 0; rank < int64_t(toldBy.size()); ++rank) {
    const Told &told = toldBy[size_t(rank)];
    if ((told.first >= 0) != belongs(rank))
      fail("communicator ", id, " (", name, "): rank ", rank, " is in ", told.first >= 0 ? "a group" : "no group");
    if (told.first < 0)
      continue;
    const Told &first = toldBy[size_t(told.first)];
    if (first.first != told.first || first.size != told.size || first.hash != told.hash)
      fail("communicator ", id, " (", name, "): ranks ", rank, " and ", told.first, " are told different members");
  }
  // Each member of a list is told that list, so that no rank is in two.
  for (const auto &[first, members] : list) {
    for (int32_t member : members)
      if (toldBy[size_t(member)].first != first)
        fail("communicator ", id, " (", name, "): rank ", member, " is in the groups of ranks ", first, " and ",
             toldBy[size_t(member)].first);
    if (kind.members && kind.members != int64_t(members.size()))
      fail("communicator ", id, " (", name, "): groups of ", kind.members, " and of ", members.size());
    kind.members = int64_t(members.size());
  }
  return kind;
}

/// Whether the ranks of a stage have a group of a listed communicator; of one with a fixed id all have.
static bool isForStage(const Program &program, int32_t id, int64_t stage) {
  for (const ListedCommunicator &listed : program.communicators)
    if (listed.id == id)
      return std::find(listed.stages.begin(), listed.stages.end(), stage) != listed.stages.end();
  return true;
}

/// Members of a fsdp group own the shards 0, 1, .. in their order.
static void checkShard(const RankPlan &plan) {
  for (const GroupPlan &group : plan.groups)
    if (group.id == DROVER_COMM_FSDP &&
        (plan.fsdpSize != int64_t(group.members.size()) || group.members[size_t(plan.fsdpIndex)] != plan.rank))
      fail("rank ", plan.rank, " has shard ", plan.fsdpIndex, " of ", plan.fsdpSize,
           ", which is not its place among the ", group.members.size(), " ranks of its fsdp group");
}

/// The list of a rank's stage with its places, as the interpreter holds it.
static int64_t bytesOf(const RankPlan &plan, const std::vector<StageInfo> &stages) {
  int64_t bytes = int64_t(sizeof(RankPlan));
  for (const GroupPlan &group : plan.groups)
    bytes += int64_t(sizeof(GroupPlan) + group.name.size() + group.members.size() * sizeof(int32_t));
  for (const StageInfo &stage : stages)
    bytes += int64_t(sizeof(StageInfo) + (stage.bindings.size() + stage.buckets.size()) * sizeof(Binding) +
                     stage.waits.size() * sizeof(uint32_t) + size_t(stage.numActions) * sizeof(drover_action));
  return bytes;
}

RankSurvey surveyRanks(const Program &program, const std::function<RankPlan(int64_t)> &planOf) {
  RankSurvey survey;
  survey.ranks = program.grid.ranks();
  std::map<int32_t, KindCheck> checks;
  int64_t start = monotonicNs();
  for (int64_t rank = 0; rank < survey.ranks; ++rank) {
    int64_t begin = monotonicNs();
    RankPlan plan = planOf(rank);
    SlotGuard guard(program, plan.stage, {});
    std::vector<StageInfo> stages;
    for (const BatchInfo &batch : program.batches)
      stages.push_back(guard.relocate(batch.stages[size_t(plan.stage)]));
    survey.slowest = std::max(survey.slowest, double(monotonicNs() - begin) * 1e-9);
    survey.planBytes = std::max(survey.planBytes, bytesOf(plan, stages));
    survey.memoryBytes =
        std::max(survey.memoryBytes, program.arenaBytes(plan.stage) + program.workspaceBytes(plan.stage));
    if (!std::is_sorted(plan.groups.begin(), plan.groups.end(),
                        [](const GroupPlan &a, const GroupPlan &b) { return a.id < b.id; }))
      fail("rank ", rank, " creates its groups out of the order of their ids");
    checkShard(plan);
    for (const GroupPlan &group : plan.groups)
      checks.try_emplace(group.id, group.id, group.name, survey.ranks).first->second.add(group, rank);
  }
  for (const auto &[id, check] : checks)
    survey.kinds[id] = check.finish(
        [&, id = id](int64_t rank) { return isForStage(program, id, program.grid.coordinates(rank)[DROVER_AXIS_PP]); });
  survey.seconds = double(monotonicNs() - start) * 1e-9;
  return survey;
}

RankSurvey surveyRanks(const Program &program) {
  return surveyRanks(program, [&](int64_t rank) { return RankPlan(program, rank); });
}

std::string describe(const RankSurvey &survey) {
  char seconds[96];
  std::snprintf(seconds, sizeof(seconds), "%.2f s, the slowest in %.4f s", survey.seconds, survey.slowest);
  std::string text = concat(survey.ranks, " ranks planned in ", seconds, "; at most ", formatBytes(survey.planBytes),
                            " a plan, ", formatBytes(survey.memoryBytes), " of arena and workspace\n");
  for (const auto &[id, kind] : survey.kinds)
    text += concat("communicator ", id, " (", kind.name, "): ", kind.groups,
                   kind.groups == 1 ? " group" : " disjoint groups", " of ", kind.members, "\n");
  return text;
}

} // namespace drover::rt
