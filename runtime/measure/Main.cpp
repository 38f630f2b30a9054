//===- Main.cpp - what this machine achieves, as JSON ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Measure.h"
#include "drover/rt/error.h"
#include "drover/rt/launcher.h"
#include "drover/rt/option_parser.h"
#include <cstdio>
#include <thread>

using namespace drover::rt;

namespace {

struct Arguments {
  std::string what;
  int64_t cores = 0, turns = 5, ranks = 2;
  double deadline = 60;
};

/// Processes where a launcher started several, else threads.
nlohmann::ordered_json collectives(const Arguments &arguments, const MeasureOptions &options) {
  std::optional<Launcher> launcher = findLauncher(processEnvironment());
  WorldChoice choice = chooseWorld(launcher, launcher && launcher->size > 1 ? launcher->size : arguments.ranks, 0, "");
  nlohmann::ordered_json rows;
  runRanks(choice, {arguments.deadline, arguments.deadline, arguments.deadline}, [&](World &world) {
    nlohmann::ordered_json measured = measureCollectives(world, options);
    if (world.rank() == 0)
      rows = {{"backend", world.backend()}, {"rows", measured}};
  });
  return rows;
}

bool parse(int argc, char **argv, Arguments &arguments) {
  OptionParser parser("drover-measure kernels|collectives [options]",
                      "Prints what this machine achieves as JSON, for drover calibrate.");
  parser.integer("cores", &arguments.cores, 1, "N", "cores that ranks share (all)");
  parser.integer("turns", &arguments.turns, 1, "N", "times that everything is measured (5)", 1000);
  parser.integer("ranks", &arguments.ranks, 2, "N", "threads that take part in collectives (2)", 1024);
  parser.positive("deadline", &arguments.deadline, "SECONDS", "of one wait (60)");
  std::vector<std::string> rest(argv + 1, argv + argc);
  if (!rest.empty() && (rest.front() == "kernels" || rest.front() == "collectives")) {
    arguments.what = rest.front();
    rest.erase(rest.begin());
  }
  if (!parser.parse(rest)) {
    std::fputs(parser.help().c_str(), stdout);
    return false;
  }
  if (arguments.what.empty())
    fail("expected what to measure: kernels or collectives");
  return true;
}

} // namespace

int main(int argc, char **argv) {
  try {
    Arguments arguments;
    if (!parse(argc, argv, arguments))
      return 0;
    MeasureOptions options;
    options.cores = static_cast<int>(arguments.cores ? arguments.cores : std::thread::hardware_concurrency());
    options.turns = static_cast<int>(arguments.turns);
    nlohmann::ordered_json result =
        arguments.what == "kernels" ? measureKernels(options) : collectives(arguments, options);
    if (!result.is_null())
      std::printf("%s\n", result.dump(1).c_str());
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
