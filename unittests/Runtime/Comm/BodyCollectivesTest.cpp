//===- BodyCollectivesTest.cpp - collectives of compiled bodies -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "../TestFiles.h"
#include "Ranks.h"

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

constexpr int32_t noPlace[DROVER_NUM_AXES] = {};

drover_collective describe(int kind, int64_t outer, int64_t local, int64_t inner, int communicator = DROVER_COMM_TP) {
  drover_collective collective = {};
  collective.communicator = communicator;
  collective.kind = kind;
  collective.dtype = DROVER_F32;
  collective.outer = outer;
  collective.local = local;
  collective.inner = inner;
  return collective;
}

struct Rank {
  explicit Rank(World &world) : group(world.createCommunicator(DROVER_COMM_TP, "tp", ranksBelow(world.size()))) {
    communicators.set(DROVER_COMM_TP, group.get());
    call.coordinates = noPlace;
    call.communicators = &communicators;
  }
  std::unique_ptr<Communicator> group;
  drover_communicators communicators;
  drover_call call = {};
};

TEST(BodyCollectives, AllKindsThroughTheAbi) {
  std::vector<std::string> errors = runThreads(2, Timing::Late, [](World &world) {
    Rank rank(world);
    float r = float(world.rank()), part[4] = {r, r + 10, r + 20, r + 30}, whole[8], sums[4], scattered[4];
    drover_collective gather = describe(DROVER_ALL_GATHER, 2, 1, 2), reduce = describe(DROVER_ALL_REDUCE, 2, 1, 2),
                      scatter = describe(DROVER_REDUCE_SCATTER, 2, 1, 2);
    drover_rt_collective_start(&rank.call, &gather, part, whole, 0);
    drover_rt_collective_start(&rank.call, &reduce, part, sums, 5);
    drover_rt_collective_wait(&rank.call, 0);
    drover_rt_collective_start(&rank.call, &scatter, whole, scattered, 0);
    drover_rt_collective_wait(&rank.call, 5);
    drover_rt_collective_wait(&rank.call, 0);
    rank.communicators.check();
    EXPECT_EQ(std::vector<float>(whole, whole + 8), (std::vector<float>{0, 10, 1, 11, 20, 30, 21, 31}));
    EXPECT_EQ(std::vector<float>(sums, sums + 4), (std::vector<float>{1, 21, 41, 61}));
    std::vector<float> expected = {2 * r, 2 * r + 20, 2 * r + 40, 2 * r + 60};
    EXPECT_EQ(std::vector<float>(scattered, scattered + 4), expected);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// As a ring of chunks does it: two buffers that take turns.
TEST(BodyCollectives, ShiftsGoAroundTheRing) {
  std::vector<std::string> errors = runThreads(3, Timing::Late, [](World &world) {
    Rank rank(world);
    float own[2] = {float(world.rank()), float(world.rank() + 10)}, even[2], odd[2];
    drover_collective shift = describe(DROVER_SHIFT, 1, 2, 1);
    drover_rt_collective_start(&rank.call, &shift, own, even, 0);
    drover_rt_collective_wait(&rank.call, 0);
    drover_rt_collective_start(&rank.call, &shift, even, odd, 0);
    drover_rt_collective_wait(&rank.call, 0);
    rank.communicators.check();
    float before = float((world.rank() + 2) % 3), last = float((world.rank() + 1) % 3);
    EXPECT_EQ(std::vector<float>(even, even + 2), (std::vector<float>{before, before + 10}));
    EXPECT_EQ(std::vector<float>(odd, odd + 2), (std::vector<float>{last, last + 10}));
    const OperationCount count = world.counts()[{DROVER_COMM_TP, OperationKind::Shift, DROVER_F32}];
    EXPECT_EQ(count.operations, 2);
    EXPECT_EQ(count.sent, 16);
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(BodyCollectives, MaximaAndTwoChunks) {
  std::vector<std::string> errors = runThreads(2, Timing::Normal, [](World &world) {
    Rank rank(world);
    float value = float(world.rank() * 3), largest = -1, part[2] = {value, value + 1}, whole[4];
    drover_collective reduce = describe(DROVER_ALL_REDUCE, 1, 1, 1), gather = describe(DROVER_ALL_GATHER, 1, 2, 1);
    reduce.op = DROVER_MAX;
    gather.two_chunk = 1;
    drover_rt_collective_start(&rank.call, &reduce, &value, &largest, 0);
    drover_rt_collective_wait(&rank.call, 0);
    drover_rt_collective_start(&rank.call, &gather, part, whole, 0);
    drover_rt_collective_wait(&rank.call, 0);
    rank.communicators.check();
    EXPECT_EQ(largest, 3);
    EXPECT_EQ(std::vector<float>(whole, whole + 4), (std::vector<float>{0, 3, 4, 1}));
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// Nothing is thrown through the body: its collectives return, and the failure comes out after it.
TEST(BodyCollectives, AFailureComesOutAfterTheBody) {
  std::vector<std::string> errors = runThreads(2, Timing::Normal, [](World &world) {
    Rank rank(world);
    world.setDeadline(0.1, "a step");
    if (world.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return;
    }
    float value = 1;
    drover_collective reduce = describe(DROVER_ALL_REDUCE, 1, 1, 1);
    for (int i = 0; i < 3; ++i) {
      drover_rt_collective_start(&rank.call, &reduce, &value, &value, 0);
      drover_rt_collective_wait(&rank.call, 0);
    }
    rank.communicators.check();
  });
  EXPECT_EQ(errors[0],
            "all_reduce 1 on communicator 1 (tp, ranks 0, 1), 1 f32, sum: not complete within 0.1 s (deadline "
            "of a step), without rank 1");
}

TEST(BodyCollectives, MisuseIsNamed) {
  std::vector<std::unique_ptr<World>> worlds = createInprocWorlds(1, Timing::Normal);
  Rank rank(*worlds[0]);
  float value = 1;
  auto refuses = [&](drover_collective collective, int slot, const std::string &message) {
    drover_rt_collective_start(&rank.call, &collective, &value, &value, slot);
    expectError([&] { rank.communicators.check(); }, message);
  };
  refuses(describe(DROVER_ALL_REDUCE, 1, 1, 1, DROVER_COMM_CP), 0, "communicator 4: the rank has none of this id");
  refuses(describe(9, 1, 1, 1), 0, "unknown kind 9");
  refuses(describe(DROVER_ALL_REDUCE, 1, 1, 1), DROVER_MAX_IN_FLIGHT, "expected a free slot below 16");
  drover_collective collective = describe(DROVER_ALL_REDUCE, 1, 1, 1);
  collective.dtype = 77;
  refuses(collective, 0, "unknown element type 77");
  drover_rt_collective_wait(&rank.call, 3);
  expectError([&] { rank.communicators.check(); }, "wait for slot 3, which has no collective in flight");
  rank.communicators.check();
  refuses(describe(DROVER_ALL_REDUCE, 1, 1, 1), 2, "a body returned with a collective in flight in slot 2");
}

} // namespace
