//===- RankContext.cpp - a rank among the others --------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/mapped_file.h"
#include "drover/rt/rank_context.h"
#include "drover/rt/sha256.h"
#include <cstdlib>
#include <string_view>

namespace drover::rt {

RankContext::RankContext(const Program &program, World &world)
    : program(program), world(world), plan(program, world.rank()) {
  if (world.size() != program.grid.ranks())
    fail("a world of ", world.size(), " ranks for a program of ", program.grid.ranks());
  for (const GroupPlan &group : plan.groups) {
    groups.push_back(world.createCommunicator(group.id, group.name, {group.members.begin(), group.members.end()}));
    handles.set(group.id, groups.back().get());
    if (group.id == DROVER_COMM_WORLD) // first of all: what follows is read off the program
      compareExecutables();
  }
}

/// A number that no other program has, nor, where ranks are processes, the program in another executable: bodies are
/// code.
static int64_t identityOf(const Program &program, const World &world) {
  uint64_t identity = std::stoull(program.hash, nullptr, 16);
  const char *mayDiffer = std::getenv("DROVER_RT_ANY_EXECUTABLE");
  bool isOneFile = std::string_view(world.backend()) == "inproc" || (mayDiffer && mayDiffer[0] == '1');
  if (!isOneFile) {
    MappedFile executable("/proc/self/exe");
    identity ^= std::stoull(sha256(executable.data(), uint64_t(executable.size())).substr(0, 16), nullptr, 16);
  }
  return int64_t(identity);
}

/// What is proven of a program is true where all ranks run that one.
void RankContext::compareExecutables() const {
  std::vector<int64_t> identities = all(identityOf(program, world));
  for (size_t other = 0; other < identities.size(); ++other)
    if (identities[other] != identities[0])
      fail("rank ", other, " runs another program than rank 0: expected one executable on all ranks");
}

double RankContext::sum(double value) const {
  if (Communicator *group = worldGroup())
    group->allReduce(&value, &value, 1, DROVER_F64, ReduceOp::Sum).wait();
  return value;
}

int64_t RankContext::sum(int64_t value) const {
  if (Communicator *group = worldGroup())
    group->allReduce(&value, &value, 1, DROVER_I64, ReduceOp::Sum).wait();
  return value;
}

int64_t RankContext::maximum(int64_t value) const {
  if (Communicator *group = worldGroup())
    group->allReduce(&value, &value, 1, DROVER_I64, ReduceOp::Max).wait();
  return value;
}

std::vector<int64_t> RankContext::all(int64_t value) const {
  std::vector<int64_t> values(size_t(world.size()), value);
  if (Communicator *group = worldGroup())
    group->allGather(&value, values.data(), DROVER_I64, {1, 1, 1, false}).wait();
  return values;
}

/// A JSON list: what the rank issued, by communicator, kind and dtype.
std::string describeCounts(const RankContext &rank) {
  std::string list;
  for (const auto &[key, count] : rank.world.counts()) {
    const auto &[id, kind, dtype] = key;
    const Communicator *group = rank.find(id);
    list += concat(list.empty() ? "" : ", ", "{\"communicator\": ", id, ", \"name\": \"", group ? group->name() : "",
                   "\", \"kind\": \"", operationName(kind), "\", \"dtype\": \"", dtypeName(dtype),
                   "\", \"count\": ", count.operations, ", \"bytes\": ", count.bytes, ", \"sent\": ", count.sent, "}");
  }
  return "[" + list + "]";
}

} // namespace drover::rt
