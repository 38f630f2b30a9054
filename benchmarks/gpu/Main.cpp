//===- Main.cpp - gpu-benchmark: kernels and products of a device ---------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// One of the programs of benchmarks/gpu/run; prints a JSON object a line.
// usage: gpu-benchmark device | copy BYTES | check FOLDER | kernels FOLDER | matmuls FILE   [SECONDS of each
// measurement]
//===----------------------------------------------------------------------===//
#include "Bench.h"
#include "drover/rt/error.h"
#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace drover;
using namespace drover::bench;
using Clock = std::chrono::steady_clock;

void bench::finish(rt::Device &device) {
  auto deadline = Clock::now() + std::chrono::seconds(60);
  while (!device.isIdle()) {
    if (Clock::now() > deadline)
      rt::fail(device.describe(), ": still busy after 60 s");
    std::this_thread::yield();
  }
}

double bench::timeOf(rt::Device &device, const std::vector<std::function<void()>> &work, double seconds) {
  rt::Stream &stream = device.stream(DROVER_STREAM_COMPUTE);
  for (const std::function<void()> &each : work) // what is made at a first call
    each();
  finish(device);
  auto timed = [&](rt::Graph &graph, int launches) {
    Clock::time_point start = Clock::now();
    for (int i = 0; i < launches; ++i)
      device.launch(graph, stream);
    finish(device);
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  auto graphOf = [&](int calls) {
    device.beginGraph();
    for (int i = 0; i < calls; ++i)
      for (const std::function<void()> &each : work)
        each();
    return device.endGraph();
  };
  std::unique_ptr<rt::Graph> once = graphOf(1);
  timed(*once, 1);
  double first = timed(*once, 1);
  // A graph of at least a millisecond, so that its launch does not count.
  int calls = seconds > 0 ? std::max(1, std::min(50, int(1e-3 / std::max(first, 1e-6)))) : 1;
  std::unique_ptr<rt::Graph> graph = graphOf(calls);
  double best = first / double(work.size());
  constexpr int turns = 5;
  int launches = std::max(1, int(seconds / turns / std::max(first * calls, 1e-6)));
  for (int turn = 0; turn < (seconds > 0 ? turns : 1); ++turn)
    best = std::min(best, timed(*graph, launches) / (double(launches) * calls * double(work.size())));
  return best;
}

/// Bytes/s that a copy within the device reads and writes.
static int runCopy(rt::Device &device, int64_t bytes, double seconds) {
  rt::DeviceMemory from = device.allocate(bytes), to = device.allocate(bytes);
  rt::Stream &stream = device.stream(DROVER_STREAM_COMPUTE);
  device.fill(from.data(), 1, bytes, stream);
  double time = timeOf(device, {[&] { device.copy(to.data(), from.data(), bytes, stream); }}, seconds);
  std::printf("{\"bytes\": %lld, \"seconds\": %.9g, \"bytes_per_s\": %.6g}\n", static_cast<long long>(bytes), time,
              2 * double(bytes) / time);
  return 0;
}

int main(int argc, char **argv) {
  std::string command = argc > 1 ? argv[1] : "", argument = argc > 2 ? argv[2] : "";
  double seconds = argc > 3 ? std::atof(argv[3]) : 0.05;
  try {
    if (command != "device" && argument.empty())
      rt::fail("usage: gpu-benchmark device | copy BYTES | check FOLDER | kernels FOLDER | matmuls FILE  [SECONDS]");
    std::unique_ptr<rt::Device> device = rt::openCudaDevice({});
    if (command == "copy")
      return runCopy(*device, std::atoll(argument.c_str()), seconds);
    if (command == "check" || command == "kernels")
      return runKernels(*device, argument, command == "check", seconds);
    if (command == "matmuls")
      return runMatmuls(*device, argument, seconds);
    if (command != "device")
      rt::fail("gpu-benchmark: no such command: ", command);
    auto [free, total] = device->memoryInfo();
    std::printf("{\"device\": \"%s\", \"multiprocessors\": %d, \"free_bytes\": %lld, \"total_bytes\": %lld}\n",
                device->describe().c_str(), device->multiprocessors(), static_cast<long long>(free),
                static_cast<long long>(total));
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
