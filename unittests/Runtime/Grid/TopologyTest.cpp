//===- TopologyTest.cpp - where ranks are, against the plan ---------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/topology.h"
#include "../TestFiles.h"
#include "GridProgram.h"
#include "comm/NcclSettings.h"
#include "drover/Nccl/Settings.h"

using namespace drover;
using namespace drover::rt;
using namespace drover::rt::test;

namespace {

/// Servers of two GPUs, two of them a rack, four racks a pod.
cluster::Cluster smallCluster() {
  cluster::Cluster cluster;
  cluster.name = "small";
  cluster.device.kind = "H100";
  auto add = [&](const char *name, int64_t members, double bandwidth) {
    cluster::Level level;
    level.name = name;
    level.members = members;
    level.bandwidth = bandwidth;
    level.latency = 1e-6;
    cluster.levels.push_back(level);
  };
  add("server", 2, 450e9);
  add("rack", 2, 50e9);
  add("pod", 4, 50e9);
  return cluster;
}

/// A program for TP 2, PP 2, DP 4, or another plan, that was placed on the small cluster.
class Placed {
public:
  explicit Placed(int64_t cp = 1, bool onCluster = true) : grid(options(cp)) {
    cluster::Cluster cluster = smallCluster();
    settings = nccl::printSettings(nccl::deriveSettings(onCluster ? &cluster : nullptr, grid.step));
    embedded = grid.program();
    metadata = "{\"nccl\": " + settings + ", " + std::string(embedded.metadata + 1, embedded.metadata_bytes - 1);
    embedded.metadata = metadata.data();
    embedded.metadata_bytes = metadata.size();
    program = std::make_unique<Program>(embedded);
  }

  std::string fault(const std::vector<std::string> &hosts, const Topology *topology = nullptr) const {
    return findMisplacedGroup(*program, hosts, topology).value_or("");
  }

  std::string settings;
  std::unique_ptr<Program> program;

private:
  static GridOptions options(int64_t cp) {
    GridOptions options;
    options.plan.tp = 2;
    options.plan.cp = cp;
    options.plan.pp = 2;
    options.plan.dp = 4 / cp;
    return options;
  }

  GridProgram grid;
  std::string metadata;
  drover_program embedded;
};

/// Rank by rank, two to a server.
std::vector<std::string> inOrder() {
  std::vector<std::string> hosts;
  for (int rank = 0; rank < 16; ++rank)
    hosts.push_back("s" + std::to_string(rank / 2));
  return hosts;
}

const std::vector<std::string> levels = {"server", "rack", "pod"};

/// Server s2i and s2i+1 in rack ri, all in one pod.
Topology regular() {
  std::string text = "server rack pod\n";
  for (int server = 0; server < 8; ++server)
    text += concat("s", server, " r", server / 2, " a\n");
  return parseTopology(text, "t", levels);
}

TEST(Topology, ranksInOrderAreAsPromised) {
  for (int64_t cp : {1, 2}) {
    Placed placed(cp);
    EXPECT_EQ(placed.fault(inOrder()), "");
    Topology topology = regular();
    EXPECT_EQ(placed.fault(inOrder(), &topology), "");
  }
}

TEST(Topology, aGroupOverMoreServersThanPromisedIsNamed) {
  Placed placed;
  std::vector<std::string> hosts = inOrder();
  std::swap(hosts[3], hosts[4]);
  EXPECT_EQ(placed.fault(hosts),
            "the tp group of ranks 2, 3 lies in 2 units of level 'server' (s1: 2; s2: 3), where the "
            "plan for cluster small promised 1: start ranks in order, server by server, or compile "
            "for where they are");
  // One rank a server: every TP group is apart, the first one is named.
  for (int rank = 0; rank < 16; ++rank)
    hosts[size_t(rank)] = "n" + std::to_string(rank);
  EXPECT_NE(placed.fault(hosts).find("the tp group of ranks 0, 1 lies in 2 units of level 'server' (n0: 0; n1: 1)"),
            std::string::npos)
      << placed.fault(hosts);
}

TEST(Topology, largerServersThanPlannedForAreNoFault) {
  EXPECT_EQ(Placed().fault(std::vector<std::string>(16, "one")), "");
}

TEST(Topology, aGroupOverMoreRacksThanPromisedIsNamed) {
  Placed placed;
  // Pipeline edges of two servers were to be in one rack: here each rack has servers of two pipelines.
  std::string text = "server rack pod\n";
  for (int server = 0; server < 8; ++server)
    text += concat("s", server, " r", server % 4, " a\n");
  Topology topology = parseTopology(text, "t", levels);
  EXPECT_EQ(placed.fault(inOrder()), "");
  std::string fault = placed.fault(inOrder(), &topology);
  EXPECT_NE(fault.find("lies in 2 units of level 'rack' (r0: 0; r1: 2), where the plan for cluster small promised 1"),
            std::string::npos)
      << fault;
  EXPECT_EQ(fault.find("the edge 0 to 1"), 0u) << fault;
}

TEST(Topology, levelsThatTheFileLeavesOutAreNotChecked) {
  Placed placed;
  std::string text = "server pod\n";
  for (int server = 0; server < 8; ++server)
    text += concat("s", server, server < 4 ? " a\n" : " b\n");
  Topology topology = parseTopology(text, "t", levels);
  std::string fault = placed.fault(inOrder(), &topology);
  EXPECT_NE(fault.find("of level 'pod'"), std::string::npos) << fault;
}

TEST(Topology, everyRankNeedsItsServer) {
  Topology topology = parseTopology("server rack\ns0 r0\n", "t.txt", levels);
  Placed placed;
  expectError([&] { placed.fault(inOrder(), &topology); }, "t.txt: no line for 's1', where rank 2 is");
}

TEST(Topology, commentsAndBlankLinesAreSkipped) {
  Topology topology = parseTopology("# all of it\n\n server\track # levels\r\n s0 r0\n#s1 r0\ns2 r1\n", "t", levels);
  EXPECT_EQ(topology.levels, (std::vector<std::string>{"server", "rack"}));
  ASSERT_EQ(topology.servers.size(), 2u);
  EXPECT_EQ(topology.servers["s2"], (std::vector<std::string>{"s2", "r1"}));
}

TEST(Topology, faultsOfAFileAreLocated) {
  struct Fault {
    const char *text, *error;
  };
  for (const Fault &fault : std::vector<Fault>{
           {"", "t:1:1: error: no columns: expected a line with the names of levels, such as 'server rack pod'"},
           {"# nothing\n\n", "t:2:1: error: no columns: expected a line with the names of levels"},
           {"server shelf\n", "t:1:8: error: 'shelf': expected levels of the program's cluster from the innermost out, "
                              "'server rack pod' or without some behind server"},
           {"rack pod\n", "t:1:1: error: 'rack': expected levels"},
           {"server pod rack\n", "t:1:12: error: 'rack': expected levels"},
           {"server rack\ns0\n", "t:2:1: error: 1 columns, expected 2 as in the first line"},
           {"server rack\ns0 r0 a\n", "t:2:7: error: 3 columns, expected 2 as in the first line"},
           {"server rack\ns0 r0\n\ns0 r1\n", "t:4:1: error: 's0' stands in line 2 already"},
           {"server rack pod\ns0 r0 a\ns1 r0 b\n", "t:3:7: error: rack 'r0' is in pod 'b' here, and in 'a' in line 2"},
       })
    expectError([&] { parseTopology(fault.text, "t", levels); }, fault.error);
}

TEST(Topology, withoutAClusterNothingIsPromised) {
  Placed placed(1, /*onCluster=*/false);
  std::vector<std::string> hosts = inOrder();
  std::swap(hosts[3], hosts[4]);
  EXPECT_EQ(placed.fault(hosts), "");
}

TEST(Topology, aFileIsForWorldsThatKnowWhereRanksAre) {
  Placed placed;
  std::vector<std::unique_ptr<World>> worlds = createInprocWorlds(1, Timing::Normal);
  checkPlaces(*placed.program, "", *worlds[0]);
  expectError([&] { checkPlaces(*placed.program, "t.txt", *worlds[0]); },
              "--topology=t.txt: backend inproc does not say where ranks are; expected nccl");
}

/// What the compiler writes is what the runtime reads.
TEST(Topology, theRuntimeReadsWhatTheCompilerWrites) {
  Placed placed(2);
  NcclSettings settings = parseNcclSettings(placed.settings, "settings");
  EXPECT_EQ(settings.cluster, "small");
  EXPECT_EQ(settings.levels, levels);
  const NcclDimension *tp = settings.find(DROVER_COMM_TP), *fsdp = settings.find(DROVER_COMM_FSDP);
  ASSERT_TRUE(tp && fsdp);
  EXPECT_EQ(tp->members, 2);
  EXPECT_EQ(settings.serversOf(*tp), 1);
  EXPECT_EQ(settings.serversOf(*fsdp), 4);
  EXPECT_GT(fsdp->fields.at("max_ctas"), 0);
  EXPECT_FALSE(fsdp->rules.empty());
  for (const ListedCommunicator &listed : placed.program->communicators)
    EXPECT_NE(settings.find(listed.id), nullptr) << listed.name;
}

} // namespace
