//===- InprocTest.cpp - ranks that are threads ----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "../TestFiles.h"
#include "Conformance.h"
#include "Ranks.h"
#include <chrono>

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

using Checksums = std::vector<std::map<std::string, uint64_t>>;

Checksums runSuite(int size, Timing timing) {
  Checksums sums(static_cast<size_t>(size));
  std::vector<std::string> errors = runThreads(size, timing, [&](World &world) {
    sums[size_t(world.rank())] = runConformance(world);
    OperationCounts counts = world.counts(), expected = expectedCounts(world.rank(), size);
    ASSERT_EQ(counts.size(), expected.size());
    for (const auto &[key, count] : expected) {
      EXPECT_EQ(counts[key].operations, count.operations);
      EXPECT_EQ(counts[key].bytes, count.bytes);
      EXPECT_EQ(counts[key].sent, count.sent);
    }
  });
  for (const std::string &error : errors)
    EXPECT_EQ(error, "");
  return sums;
}

TEST(InprocConformance, ResultsDoNotDependOnTiming) {
  Checksums early = runSuite(4, Timing::Early);
  ASSERT_FALSE(early[0].empty());
  EXPECT_EQ(early, runSuite(4, Timing::Late));
  EXPECT_EQ(early, runSuite(4, Timing::Normal));
}

TEST(InprocConformance, SevenRanks) { runSuite(7, Timing::Normal); }

std::unique_ptr<Communicator> everybody(World &world) {
  return world.createCommunicator(1, "everybody", ranksBelow(world.size()));
}

TEST(Inproc, LateMovesNothingBeforeSomeoneWaits) {
  runThreads(2, Timing::Late, [](World &world) {
    auto group = everybody(world);
    float mine[2] = {float(world.rank() + 1), 5}, all[4] = {-1, -1, -1, -1};
    Request request = group->allGather(mine, all, DROVER_F32, {1, 2, 1, false});
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(all[0], -1);
    // Who waits has its result, though the other has not waited; and may then write over its input.
    if (world.rank() == 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    request.wait();
    mine[0] = mine[1] = 77;
    EXPECT_EQ(all[0], 1);
    EXPECT_EQ(all[1], 5);
    EXPECT_EQ(all[2], 2);
  });
}

/// A read without its wait sees stale data with late timing, which is what that timing is for.
TEST(Inproc, LateShowsAMissingWait) {
  runThreads(3, Timing::Late, [](World &world) {
    auto group = everybody(world);
    double value = world.rank(), sum = -1;
    Request request = group->allReduce(&value, &sum, 1, DROVER_F64, ReduceOp::Sum);
    double seen = sum;
    request.wait();
    EXPECT_EQ(seen, -1);
    EXPECT_EQ(sum, 3);
  });
}

TEST(Inproc, EarlyIsCompleteOnceAllHaveIssued) {
  std::vector<std::unique_ptr<World>> worlds = createInprocWorlds(2, Timing::Early);
  std::unique_ptr<Communicator> groups[2];
  std::thread other([&] { groups[1] = everybody(*worlds[1]); });
  groups[0] = everybody(*worlds[0]);
  other.join();
  std::vector<float> a(100000, 1), b(100000, 2);
  Request first = groups[0]->allReduce(a.data(), a.data(), 100000, DROVER_F32, ReduceOp::Sum);
  EXPECT_FALSE(first.test());
  Request second = groups[1]->allReduce(b.data(), b.data(), 100000, DROVER_F32, ReduceOp::Sum);
  EXPECT_EQ(a[99999], 3);
  EXPECT_EQ(b[0], 3);
  EXPECT_TRUE(first.test());
  EXPECT_TRUE(second.test());
  EXPECT_FALSE(second.pending());
}

TEST(Inproc, AnExpiredWaitNamesOperationGroupAndWhoIsNotHere) {
  std::vector<std::string> errors = runThreads(3, Timing::Normal, [](World &world) {
    auto group = everybody(world);
    float value = 1;
    group->allReduce(&value, &value, 1, DROVER_F32, ReduceOp::Sum).wait();
    world.setDeadline(0.2, "a step");
    if (world.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      return;
    }
    if (world.rank() == 2)
      world.setDeadline(20, "a step");
    group->allReduce(&value, &value, 1, DROVER_F32, ReduceOp::Sum).wait();
  });
  std::string message =
      "all_reduce 2 on communicator 1 (everybody, ranks 0, 1, 2), 1 f32, sum: not complete within 0.2 "
      "s (deadline of a step), without rank 1";
  EXPECT_EQ(errors[0], message);
  EXPECT_EQ(errors[1], "");
  EXPECT_EQ(errors[2], "rank 0 has ended: " + message);
}

TEST(Inproc, AnExpiredReceiveNamesTheSender) {
  std::vector<std::string> errors = runThreads(3, Timing::Normal, [](World &world) {
    auto group = everybody(world);
    float value[3];
    if (world.rank() == 0)
      group->receive(value, 3, DROVER_F32, 2).wait(0.1);
  });
  EXPECT_EQ(errors[0], "receive 1 from rank 2 on communicator 1 (everybody, ranks 0, 1, 2), 3 f32: not complete within "
                       "0.1 s (deadline of start), without rank 2");
}

TEST(Inproc, ARankThatFailsWakesTheOthers) {
  auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> errors = runThreads(4, Timing::Normal, [](World &world) {
    auto group = everybody(world);
    if (world.rank() == 3)
      fail("out of luck");
    group->barrier();
  });
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(errors[size_t(rank)], "rank 3 has ended: out of luck");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Inproc, ARequestThatIsDroppedEndsTheWorld) {
  std::vector<std::string> errors = runThreads(2, Timing::Normal, [](World &world) {
    auto group = everybody(world);
    std::vector<float> values(100000);
    Request request = group->allReduce(values.data(), values.data(), 100000, DROVER_F32, ReduceOp::Sum);
    if (world.rank() == 0)
      fail("something else");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    request.wait();
  });
  EXPECT_EQ(errors[0], "something else");
  EXPECT_NE(errors[1].find("rank 0 has ended: all_reduce 1 on communicator 1"), std::string::npos) << errors[1];
  EXPECT_NE(errors[1].find("dropped before its end"), std::string::npos) << errors[1];
}

TEST(Inproc, MembersThatDisagreeAreTold) {
  for (int variant = 0; variant < 4; ++variant) {
    std::vector<std::string> errors = runThreads(2, Timing::Normal, [&](World &world) {
      auto group = everybody(world);
      std::vector<float> in(64), out(64);
      bool odd = world.rank() == 1;
      if (variant == 0 && odd)
        group->allGather(in.data(), out.data(), DROVER_F32, {1, 3, 1, false}).wait();
      else if (variant == 1)
        group->allReduce(in.data(), out.data(), odd ? 4 : 5, DROVER_F32, ReduceOp::Sum).wait();
      else if (variant == 2)
        group->allReduce(in.data(), out.data(), 5, odd ? DROVER_BF16 : DROVER_F32, ReduceOp::Sum).wait();
      else if (variant == 3 && odd)
        group->receive(in.data(), 7, DROVER_F32, 0).wait();
      else if (variant == 3)
        group->send(in.data(), 8, DROVER_F32, 1).wait();
      else
        group->allReduce(in.data(), out.data(), 3, DROVER_F32, ReduceOp::Sum).wait();
    });
    const char *expected[] = {"rank 1 has all_gather 1 of parts of 1x3x1 f32 in its place",
                              "rank 1 has all_reduce 1 of 4 f32, sum in its place",
                              "rank 1 has all_reduce 1 of 5 bf16, sum in its place",
                              "rank 1 has receive 1 of 7 f32 in its place"};
    // Either rank may be the first to find it; the other then hears of that.
    EXPECT_FALSE(errors[0].empty());
    EXPECT_FALSE(errors[1].empty());
    if (errors[0].find("has ended") == std::string::npos)
      EXPECT_NE(errors[0].find(expected[variant]), std::string::npos) << errors[0];
    else
      EXPECT_NE(errors[1].find("rank 0 has"), std::string::npos) << errors[1];
  }
}

TEST(Inproc, GroupsThatDoNotFitAreTold) {
  std::vector<std::string> errors = runThreads(3, Timing::Normal, [](World &world) {
    world.setDeadline(5, "start");
    world.createCommunicator(7, "pair", world.rank() == 2 ? std::vector<int>{1, 2} : std::vector<int>{0, 1});
  });
  std::string all = errors[0] + errors[1] + errors[2];
  EXPECT_NE(all.find("communicator 7 (pair) is of ranks "), std::string::npos) << all;
}

TEST(Inproc, BadArgumentsAreRefused) {
  runThreads(2, Timing::Normal, [](World &world) {
    auto group = everybody(world);
    float in[8], out[8];
    expectError([&] { group->allGather(in, out, DROVER_F32, {1, 3, 1, true}); }, "expected an even part");
    expectError(
        [&] { group->allReduce(in, out, 3, DROVER_F16, ReduceOp::Sum); },
        "all_reduce on communicator 1 (everybody), 3 f16, sum: no sums of this type, expected f32, bf16, f64 or");
    expectError([&] { group->broadcast(in, 3, DROVER_F32, 2); }, "no member 2, expected 0 to 1");
    expectError([&] { group->send(in, 3, DROVER_F32, world.rank()); }, "expected another member than this one");
    expectError([&] { group->allReduce(in, out, -3, DROVER_F32, ReduceOp::Sum); }, "expected sizes of at least 0");
    expectError([&] { world.createCommunicator(2, "none", {0, 5}); },
                "communicator 2 (none) of ranks 0, 5: expected ascending ranks below 2");
    expectError([&] { world.createCommunicator(2, "other", {1 - world.rank()}); }, "among them");
    expectError([&] { world.createCommunicator(-2, "", ranksBelow(2)); }, "expected an id of at least 0");
    group->barrier();
  });
}

TEST(Inproc, TheObserverSeesEveryOperationOnce) {
  struct Watcher : OperationObserver {
    std::vector<std::string> seen;
    int64_t issued(const OperationInfo &info) override {
      seen.push_back(concat("issued ", operationName(info.kind), " ", info.sequence, " ", info.bytes));
      return int64_t(seen.size());
    }
    void completed(int64_t token, const OperationInfo &info, int64_t issuedNs, int64_t completedNs) override {
      EXPECT_LE(issuedNs, completedNs);
      seen.push_back(concat("completed ", token));
    }
  };
  runThreads(2, Timing::Normal, [](World &world) {
    Watcher watcher;
    world.setObserver(&watcher);
    auto group = everybody(world);
    float in[4] = {}, out[8];
    Request gather = group->allGather(in, out, DROVER_F32, {1, 4, 1, false});
    Request message = world.rank() == 0 ? group->send(in, 4, DROVER_F32, 1) : group->receive(in, 4, DROVER_F32, 0);
    message.wait();
    gather.wait();
    std::vector<std::string> expected = {"issued all_gather 1 32",
                                         world.rank() == 0 ? "issued send 1 16" : "issued receive 1 16", "completed 2",
                                         "completed 1"};
    EXPECT_EQ(watcher.seen, expected);
  });
}

TEST(Inproc, TimingComesFromTheEnvironment) {
  ::setenv("DROVER_RT_TIMING", "late", 1);
  EXPECT_EQ(timingFromEnvironment(), Timing::Late);
  ::setenv("DROVER_RT_TIMING", "soon", 1);
  expectError([] { timingFromEnvironment(); }, "DROVER_RT_TIMING=soon: expected early, late or normal");
  ::unsetenv("DROVER_RT_TIMING");
  EXPECT_EQ(timingFromEnvironment(), Timing::Normal);
}

} // namespace
