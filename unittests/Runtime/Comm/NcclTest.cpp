//===- NcclTest.cpp - ranks with a GPU each, on the stand-ins -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "../Device/TestDevice.h"
#include "Conformance.h"
#include "Ranks.h"

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

using RankBody = std::function<void(World &, Device &)>;

/// As runThreads of Ranks.h, each rank with a device of its own.
std::vector<std::string> runDevices(int size, const RankBody &body, double startSeconds = 60,
                                    const std::shared_ptr<const NcclProcess> &process = nullptr) {
  ::setenv("DROVER_EMU_DEVICES", "8", 1);
  std::unique_ptr<RendezvousHost> table = hostRendezvous(0, size);
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        std::unique_ptr<Device> device = openStandin(rank);
        NcclOptions options;
        options.rank = rank;
        options.size = size;
        options.rendezvous = {"localhost", table->port()};
        options.startSeconds = startSeconds;
        options.library = DROVER_STANDIN_NCCL;
        options.process = process;
        std::unique_ptr<World> world = connectNccl(options, *device);
        try {
          body(*world, *device);
        } catch (const std::exception &error) {
          errors[size_t(rank)] = error.what();
          world->abort(error.what());
        }
      } catch (const std::exception &error) {
        errors[size_t(rank)] = error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

class Nccl : public ::testing::Test {
protected:
  void SetUp() override { drover_standin_set_seed(0); }
  void TearDown() override { drover_standin_set_seed(0); }
  FaultLog log;
};

using Checksums = std::vector<std::map<std::string, uint64_t>>;

Checksums runSuite(int size, bool onDevice) {
  Checksums sums(static_cast<size_t>(size));
  std::vector<std::string> errors = runDevices(size, [&](World &world, Device &device) {
    sums[size_t(world.rank())] = runConformance(world, onDevice ? &device : nullptr);
    OperationCounts counts = world.counts(), expected = expectedCounts(world.rank(), size);
    for (const auto &[key, count] : expected) {
      EXPECT_EQ(counts[key].operations, count.operations);
      EXPECT_EQ(counts[key].bytes, count.bytes);
      EXPECT_EQ(counts[key].sent, count.sent);
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(size_t(size)));
  return sums;
}

/// However late the devices are, and wherever the buffers lie; without a race.
TEST_F(Nccl, SameBitsAsThreads) {
  Checksums threads(4);
  runThreads(4, Timing::Normal, [&](World &world) { threads[size_t(world.rank())] = runConformance(world); });
  for (uint64_t seed : {0, 3}) {
    drover_standin_set_seed(seed);
    EXPECT_TRUE(runSuite(4, seed != 0) == threads) << "seed " << seed;
    EXPECT_EQ(log.first(), "") << "seed " << seed;
  }
}

std::unique_ptr<Communicator> everybody(World &world) {
  return world.createCommunicator(5, "everybody", ranksBelow(world.size()));
}

TEST_F(Nccl, WhoDoesNotComeIsNamed) {
  std::vector<std::string> errors = runDevices(3, [](World &world, Device &) {
    auto group = everybody(world);
    world.setDeadline(world.rank() ? 60 : 0.5, "a step");
    float value = 1;
    if (world.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      group->barrier(); // the world has ended by then
      return;
    }
    group->allReduce(&value, &value, 1, DROVER_F32, ReduceOp::Sum).wait();
  });
  std::string reason =
      "all_reduce 1 on communicator 5 (everybody, ranks 0, 1, 2), 1 f32, sum: not complete within 0.5 s "
      "(deadline of a step), without rank 2";
  EXPECT_EQ(errors[0], reason);
  EXPECT_EQ(errors[1], "rank 0 has ended: " + reason);
  EXPECT_EQ(errors[2], "rank 0 has ended: " + reason);
}

TEST_F(Nccl, WhoFailsEndsTheOthers) {
  for (uint64_t seed : {0, 2}) {
    drover_standin_set_seed(seed);
    std::vector<std::string> errors = runDevices(3, [](World &world, Device &) {
      auto group = everybody(world);
      float value = 1;
      if (world.rank() == 1)
        fail("this rank is out of luck");
      group->allReduce(&value, &value, 1, DROVER_F32, ReduceOp::Sum).wait();
    });
    EXPECT_EQ(errors[0], "rank 1 has ended: this rank is out of luck");
    EXPECT_EQ(errors[2], "rank 1 has ended: this rank is out of luck");
  }
}

/// The stand-in sees it at once; NCCL itself may hang, and then the ranks tell each other what they have issued.
TEST_F(Nccl, DifferentOperationsInOnePlaceAreErrors) {
  std::vector<std::string> errors = runDevices(2, [](World &world, Device &) {
    auto group = everybody(world);
    std::vector<float> values(2000);
    group->allReduce(values.data(), values.data(), world.rank() ? 300 : 2000, DROVER_F32, ReduceOp::Sum).wait();
  });
  int named = 0;
  for (const std::string &error : errors)
    named += error.find("members have issued different operations: all_reduce of ") != std::string::npos &&
             error.find("; ranks disagree, or two of them use one device") != std::string::npos;
  EXPECT_GT(named, 0) << errors[0] << "\n" << errors[1];
  EXPECT_NE(log.first().find("nccl: members have issued different operations"), std::string::npos);
}

TEST_F(Nccl, GroupsThatMembersWereToldDifferentlyAreErrors) {
  std::vector<std::string> errors = runDevices(3, [](World &world, Device &) {
    world.createCommunicator(1, "tp", world.rank() == 1 ? std::vector<int>{0, 1} : std::vector<int>{0, 2});
  });
  EXPECT_NE(errors[1].find("communicator 1 (tp, ranks 0, 1): for rank 0 it is tp of ranks 0 2"), std::string::npos)
      << errors[1];
}

TEST_F(Nccl, WhoDoesNotComeToAGroupIsNamed) {
  std::vector<std::string> errors = runDevices(
      2,
      [](World &world, Device &) {
        if (world.rank() == 0)
          everybody(world);
        else
          std::this_thread::sleep_for(std::chrono::milliseconds(2500));
      },
      0.5);
  EXPECT_NE(errors[0].find("nccl: ncclCommInitRankConfig on communicator 5 (everybody, ranks 0, 1), rank 0, cuda 0 "
                           "(emulated GPU, sm_90): still in progress after 0.5 s (deadline of start), without rank 1"),
            std::string::npos)
      << errors[0];
}

/// One that the host does not wait for: only the watchdog sees it, and it calls neither CUDA nor NCCL.
TEST_F(Nccl, TheWatchdogEndsWhatTheHostDoesNotWaitFor) {
  std::vector<std::string> errors = runDevices(2, [](World &world, Device &device) {
    auto group = everybody(world);
    DeviceMemory value = device.allocate(8);
    world.setDeadline(0.1, "a step");
    if (world.rank() == 0)
      group->allReduce(value.data(), value.data(), 1, DROVER_I64, ReduceOp::Sum)
          .waitOn(device.stream(DROVER_STREAM_COMPUTE));
    std::this_thread::sleep_for(std::chrono::seconds(6));
    group->barrier();
  });
  std::string reason =
      "all_reduce 1 on communicator 5 (everybody, ranks 0, 1), 1 i64, sum: not complete long after its "
      "deadline, without rank 1";
  EXPECT_EQ(errors[0], reason);
  EXPECT_EQ(errors[1], "rank 0 has ended: " + reason);
}

/// Rank 1 writes a buffer on one stream and on another: ordered where rank 0 answers what rank 1 sends between the two,
/// though nothing on rank 1 orders them.
TEST_F(Nccl, WhatComesBehindAMessageIsAfterWhatTheSenderHadSeen) {
  constexpr int64_t bytes = 256;
  auto answer = [&](World &world, Device &device, bool heard) {
    auto there = world.createCommunicator(5, "there", {0, 1}), back = world.createCommunicator(6, "back", {0, 1});
    DeviceMemory value = device.allocate(bytes), sent = device.allocate(bytes), received = device.allocate(bytes);
    Stream &compute = device.stream(DROVER_STREAM_COMPUTE), &receives = device.stream(DROVER_STREAM_FORWARD_RECEIVE);
    device.fill(sent.data(), 2, bytes, compute);
    if (world.rank() == 1) {
      device.fill(value.data(), 1, bytes, compute);
      world.issueAfter(&compute);
      if (heard)
        there->send(sent.data(), bytes, DROVER_I8, 0).waitOn(compute);
      world.issueAfter(nullptr);
      back->receive(received.data(), bytes, DROVER_I8, 0).waitOn(receives);
      device.copy(value.data(), received.data(), bytes, receives);
    } else {
      world.issueAfter(&compute);
      if (heard)
        there->receive(received.data(), bytes, DROVER_I8, 1).waitOn(compute);
      back->send(sent.data(), bytes, DROVER_I8, 1).waitOn(compute);
    }
    finish(device, compute);
    finish(device, receives);
  };
  for (uint64_t seed : {0, 2, 3})
    for (bool heard : {true, false}) {
      FaultLog faults;
      drover_standin_set_seed(seed);
      runDevices(2, [&](World &world, Device &device) { answer(world, device, heard); });
      EXPECT_EQ(faults.first().find("race: ") == 0, !heard) << "seed " << seed << ": " << faults.first();
    }
}

/// A graph that adds one number up over a group.
struct SumGraph {
  SumGraph(World &world, Device &device, Communicator &group) : world(world), device(device) {
    Stream &compute = device.stream(DROVER_STREAM_COMPUTE);
    device.beginGraph();
    world.keepOperations();
    world.issueAfter(&compute);
    device.copy(value.data(), number.data(), 8, compute);
    group.allReduce(value.data(), value.data(), 1, DROVER_I64, ReduceOp::Sum).waitOn(compute);
    device.copy(number.data(), value.data(), 8, compute);
    kept = world.takeKept();
    world.keepNone();
    world.issueAfter(nullptr);
    graph = device.endGraph();
  }

  void launch() {
    EXPECT_TRUE(device.isIdle());
    world.restartMarks();
    for (const KeptOperation &operation : kept)
      operation.communicator->issueAgain(operation);
    device.launch(*graph, device.stream(DROVER_STREAM_COMPUTE));
  }

  World &world;
  Device &device;
  DeviceMemory value = device.allocate(8), number = device.allocatePinned(8);
  std::vector<KeptOperation> kept;
  std::unique_ptr<Graph> graph;
};

TEST_F(Nccl, OperationsInGraphsAreIssuedByEachLaunch) {
  for (uint64_t seed : {0, 1, 4}) {
    drover_standin_set_seed(seed);
    std::vector<std::string> errors = runDevices(3, [](World &world, Device &device) {
      auto group = everybody(world);
      while (!device.isIdle()) {
      }
      SumGraph sum(world, device, *group);
      int64_t one = 1;
      std::memcpy(sum.number.data(), &one, 8);
      for (int64_t expected : {3, 9, 27}) {
        sum.launch();
        finish(device, device.stream(DROVER_STREAM_COMPUTE));
        while (!device.isIdle()) {
        }
        int64_t found;
        std::memcpy(&found, sum.number.data(), 8);
        EXPECT_EQ(found, expected);
      }
      OperationCounts counts = world.counts();
      const OperationCount &count = counts[{5, OperationKind::AllReduce, DROVER_I64}];
      EXPECT_EQ(count.operations, 3);
      EXPECT_EQ(count.bytes, 24);
    });
    EXPECT_EQ(errors, std::vector<std::string>(3));
    EXPECT_EQ(log.first(), "") << "seed " << seed;
  }
}

TEST_F(Nccl, TheWatchdogEndsGraphsThatWaitForOthers) {
  std::vector<std::string> errors = runDevices(2, [](World &world, Device &device) {
    auto group = everybody(world);
    while (!device.isIdle()) {
    }
    SumGraph sum(world, device, *group);
    world.setDeadline(0.1, "a step");
    if (world.rank() == 0)
      sum.launch();
    std::this_thread::sleep_for(std::chrono::seconds(6));
    group->barrier();
  });
  std::string reason =
      "all_reduce 1 on communicator 5 (everybody, ranks 0, 1), 1 i64, sum: not complete long after its "
      "deadline, without rank 1";
  EXPECT_EQ(errors[0], reason);
  EXPECT_EQ(errors[1], "rank 0 has ended: " + reason);
}

/// Settings that want windows for communicator 5.
std::shared_ptr<const NcclProcess> processWithWindows() {
  NcclRequest request;
  request.library = DROVER_STANDIN_NCCL;
  request.settings = R"({"format": 1, "cluster": "here", "levels": [], "environment": [], "communicators": [
    {"name": "everybody", "ids": [5], "members": 2, "units": {}, "settings": {"windows": {"value": 1, "reason": ""}},
     "tuner": []}]})";
  request.ranks = 2;
  return prepareNccl(request);
}

/// Gathers that read and write a window lie at one place of it on all members; without a window memory is the device's.
TEST_F(Nccl, WindowsAreRegisteredByAllMembers) {
  constexpr int64_t bytes = 4096, part = 256;
  auto gather = [&](World &world, Device &device, int64_t skew) {
    auto group = everybody(world), others = world.createCommunicator(6, "others", ranksBelow(world.size()));
    void *base = world.openWindow(bytes);
    ASSERT_NE(base, nullptr);
    EXPECT_EQ(world.openWindow(0), nullptr);
    DeviceMemory window(device, base, bytes, [&] { world.closeWindow(base); });
    EXPECT_TRUE(device.holds(window.data() + bytes - 1));
    uint8_t *whole = window.data() + world.rank() * skew;
    device.fill(whole, 1, 2 * part, device.stream(DROVER_STREAM_COMPUTE));
    world.issueAfter(&device.stream(DROVER_STREAM_COMPUTE));
    group->allGather(whole + world.rank() * part, whole, DROVER_I8, {1, part, 1, false}).wait();
    others->allGather(whole + world.rank() * part, whole, DROVER_I8, {1, part, 1, false}).wait();
  };
  std::shared_ptr<const NcclProcess> process = processWithWindows();
  std::vector<std::string> errors =
      runDevices(2, [&](World &world, Device &device) { gather(world, device, 0); }, 60, process);
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_EQ(log.first(), "");
  errors = runDevices(2, [&](World &world, Device &device) { gather(world, device, 512); }, 60, process);
  EXPECT_NE(log.first().find("members have issued different operations: all_gather of 256"), std::string::npos)
      << log.first();
  EXPECT_NE(log.first().find(", at 512 of its windows"), std::string::npos) << log.first();
  drover_emu_clear_faults();
  errors = runDevices(
      2,
      [&](World &world, Device &) {
        auto group = everybody(world);
        world.openWindow(bytes);
      },
      60, process);
  EXPECT_NE(log.first().find("nccl: a communicator is destroyed before its windows"), std::string::npos) << log.first();
  drover_emu_clear_faults();
  errors = runDevices(
      2,
      [&](World &world, Device &) {
        auto group = everybody(world);
        world.openWindow(bytes << world.rank());
      },
      60, process);
  EXPECT_NE((errors[0] + errors[1]).find("ncclCommWindowRegister"), std::string::npos) << errors[0] << errors[1];
  EXPECT_NE((errors[0] + errors[1]).find("bytes in one place"), std::string::npos) << errors[0] << errors[1];
}

TEST_F(Nccl, HostNamesComeFromAllRanksAndOneSaysWhatIsAgreed) {
  std::vector<std::string> agreed(3);
  runDevices(3, [&](World &world, Device &) {
    agreed[size_t(world.rank())] = world.agree("algorithm", concat("of rank ", world.rank()));
    std::vector<std::string> hosts = world.hosts();
    ASSERT_EQ(hosts.size(), 3u);
    EXPECT_FALSE(hosts[0].empty());
    EXPECT_EQ(hosts[0], hosts[2]);
  });
  EXPECT_EQ(agreed[0].substr(0, 8), "of rank ");
  EXPECT_EQ(agreed, std::vector<std::string>(3, agreed[0]));
}

TEST_F(Nccl, WhatIsMissingIsNamed) {
  std::unique_ptr<Device> device = openStandin();
  std::unique_ptr<RendezvousHost> table = hostRendezvous(0, 0);
  NcclOptions options;
  options.library = "libnowhere.so.2";
  expectError([&] { connectNccl(options, *device); }, "nccl: library not found; install NCCL 2.20 or later");
  options.library = DROVER_STANDIN_NCCL;
  options.startSeconds = 0.2;
  options.rendezvous = {"localhost", 1};
  expectError([&] { connectNccl(options, *device); },
              "rendezvous: rank 0 cannot reach rank 0 at localhost:1: Connection refused");
}

} // namespace
