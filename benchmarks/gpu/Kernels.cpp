//===- Kernels.cpp - gpu-benchmark: generated kernels ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// FOLDER/kernels.json, of benchmarks/gpu/prepare: launches with their arguments. What arguments hold follows from their
// number and place alone, here and where results were recorded: integers are indices below 32, floats multiples of
// 1/128 below 1, which bf16 has; positive where a kernel takes roots of them.
#include "Bench.h"
#include "drover/rt/dtype.h"
#include "drover/rt/error.h"
#include "drover/rt/json_reader.h"
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

using namespace drover;
using namespace drover::bench;

namespace {
struct Argument {
  bool isNumber = false;
  int64_t number = 0, bytes = 0, recorded = -1; // the latter: where results lie in the file of them
  std::string dtype;
};

struct LaunchInfo {
  std::string name, group;
  drover_gpu_kernel kernel = {};
  int64_t blocks = 0, leastBytes = 0, flops = 0;
  bool positive = false; // floats are
  std::vector<Argument> arguments;
};

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file)
    rt::fail(path, ": cannot be read");
  return text;
}

uint32_t noiseAt(uint64_t place, uint64_t which) {
  uint64_t mixed = (place + 1) * 0x9e3779b97f4a7c15u + which * 0xd1b54a32d192ed03u;
  return uint32_t((mixed ^ (mixed >> 29)) >> 16);
}

std::vector<uint8_t> contentsOf(const Argument &argument, uint64_t which, bool positive) {
  std::vector<uint8_t> bytes(size_t(argument.bytes), 0);
  auto fill = [&](auto zero, auto &&valueOf) {
    using Type = decltype(zero);
    for (size_t i = 0; i < bytes.size() / sizeof(Type); ++i) {
      Type value = valueOf(noiseAt(i, which));
      std::memcpy(bytes.data() + i * sizeof(Type), &value, sizeof(Type));
    }
  };
  auto fraction = [&](uint32_t noise) {
    return positive ? float(noise % 127 + 1) / 128 : (float(noise % 256) - 128) / 128;
  };
  if (argument.dtype == "bf16")
    fill(uint16_t{}, [&](uint32_t noise) { return rt::floatToBfloat(fraction(noise)); });
  else if (argument.dtype == "f32")
    fill(float{}, fraction);
  else if (argument.dtype == "f64")
    fill(double{}, [&](uint32_t noise) { return double(fraction(noise)); });
  else if (argument.dtype == "i64")
    fill(int64_t{}, [](uint32_t noise) { return int64_t(noise % 32); });
  else if (argument.dtype == "i32")
    fill(int32_t{}, [](uint32_t noise) { return int32_t(noise % 32); });
  else
    std::fill(bytes.begin(), bytes.end(), uint8_t(1));
  return bytes;
}

double valueAt(const uint8_t *bytes, const std::string &dtype, size_t place) {
  auto load = [&](auto value) {
    std::memcpy(&value, bytes + place * sizeof(value), sizeof(value));
    return value;
  };
  if (dtype == "bf16")
    return rt::bfloatToFloat(load(uint16_t{}));
  if (dtype == "f32")
    return load(float{});
  if (dtype == "f64")
    return load(double{});
  if (dtype == "i64")
    return double(load(int64_t{}));
  if (dtype == "i32")
    return load(int32_t{});
  return bytes[place];
}

/// The largest deviation over the largest value, in units of what the type's rounding allows; NaNs must be the same.
double deviation(const uint8_t *found, const uint8_t *expected, const Argument &argument) {
  size_t size = argument.dtype == "bf16"                             ? 2
                : argument.dtype == "f32" || argument.dtype == "i32" ? 4
                : argument.dtype == "f64" || argument.dtype == "i64" ? 8
                                                                     : 1;
  double largest = 0, worst = 0;
  for (size_t i = 0; i < size_t(argument.bytes) / size; ++i) {
    double have = valueAt(found, argument.dtype, i), want = valueAt(expected, argument.dtype, i);
    if (std::isnan(have) != std::isnan(want))
      return HUGE_VAL;
    if (std::isnan(want) || have == want)
      continue;
    largest = std::max(largest, std::abs(want));
    worst = std::max(worst, std::abs(have - want));
  }
  // Approximate functions of the device are exact to a few units in the last place of f32; sums have the same order.
  double allowed = argument.dtype == "bf16" ? 0x1p-7 : argument.dtype == "f32" ? 2e-5 : 1e-6;
  return worst == 0 ? 0 : worst / (allowed * std::max(largest, 1e-30));
}

LaunchInfo readLaunch(const rt::JsonReader &json) {
  LaunchInfo launch;
  launch.name = json.at("kernel").text();
  launch.group = json.at("group").text();
  launch.blocks = json.at("blocks").integer();
  launch.leastBytes = json.integerOr("least_bytes", 0);
  launch.flops = json.integerOr("flops", 0);
  launch.positive = json.has("positive") && json.at("positive").boolean();
  launch.kernel.threads = uint32_t(json.at("threads").integer());
  launch.kernel.shared_bytes = uint32_t(json.at("shared").integer());
  launch.kernel.check = json.at("checks").boolean() ? "" : nullptr;
  for (const rt::JsonReader &each : json.at("arguments").elements()) {
    Argument argument;
    argument.isNumber = each.has("number");
    if (argument.isNumber) {
      argument.number = each.at("number").integer();
    } else {
      argument.bytes = each.at("bytes").integer();
      argument.dtype = each.at("dtype").text();
      argument.recorded = each.integerOr("recorded", -1);
    }
    launch.arguments.push_back(argument);
  }
  launch.kernel.num_arguments = uint32_t(launch.arguments.size());
  return launch;
}

/// A set of a launch's memory.
class Operands {
public:
  Operands(rt::Device &device, const LaunchInfo &launch, rt::DeviceMemory &errors)
      : launch(launch), words(errors.data()) {
    rt::Stream &stream = device.stream(DROVER_STREAM_COMPUTE);
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      const Argument &argument = launch.arguments[i];
      if (argument.isNumber) {
        memory.emplace_back();
        continue;
      }
      memory.push_back(device.allocate(std::max<int64_t>(argument.bytes, 1)));
      std::vector<uint8_t> contents = contentsOf(argument, i, launch.positive);
      device.copy(memory.back().data(), contents.data(), argument.bytes, stream);
    }
    finish(device);
    for (size_t i = 0; i < memory.size(); ++i) {
      values.push_back(launch.arguments[i].isNumber ? launch.arguments[i].number
                                                    : int64_t(reinterpret_cast<uintptr_t>(memory[i].data())));
    }
    values.push_back(1);
    values.push_back(int64_t(reinterpret_cast<uintptr_t>(words)));
    for (int64_t &value : values)
      pointers.push_back(&value);
  }

  void enqueue(rt::Device &device, rt::Kernel &kernel) {
    device.launch(kernel, launch.blocks, pointers.data(), device.stream(DROVER_STREAM_COMPUTE));
  }
  uint8_t *at(size_t argument) { return memory[argument].data(); }

private:
  const LaunchInfo &launch;
  uint8_t *words;
  std::vector<rt::DeviceMemory> memory;
  std::vector<int64_t> values;
  std::vector<void *> pointers;
};

/// The worst deviation over the arguments that were recorded, 1 being allowed.
double check(rt::Device &device, const LaunchInfo &launch, rt::Kernel &kernel, rt::DeviceMemory &errors,
             const std::string &recorded) {
  Operands operands(device, launch, errors);
  operands.enqueue(device, kernel);
  double worst = 0;
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const Argument &argument = launch.arguments[i];
    if (argument.isNumber || argument.recorded < 0 || argument.bytes == 0)
      continue;
    if (size_t(argument.recorded + argument.bytes) > recorded.size())
      rt::fail("results of kernel ", launch.name, " are not in the file of them");
    rt::DeviceMemory seen = device.allocatePinned(argument.bytes);
    device.copy(seen.data(), operands.at(i), argument.bytes, device.stream(DROVER_STREAM_COMPUTE));
    finish(device);
    const auto *expected = reinterpret_cast<const uint8_t *>(recorded.data()) + argument.recorded;
    worst = std::max(worst, deviation(seen.data(), expected, argument));
  }
  return worst;
}

double timeOfLaunch(rt::Device &device, const LaunchInfo &launch, rt::Kernel &kernel, rt::DeviceMemory &errors,
                    double seconds) {
  int64_t bytes = 0;
  for (const Argument &argument : launch.arguments)
    bytes += argument.bytes;
  // More sets than the cache (50 MiB of an H100) holds, so that memory is what is measured.
  constexpr int64_t wanted = int64_t(256) << 20;
  int64_t sets = seconds > 0 ? std::max<int64_t>(1, std::min<int64_t>(8, wanted / std::max<int64_t>(bytes, 1))) : 1;
  std::vector<std::unique_ptr<Operands>> operands;
  std::vector<std::function<void()>> work;
  for (int64_t set = 0; set < sets; ++set) {
    operands.push_back(std::make_unique<Operands>(device, launch, errors));
    work.emplace_back([&, own = operands.back().get()] { own->enqueue(device, kernel); });
  }
  return timeOf(device, work, seconds);
}
} // namespace

int bench::runKernels(rt::Device &device, const std::string &folder, bool checks, double seconds) {
  std::string file = folder + "/kernels.json", recorded = checks ? readFile(folder + "/results.bin") : "";
  nlohmann::json document = nlohmann::json::parse(readFile(file), nullptr, false);
  if (document.is_discarded())
    rt::fail(file, ": not JSON");
  rt::JsonReader json(document, file);
  std::map<std::string, std::pair<std::string, std::string>> images; // cubin and ptx
  std::vector<LaunchInfo> launches;
  for (const rt::JsonReader &each : json.at(checks ? "checked" : "timed").elements())
    launches.push_back(readLaunch(each));
  rt::DeviceMemory errors = device.allocate(16);
  device.fill(errors.data(), 0, 16, device.stream(DROVER_STREAM_COMPUTE));
  int wrong = 0;
  for (LaunchInfo &launch : launches) {
    launch.kernel.name = launch.name.c_str();
    auto [image, isNew] = images.try_emplace(launch.name);
    if (isNew) {
      image->second = {readFile(folder + "/" + launch.name + ".cubin"), readFile(folder + "/" + launch.name + ".ptx")};
      const auto &[cubin, ptx] = image->second;
      device.load({launch.name.c_str(), cubin.data(), cubin.size(), ptx.c_str(), ptx.size(), 90, 0});
    }
    rt::Kernel &kernel = device.kernel(launch.kernel);
    std::printf("{\"kernel\": \"%s\", \"group\": \"%s\", ", launch.name.c_str(), launch.group.c_str());
    if (checks) {
      double worst = check(device, launch, kernel, errors, recorded);
      wrong += !(worst <= 1);
      std::printf("\"deviation\": %.4g}\n", std::isfinite(worst) ? worst : 1e30);
      continue;
    }
    double time = timeOfLaunch(device, launch, kernel, errors, seconds);
    std::printf("\"seconds\": %.9g, \"least_bytes\": %lld, \"flops\": %lld}\n", time,
                static_cast<long long>(launch.leastBytes), static_cast<long long>(launch.flops));
    std::fflush(stdout);
  }
  return wrong ? 1 : 0;
}
