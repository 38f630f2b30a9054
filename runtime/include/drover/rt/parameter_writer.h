//===- parameter_writer.h - tensors of all ranks into one file --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_PARAMETER_WRITER_H
#define DROVER_RT_PARAMETER_WRITER_H

#include "drover/rt/communicator.h"
#include "drover/rt/parameter_store.h"
#include "drover/rt/safetensors.h"
#include <functional>

namespace drover::rt {

/// Puts tensors of the model together from the shards of all ranks, at rank 0, a bucket at a time.
class ParameterCollector {
public:
  /// `world` is null where there is one rank. `own` has this rank's shards (RankPlan::shard) in f32, null where another
  /// stage owns the bucket.
  ParameterCollector(const Program &program, const RankPlan &plan, Communicator *world,
                     const std::vector<BucketMemory> &own)
      : program(program), plan(plan), world(world), own(own) {}

  /// Called by all ranks. `take` gets each parameter of the buckets in f32 and the model's shape, at rank 0; those that
  /// `wanted` refuses are left out. Throws Error where replicas differ.
  void collect(const std::function<bool(const ParameterInfo &)> &wanted,
               const std::function<void(const ParameterInfo &, const float *)> &take);

private:
  using Tensors = std::vector<std::pair<const ParameterInfo *, std::vector<float>>>;

  void collectBucket(int64_t bucket, Tensors &tensors);
  void takeShard(int64_t bucket, int64_t source, const float *shard, ElementRange range, Tensors &tensors);

  const Program &program;
  const RankPlan &plan;
  Communicator *world;
  const std::vector<BucketMemory> &own;
  std::vector<std::vector<bool>> filled; // by tensor of the bucket: elements that an earlier rank gave
};

/// Writes parameters (or gradients: without `frozen` ones) with the model's names and shapes; called by all ranks.
void writeParameters(const std::string &path, const Program &program, const RankPlan &plan, Communicator *world,
                     const std::vector<BucketMemory> &own, bool frozen);

} // namespace drover::rt

#endif // DROVER_RT_PARAMETER_WRITER_H
