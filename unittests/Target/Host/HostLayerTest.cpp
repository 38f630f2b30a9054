//===- HostLayerTest.cpp - layers of Llama and GPT-2 on the CPU -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "HostHarness.h"
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace drover::test;

namespace {

std::string read(const std::string &name) {
  std::ifstream file(std::string(DROVER_HOST_INPUTS) + "/" + name + ".mlir");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class HostLayer : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Models, HostLayer, ::testing::Values("llama_f32", "llama_bf16", "gpt2_f32", "gpt2_bf16"),
                         [](const auto &info) { return std::string(info.param); });

// Differences of roundings add up through a layer: a few units in the last place.
Tolerance toleranceOf(const std::string &name) {
  return name.find("bf16") == std::string::npos ? Tolerance{1e-5, 1e-5} : Tolerance{2e-2, 2e-2};
}

TEST_P(HostLayer, ForwardIsTheInterpreters) { expectMatches(read(GetParam()), toleranceOf(GetParam()), 0, "forward"); }

TEST_P(HostLayer, BackwardIsTheInterpreters) {
  expectMatches(read(GetParam()), toleranceOf(GetParam()), 0, "backward");
}

TEST_P(HostLayer, BackwardOfTheFirstMicrobatchIsTheInterpreters) {
  expectMatches(read(GetParam()), toleranceOf(GetParam()), 0, "backward", 0);
}

} // namespace
