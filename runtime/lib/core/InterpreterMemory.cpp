//===- InterpreterMemory.cpp - a rank's memory, as others see it ----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/interpreter.h"
#include <algorithm>
#include <cmath>
#include <cstring>

namespace drover::rt {

ElementRange Interpreter::stateRange(int64_t bucket) const {
  const BucketInfo &info = program.buckets[size_t(bucket)];
  return isSharded() ? rank.plan.shard(info) : ElementRange{0, info.elements};
}

BucketMemory Interpreter::shardAt(int64_t bucket, int64_t offset) const {
  ElementRange shard = rank.plan.shard(program.buckets[size_t(bucket)]);
  if (offset < 0)
    return {};
  return {at(offset) + (shard.first - stateRange(bucket).first) * 4, shard};
}

ParameterMemory Interpreter::parameterMemory() const {
  ParameterMemory memory{{}, program.isTraining() ? DROVER_F32 : program.computeDType};
  for (size_t bucket = 0; bucket < program.buckets.size(); ++bucket) {
    Space space = program.isTraining() ? Space::Master : Space::Parameter;
    int64_t offset = stages[0].buckets[bucket][space];
    ElementRange range =
        program.isTraining() ? stateRange(int64_t(bucket)) : ElementRange{0, program.buckets[bucket].elements};
    memory.buckets.push_back(offset < 0 ? BucketMemory{} : BucketMemory{at(offset), range});
  }
  return memory;
}

void Interpreter::initialize(const std::function<void(const ParameterMemory &)> &fill) {
  ParameterMemory memory = parameterMemory();
  if (device.isHost())
    return fill(memory);
  ParameterMemory ofHost = memory;
  std::vector<std::vector<uint8_t>> copies;
  for (BucketMemory &bucket : ofHost.buckets) {
    copies.emplace_back(bucket.data ? size_t(bucket.range.elements * byteSize(memory.dtype)) : 0);
    bucket.data = bucket.data ? copies.back().data() : nullptr;
  }
  fill(ofHost);
  for (size_t i = 0; i < copies.size(); ++i)
    device.toDevice(memory.buckets[i].data, copies[i].data(), int64_t(copies[i].size()));
}

HostShards Interpreter::readable(std::vector<BucketMemory> shards) {
  HostShards result{std::move(shards), {}};
  if (device.isHost())
    return result;
  for (BucketMemory &shard : result.buckets) {
    if (!shard.data)
      continue;
    std::vector<uint8_t> &copy = result.copies.emplace_back(size_t(shard.range.elements) * 4);
    device.toHost(copy.data(), shard.data, int64_t(copy.size()));
    shard.data = copy.data();
  }
  return result;
}

HostShards Interpreter::masterShards() {
  std::vector<BucketMemory> shards;
  for (size_t bucket = 0; bucket < program.buckets.size(); ++bucket)
    shards.push_back(shardAt(int64_t(bucket), stages[0].buckets[bucket][Space::Master]));
  return readable(std::move(shards));
}

HostShards Interpreter::gradientShards() {
  std::vector<BucketMemory> shards;
  for (size_t bucket = 0; bucket < program.buckets.size(); ++bucket)
    shards.push_back(shardAt(int64_t(bucket), gradientPlaces[bucket]));
  return readable(std::move(shards));
}

void Interpreter::read(const void *from, int64_t bytes, uint8_t *to) {
  if (device.isHost())
    std::memcpy(to, from, size_t(bytes));
  else
    device.toHost(to, from, bytes);
}

std::vector<uint8_t> Interpreter::outputs() {
  for (const Binding &binding : stages[0].bindings)
    if (binding[Space::Output] >= 0) {
      std::vector<uint8_t> values(static_cast<size_t>(program.outputBytes));
      read(at(binding[Space::Output]), program.outputBytes, values.data());
      return values;
    }
  return {};
}

int64_t Interpreter::nonfiniteParameter() {
  HostShards shards = gradientShards();
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    const ParameterInfo &parameter = program.parameters[i];
    const BucketMemory &shard = shards.buckets[size_t(parameter.bucket)];
    ElementRange part = shard.range.intersect({parameter.offset, parameter.localElements});
    if (parameter.frozen || !shard.data || part.elements == 0)
      continue;
    const float *gradient = reinterpret_cast<const float *>(shard.data) + (part.first - shard.range.first);
    if (!std::all_of(gradient, gradient + part.elements, [](float value) { return std::isfinite(value); }))
      return int64_t(i);
  }
  return -1;
}

} // namespace drover::rt
