//===- ReadClusterErrorsTest.cpp - one located error for each fault -------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ClusterText.h"
#include "drover/Cluster/Yaml/ReadCluster.h"
#include "gtest/gtest.h"
#include <fstream>
#include <random>

using namespace drover;
using namespace drover::cluster;

namespace {

std::string errorOf(const std::string &text) {
  schedule::Result<Cluster> cluster = readClusterText(text, "c.yaml");
  return cluster ? "no error" : cluster.error();
}

/// A part of the file, what stands in its place, and the error.
struct Fault {
  const char *from, *to, *error;
};

void expectFaults(std::initializer_list<Fault> faults) {
  for (const Fault &fault : faults)
    EXPECT_EQ(errorOf(clusterTextWith(fault.from, fault.to)), std::string("c.yaml:") + fault.error);
}

TEST(ReadClusterErrors, keys) {
  expectFaults({
      {"  sms: 64\n", "  sm: 64\n",
       "10:3: error: unknown key 'sm' of the device: expected one of name, kind, peak, memory, sms, power, "
       "shared_cores, core_scaling, matmul, attention, launch, spread, pass_cost, eager_traffic, ring_hidden, "
       "contention, clock_boost"},
      {"gpus: 32\n", "gpus: 32\nspeed: 3\n",
       "5:1: error: unknown key 'speed' of a cluster file: expected one of name, published_as, gpus, device, levels, "
       "traffic_classes, storage, failures"},
      {"    flows: 4\n", "    flow: 4\n",
       "33:5: error: unknown key 'flow' of a level: expected one of name, members, bandwidth, achieved, latency, "
       "oversubscription, flows, in_network, backend, collectives"},
      {"count: 3}", "number: 3}",
       "40:26: error: unknown key 'number' of a cause: expected one of name, count, planned"},
      {"  sms: 64\n", "", "6:3: error: the device has no 'sms'"},
      {"gpus: 32\n", "", "1:1: error: a cluster file has no 'gpus'"},
      {"    latency: 3 us\n", "", "27:5: error: a level has no 'latency'"},
      {"  sms: 64\n", "  sms: 64\n  sms: 65\n", "11:3: error: the key 'sms' is given twice"},
  });
}

TEST(ReadClusterErrors, trafficClasses) {
  expectFaults({
      {"gpus: 32\n", "gpus: 32\ntraffic_classes: {urgent: 106, bulk: 98}\n",
       "5:18: error: 'traffic_classes' has no 'control'"},
      {"gpus: 32\n", "gpus: 32\ntraffic_classes: {urgent: 106, bulk: 98, control: 194, idle: 0}\n",
       "5:56: error: unknown key 'idle' of 'traffic_classes': expected one of urgent, bulk, control"},
      {"gpus: 32\n", "gpus: 32\ntraffic_classes: {urgent: 256, bulk: 98, control: 194}\n",
       "5:27: error: 'urgent' is '256': expected 0 to 255"},
  });
}

TEST(ReadClusterErrors, measuredCollectives) {
  auto withLines = [](const std::string &lines) {
    return errorOf(clusterTextWith("    in_network: 0.7\n", "    in_network: 0.7\n" + lines));
  };
  const std::string list = "    collectives:\n";
  EXPECT_EQ(
      withLines(list + "      - {backend: inproc, kind: all_gather, ranks: 2, latency: 1 us, bandwidth: 1 GB/s}\n"),
      "c.yaml:21:5: error: a level has no 'backend'");
  EXPECT_EQ(withLines("    backend: mpi\n" + list +
                      "      - {backend: inproc, kind: message, ranks: 2, latency: 1 us, bandwidth: 1 GB/s}\n"),
            "c.yaml:27:14: error: 'backend' is mpi, of which no collective is listed");
  EXPECT_EQ(withLines("    backend: inproc\n" + list +
                      "      - {backend: inproc, kind: gather, ranks: 2, latency: 1 us, bandwidth: 1 GB/s}\n"),
            "c.yaml:29:33: error: 'kind' is 'gather': expected one of all_gather, reduce_scatter, all_reduce, "
            "broadcast, message");
  EXPECT_EQ(withLines("    backend: inproc\n" + list +
                      "      - {backend: inproc, kind: message, ranks: 4, latency: 1 us, bandwidth: 1 GB/s}\n"
                      "      - {backend: inproc, kind: message, ranks: 2, latency: 1 us, bandwidth: 1 GB/s}\n"),
            "c.yaml:30:9: error: inproc's message of 2 ranks stands behind that of 4: expected more ranks from line to "
            "line");
  EXPECT_EQ(withLines("    backend: inproc\n"), "c.yaml:27:14: error: 'backend' says whose measured collectives ranks "
                                                "use: expected 'collectives' beside it");
}

TEST(ReadClusterErrors, units) {
  expectFaults({
      {"300 GB/s", "300 GB",
       "23:16: error: 'bandwidth' is '300 GB': expected bytes a second such as '50 GB/s' or '400 Gb/s'"},
      {"300 GB/s", "300",
       "23:16: error: 'bandwidth' is '300': expected bytes a second such as '50 GB/s' or '400 Gb/s'"},
      {"3 us", "3 parsecs", "31:14: error: 'latency' is '3 parsecs': expected a time such as '5 us' or '10 min'"},
      {"10 GiB", "10 Gb", "9:19: error: 'total' is '10 Gb': expected bytes such as '80 GB' or '80 GiB'"},
      {"bf16: 100 TFLOP/s", "bf16: 100 TFLOPS",
       "8:33: error: 'bf16' is '100 TFLOPS': expected a rate such as '989 TFLOP/s'"},
      {"300 W", "300 kW", "11:10: error: 'power' is '300 kW': expected a power such as '700 W'"},
      {"oversubscription: 2", "oversubscription: 1:2",
       "32:23: error: 'oversubscription' is '1:2': expected a number without a unit"},
      {"achieved: 0.8\n", "achieved: 80%\n", "24:15: error: 'achieved' is '80%': expected a number without a unit"},
      {"members: 8", "members: 0x8", "28:14: error: 'members' is '0x8': expected a number without a unit"},
      {"members: 8", "members: inf", "28:14: error: 'members' is 'inf': expected a number without a unit"},
      {"members: 8", "members: 1e999", "28:14: error: 'members' is '1e999': expected a number without a unit"},
      {"planned: true", "planned: yes", "41:43: error: 'planned' is 'yes': expected true or false"},
  });
}

TEST(ReadClusterErrors, absurdValues) {
  expectFaults({
      {"300 GB/s", "300 B/s", "23:16: error: 'bandwidth' is '300 B/s': expected 100 KB/s to 1000 TB/s"},
      {"achieved: 0.8\n", "achieved: 80\n", "24:15: error: 'achieved' is '80': expected above 0 and up to 1"},
      {"achieved: 0.8\n", "achieved: 0\n", "24:15: error: 'achieved' is '0': expected above 0 and up to 1"},
      {"600 ns", "600 s", "25:14: error: 'latency' is '600 s': expected 0 ns to 1 s"},
      {"600 ns", "-1 us", "25:14: error: 'latency' is '-1 us': expected 0 ns to 1 s"},
      {"members: 8", "members: 0", "28:14: error: 'members' is '0': expected 1 to 16777216"},
      {"members: 8", "members: 2.5", "28:14: error: 'members' is '2.5': expected a whole number"},
      {"oversubscription: 2", "oversubscription: 0.5", "32:23: error: 'oversubscription' is '0.5': expected 1 to 1000"},
      {"10 d", "1 s", "36:30: error: 'time' is '1 s': expected 60 s to 1000000000 s"},
      {"  sms: 64", "  sms: 0", "10:8: error: 'sms' is '0': expected 1 to 4096"},
      {"members: 8", "members: 8000000", "27:5: error: the levels up to 'cluster' hold more than 16777216 GPUs"},
  });
}

TEST(ReadClusterErrors, contradictions) {
  expectFaults({
      {"gpus: 32\n", "gpus: 30\n", "4:7: error: 'gpus' is 30, but the members of the levels are 4 * 8 = 32"},
      {"usable: 9 GiB", "usable: 11 GiB",
       "9:35: error: 'usable' is more than 'total', 11.811160064 GB of 10.73741824 GB"},
      {"context: 1 GiB", "context: 9.5 GiB",
       "9:51: error: 'context' is more than 'usable', 10.200547328 GB of 9.663676416 GB"},
      {"peak_write: 2 GB/s", "peak_write: 0.5 GB/s",
       "34:48: error: 'peak_write' is below 'sustained_write', 500 MB/s and 1 GB/s"},
      {"in_network: 0.7", "oversubscription: 2",
       "21:5: error: the innermost level 'server' is oversubscribed, but joins GPUs with links of their own"},
      {"name: cluster", "name: server", "27:5: error: the level 'server' is listed twice"},
      {"kernel: unfused", "kernel: flash9",
       "17:16: error: 'kernel' is 'flash9': expected one of flash3, flash2, triton, unfused, generated"},
      {"  power: 300 W\n", "  core_scaling: 0.9\n",
       "11:17: error: 'core_scaling' is of cores that ranks share: expected 'shared_cores' beside it"},
      {"count: 3}", "count: 1.5}", "40:33: error: 'count' is '1.5': expected a whole number"},
      {"kernel: unfused", "kernel: flash2", "17:7: error: the attention kernel 'flash2' is listed twice"},
      {"name: firmware", "name: faulty GPU", "41:7: error: the cause 'faulty GPU' is listed twice"},
      {"    f32: {fraction", "    fp8: {fraction",
       "14:5: error: matmul rates of fp8, for which the device lists no peak"},
  });
}

TEST(ReadClusterErrors, kindsOfValues) {
  expectFaults({
      {"  sms: 64", "  sms: [64]", "10:8: error: 'sms' is a list: expected one value"},
      {"name: small", "name: ''", "1:7: error: 'name' is empty: expected a name"},
      {"{f32: 10 TFLOP/s, bf16: 100 TFLOP/s, f16: 100 TFLOP/s}", "10 TFLOP/s",
       "8:9: error: the peak is a value: expected a mapping"},
      {"{f32: 10 TFLOP/s, bf16: 100 TFLOP/s, f16: 100 TFLOP/s}", "{}",
       "8:9: error: the peak lists no format: expected some of f32, bf16, f16, fp8"},
      {"  - 'Small-GPU (1x)'", "  - {a: b}", "3:5: error: 'published_as' lists something else than names"},
      {"storage: {sustained_write: 1 GB/s, peak_write: 2 GB/s}", "storage: fast",
       "34:10: error: the storage is a value: expected a mapping"},
  });
  EXPECT_EQ(errorOf("name: a\ngpus: 1\ndevice: [1]\nlevels: []\n"),
            "c.yaml:3:9: error: the device is a list: expected a mapping");
  EXPECT_EQ(errorOf("- a\n"), "c.yaml:1:1: error: a cluster file is a list: expected a mapping");
}

TEST(ReadClusterErrors, listsOfLevels) {
  std::string text = clusterText();
  size_t begin = text.find("levels:\n"), end = text.find("storage:");
  std::string head = text.substr(0, begin), tail = text.substr(end);
  EXPECT_EQ(errorOf(head + "levels: []\n" + tail), "c.yaml:20:9: error: 'levels' is an empty list: expected a list");
  EXPECT_EQ(errorOf(head + "levels: 3\n" + tail), "c.yaml:20:9: error: 'levels' is a value: expected a list");
  std::string levels;
  for (int i = 0; i < 7; ++i)
    levels += "  - {name: l" + std::to_string(i) + ", members: 2, bandwidth: 1 GB/s, achieved: 1, latency: 1 us}\n";
  EXPECT_EQ(errorOf(head + "levels:\n" + levels + tail), "c.yaml:27:5: error: a cluster has up to 6 levels");
}

TEST(ReadClusterErrors, whatIsNotYaml) {
  for (const char *text :
       {"", "name: [", "name: \"a", "{a: b", "a: b: c", "\t- a", "name: *x", "name: &a b", "!!t a", "? [a]\n: b",
        "--- \na: 1\n---\nb: 2\n", "\xff\xfe", "%", "%YAML 9", "- - - [", "a: |\n b\n c"}) {
    std::string error = errorOf(text);
    EXPECT_EQ(error.substr(0, 7), "c.yaml:") << text << ": " << error;
    EXPECT_NE(error.find(": error: "), std::string::npos) << text << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  std::string deep(4000, '[');
  EXPECT_EQ(errorOf(deep), "c.yaml:1:17: error: is nested more than 16 levels deep");
  EXPECT_EQ(errorOf("name: *x"),
            "c.yaml:1:7: error: anchors, aliases and tags are not part of a cluster file: expected a plain value");
}

TEST(ReadClusterErrors, truncatedFilesNeverPass) {
  // What follows the latency of the last level is optional.
  std::string text = clusterText();
  for (size_t length = 0; length < text.find("latency: 3 us"); length += 3)
    EXPECT_EQ(errorOf(text.substr(0, length)).substr(0, 7), "c.yaml:") << length;
}

TEST(ReadClusterErrors, damagedFilesAreReadOrRefused) {
  std::mt19937 random(3);
  const std::string text = clusterText(), bytes = "{}[]:,-'\"#|>&*!?%@ \n\t\xff"
                                                  "0a";
  int refused = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string damaged = text;
    for (int j = 0; j < 3; ++j)
      damaged[random() % damaged.size()] = bytes[random() % bytes.size()];
    std::string error = errorOf(damaged);
    refused += error != "no error";
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  EXPECT_GT(refused, 500);
}

TEST(ReadClusterErrors, filesThatAreNotThere) {
  EXPECT_EQ(readClusterFile("nowhere.yaml").error(),
            "nowhere.yaml:1:1: error: cannot read the cluster file: No such file or directory");
  std::string text = clusterText();
  size_t begin = text.find("device:\n"), end = text.find("levels:");
  text.replace(begin, end - begin, "device: nodevice.yaml\n");
  EXPECT_EQ(errorOf(text), "c.yaml:5:9: error: cannot read the device file 'nodevice.yaml': No such file or directory");
}

TEST(ReadClusterErrors, faultsInADeviceFileNameThatFile) {
  std::string path = testing::TempDir() + "device-fault.yaml";
  std::ofstream(path) << "name: a\nkind: b\nspeed: 3\n";
  std::string text = clusterText();
  size_t begin = text.find("device:\n"), end = text.find("levels:");
  text.replace(begin, end - begin, "device: device-fault.yaml\n");
  schedule::Result<Cluster> cluster = readClusterText(text, testing::TempDir() + "c.yaml");
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().substr(0, path.size() + 33), path + ":3:1: error: unknown key 'speed' ");
}

} // namespace
