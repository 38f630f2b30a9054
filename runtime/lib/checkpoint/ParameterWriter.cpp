//===- ParameterWriter.cpp - tensors of all ranks into one file -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/parameter_layout.h"
#include "drover/rt/parameter_writer.h"

namespace drover::rt {

/// Copies a rank's elements to their places. Where another rank was first, the bits must be the same: a parameter that
/// is replicated stays so.
void ParameterCollector::takeShard(int64_t bucket, int64_t source, const float *shard, ElementRange range,
                                   Tensors &tensors) {
  Coordinates place = program.grid.coordinates(source);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ParameterInfo &parameter = *tensors[i].first;
    std::vector<float> &values = tensors[i].second;
    ElementRange part = range.intersect({parameter.offset, parameter.localElements});
    if (parameter.bucket != bucket || part.elements == 0)
      continue;
    TensorLayout layout(program.grid, place, parameter.shape, parameter.localShape, parameter.cuts);
    layout.forEachRun(part.first - parameter.offset, part.elements, [&](int64_t local, int64_t global, int64_t length) {
      if (global < 0)
        return;
      const float *from = shard + (parameter.offset + local - range.first);
      float *to = values.data() + global;
      // Replicas give whole runs alike, so that the first element stands for the run.
      if (filled[i][size_t(global)] && std::memcmp(to, from, size_t(length) * sizeof(float)) != 0)
        fail("parameter '", parameter.name, "' on rank ", source, " differs from its replica on an earlier rank");
      std::memcpy(to, from, size_t(length) * sizeof(float));
      std::fill_n(filled[i].begin() + global, length, true);
    });
  }
}

void ParameterCollector::collectBucket(int64_t bucket, Tensors &tensors) {
  int64_t elements = program.buckets[size_t(bucket)].elements / plan.fsdpSize;
  std::vector<float> received;
  for (int64_t source = 0; source < program.grid.ranks(); ++source) {
    if (program.grid.coordinates(source)[DROVER_AXIS_PP] != program.ownerStage(bucket))
      continue;
    ElementRange range = shardOf(program.grid, source, program.buckets[size_t(bucket)]);
    const auto *mine = reinterpret_cast<const float *>(own[size_t(bucket)].data);
    if (source == plan.rank && plan.rank != 0)
      world->send(mine, elements, DROVER_F32, 0).wait();
    if (plan.rank != 0)
      continue;
    if (source != 0) {
      received.resize(size_t(elements));
      world->receive(received.data(), elements, DROVER_F32, int(source)).wait();
    }
    takeShard(bucket, source, source == 0 ? mine : received.data(), range, tensors);
  }
}

void ParameterCollector::collect(const std::function<bool(const ParameterInfo &)> &wanted,
                                 const std::function<void(const ParameterInfo &, const float *)> &take) {
  for (int64_t bucket = 0; bucket < int64_t(program.buckets.size()); ++bucket) {
    Tensors tensors;
    filled.clear();
    for (const ParameterInfo &parameter : program.parameters)
      if (parameter.bucket == bucket && wanted(parameter)) {
        size_t size = plan.rank == 0 ? size_t(parameter.elements) : 0;
        tensors.emplace_back(&parameter, std::vector<float>(size));
        filled.emplace_back(size);
      }
    if (tensors.empty())
      continue;
    collectBucket(bucket, tensors);
    if (plan.rank == 0)
      for (const auto &[parameter, values] : tensors)
        take(*parameter, values.data());
  }
}

void writeParameters(const std::string &path, const Program &program, const RankPlan &plan, Communicator *world,
                     const std::vector<BucketMemory> &own, bool frozen) {
  auto wanted = [&](const ParameterInfo &parameter) { return frozen || !parameter.frozen; };
  std::unique_ptr<TensorWriter> writer;
  if (plan.rank == 0) {
    std::vector<TensorSpec> specs;
    for (const ParameterInfo &parameter : program.parameters)
      if (wanted(parameter))
        specs.push_back({parameter.name, DROVER_F32, parameter.shape});
    writer = std::make_unique<TensorWriter>(path, std::move(specs));
  }
  ParameterCollector(program, plan, world, own)
      .collect(wanted,
               [&](const ParameterInfo &parameter, const float *values) { writer->write(parameter.name, values); });
  if (writer)
    writer->commit();
}

} // namespace drover::rt
