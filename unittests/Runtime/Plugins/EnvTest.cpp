//===- EnvTest.cpp - the environment plugin, and NCCL itself with it ------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Plugin.h"
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sys/wait.h>
#include <vector>

using namespace drover::rt::test;

namespace {

TEST(Env, theProcessEnvironmentGoesBeforeTheSettings) {
  Plugin plugin(DROVER_ENV_PLUGIN);
  auto *env = plugin.find<const drover_nccl_env_v1>("ncclEnvPlugin_v1");
  EXPECT_STREQ(env->name, "drover");
  EXPECT_EQ(plugin.use(testSettings()), "");
  EXPECT_EQ(env->init(2, 28, 9, ""), 0);
  ::unsetenv("NCCL_COMM_ID");
  EXPECT_STREQ(env->getEnv("NCCL_COMM_ID"), "127.0.0.1:23456");
  EXPECT_EQ(env->getEnv("NCCL_NOTHING"), nullptr);
  ::setenv("NCCL_COMM_ID", "127.0.0.1:1", 1);
  EXPECT_STREQ(env->getEnv("NCCL_COMM_ID"), "127.0.0.1:1");
  ::unsetenv("NCCL_COMM_ID");
  EXPECT_EQ(env->finalize(), 0);
}

TEST(Env, withoutUsableSettingsItIsTheProcessEnvironment) {
  Plugin plugin(DROVER_ENV_PLUGIN);
  auto *env = plugin.find<const drover_nccl_env_v1>("ncclEnvPlugin_v1");
  EXPECT_EQ(plugin.use("[]"), "nccl settings: no 'format'");
  EXPECT_EQ(env->getEnv("NCCL_COMM_ID"), nullptr);
  EXPECT_STREQ(env->getEnv("PATH"), std::getenv("PATH"));
}

struct Probe {
  int status = -1;
  std::string output;
};

Probe probe(const std::string &library, const std::string &variables) {
  std::string command = "env -u NCCL_COMM_ID NCCL_DEBUG=INFO NCCL_SOCKET_IFNAME=lo " + variables + " '" +
                        DROVER_NCCL_PROBE + "' '" + library + "' 2>&1";
  Probe result;
  FILE *pipe = ::popen(command.c_str(), "r");
  char text[4096];
  while (pipe && std::fgets(text, sizeof(text), pipe))
    result.output += text;
  int status = pipe ? ::pclose(pipe) : -1;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

/// NCCL of this machine, not a stand-in; empty where there is none.
std::string findNccl() {
  std::vector<std::string> candidates = {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2",
                                         "/usr/local/cuda/lib/libnccl.so.2"};
  if (const char *asked = std::getenv("DROVER_TEST_NCCL"))
    candidates = {asked};
  for (const std::string &candidate : candidates)
    if (probe(candidate, "NCCL_DEBUG=WARN").status == 0)
      return candidate;
  return "";
}

/// NCCL's first call needs no GPU, and loads the plugin: what the settings say is what NCCL reads.
TEST(Env, ncclItselfLoadsItWithoutAGpu) {
  std::string library = findNccl();
  if (library.empty())
    GTEST_SKIP() << "no libnccl.so.2 here; DROVER_TEST_NCCL names one";
  Probe without = probe(library, "");
  ASSERT_EQ(without.status, 0) << without.output;
  int version = 0;
  std::sscanf(without.output.substr(without.output.find("version ")).c_str(), "version %d", &version);
  if (version < 22800)
    GTEST_SKIP() << library << " is of version " << version << ", environment plugins come with 22800";
  EXPECT_EQ(without.output.find("127.0.0.1:23456"), std::string::npos);

  std::string file = ::testing::TempDir() + "nccl-settings.json";
  std::ofstream(file) << testSettings();
  std::string plugin = std::string("NCCL_ENV_PLUGIN='") + DROVER_ENV_PLUGIN + "' ";
  Probe with = probe(library, plugin + "DROVER_RT_NCCL_SETTINGS='" + file + "'");
  EXPECT_EQ(with.status, 0) << with.output;
  EXPECT_NE(with.output.find("Using drover (v1)"), std::string::npos) << with.output;
  EXPECT_NE(with.output.find("NCCL_COMM_ID set by environment to 127.0.0.1:23456"), std::string::npos) << with.output;

  Probe own = probe(library, plugin + "NCCL_COMM_ID=127.0.0.1:34567 DROVER_RT_NCCL_SETTINGS='" + file + "'");
  EXPECT_NE(own.output.find("NCCL_COMM_ID set by environment to 127.0.0.1:34567"), std::string::npos) << own.output;
}

} // namespace
