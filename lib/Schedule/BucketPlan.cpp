//===- BucketPlan.cpp - where and when a stage holds its buckets ----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/BucketPlan.h"
#include "drover/Schedule/SlotAllocator.h"
#include <algorithm>
#include <map>
#include <set>

using namespace drover::schedule;

namespace {

bool isHeld(const StepProgram &step, const Bucket &bucket, int32_t stage) {
  return std::any_of(bucket.chunks.begin(), bucket.chunks.end(),
                     [&](int32_t chunk) { return step.stageOf(static_cast<uint32_t>(chunk)) == stage; });
}

class Planner {
public:
  Planner(const StepProgram &step, const Batch &batch, const std::vector<ChunkAccess> &accesses,
          const std::vector<const GlobalItem *> &items)
      : step(step), batch(batch), accesses(accesses), items(items) {}

  BucketPlan run(Stage &stage, int64_t &base);

private:
  void findPeriods();
  void findGathers();
  int64_t place(std::vector<BucketInstance> &instances, const std::vector<std::vector<uint32_t>> &byBucket,
                bool isDynamic(const StepProgram &, const Bucket &), Space space, int64_t elementBytes, Stage &stage,
                int64_t &base);
  void add(std::vector<BucketInstance> &instances, std::vector<std::vector<uint32_t>> &byBucket, int32_t bucket,
           int64_t first, int64_t last) {
    byBucket[bucket].push_back(static_cast<uint32_t>(instances.size()));
    instances.push_back({bucket, first, last, -1, {}});
  }

  const StepProgram &step;
  const Batch &batch;
  const std::vector<ChunkAccess> &accesses;
  const std::vector<const GlobalItem *> &items;
  std::vector<uint32_t> groupOf; // by microbatch
  BucketPlan plan;
};

/// Instances of accumulators: one a step, or one a group of microbatches; and of parameters: one a step, or one for
/// each time in which runs of the chunk's phases follow each other or overlap.
void Planner::findPeriods() {
  using Period = std::pair<int64_t, int64_t>;
  std::vector<std::map<uint32_t, Period>> sums(step.buckets.size());                   // by group
  std::vector<std::map<std::pair<uint32_t, Phase>, Period>> uses(step.buckets.size()); // by group and phase
  auto extend = [](auto &periods, auto key, int64_t time) {
    periods.insert({key, {time, time}}).first->second.second = time;
  };
  for (const GlobalItem *item : items) {
    const PhaseAccess &access = accesses[item->chunk][static_cast<size_t>(item->phase)];
    uint32_t group = groupOf[item->microbatch];
    for (int32_t bucket : access.accumulators)
      extend(sums[bucket], reducesEveryRun(step, step.buckets[bucket]) ? group : 0u, item->ordinal);
    for (int32_t bucket : access.parameters)
      extend(uses[bucket], std::make_pair(group, item->phase), item->ordinal);
  }
  for (int32_t b = 0; b < static_cast<int32_t>(step.buckets.size()); ++b) {
    for (const auto &[group, period] : sums[b])
      add(plan.accumulators, plan.accumulatorsOf, b, period.first, period.second);
    std::vector<Period> periods;
    for (const auto &[key, period] : uses[b])
      periods.push_back(period);
    std::sort(periods.begin(), periods.end());
    bool isDynamic = hasDynamicParameters(step, step.buckets[b]);
    std::vector<Period> merged;
    for (const Period &period : periods)
      if (merged.empty() || (isDynamic && period.first > merged.back().second + 1))
        merged.push_back(period);
      else
        merged.back().second = std::max(merged.back().second, period.second);
    for (const Period &period : merged)
      add(plan.parameters, plan.parametersOf, b, period.first, period.second);
  }
}

/// A gather is issued a chunk ahead: before the first use of what is gathered before it. Where the bucket is still
/// there at that time it stays.
void Planner::findGathers() {
  plan.gatherBefore.resize(items.size());
  plan.reduceBehind.resize(items.size());
  std::vector<uint32_t> inOrder;
  for (uint32_t i = 0; i < plan.parameters.size(); ++i) {
    const Bucket &bucket = step.buckets[plan.parameters[i].bucket];
    if (needsGather(step, bucket) && step.stagesOf(bucket).size() == 1)
      inOrder.push_back(i);
  }
  std::sort(inOrder.begin(), inOrder.end(), [&](uint32_t a, uint32_t b) {
    return std::make_pair(plan.parameters[a].first, a) < std::make_pair(plan.parameters[b].first, b);
  });
  int64_t issue = 0, firstUse = -1; // of the gathers before
  std::map<int32_t, uint32_t> kept; // by bucket: its latest instance
  for (uint32_t i : inOrder) {
    BucketInstance &instance = plan.parameters[i];
    int64_t ahead = instance.first == firstUse ? issue : std::max<int64_t>(firstUse, 0);
    auto before = kept.find(instance.bucket);
    if (before != kept.end() && plan.parameters[before->second].last >= ahead) {
      plan.parameters[before->second].last = instance.last;
      std::vector<uint32_t> &all = plan.parametersOf[instance.bucket];
      all.erase(std::find(all.begin(), all.end(), i));
      continue;
    }
    kept[instance.bucket] = i;
    issue = ahead;
    firstUse = instance.first;
    instance.first = issue;
    plan.gatherBefore[issue].push_back(i);
  }
  for (uint32_t i = 0; i < plan.accumulators.size(); ++i) {
    const Bucket &bucket = step.buckets[plan.accumulators[i].bucket];
    if (needsReduce(step, bucket) && step.stagesOf(bucket).size() == 1)
      plan.reduceBehind[plan.accumulators[i].last].push_back(i);
  }
}

/// The last instance to lie at each place, while instances come in order of time.
class Occupants {
public:
  /// Puts an instance at [begin, end) and returns those that lay there.
  std::vector<uint32_t> replace(int64_t begin, int64_t end, uint32_t instance) {
    cutAt(begin);
    cutAt(end);
    std::set<uint32_t> old;
    for (auto range = ranges.lower_bound(begin); range != ranges.end() && range->first < end;
         range = ranges.erase(range))
      old.insert(range->second.second);
    ranges[begin] = {end, instance};
    return {old.begin(), old.end()};
  }

private:
  void cutAt(int64_t place) {
    auto range = ranges.lower_bound(place);
    if (range == ranges.begin())
      return;
    --range;
    if (range->second.first <= place)
      return;
    ranges[place] = range->second;
    range->second.first = place;
  }

  std::map<int64_t, std::pair<int64_t, uint32_t>> ranges; // begin -> end, instance
};

/// Returns the most bytes that are alive at once.
int64_t Planner::place(std::vector<BucketInstance> &instances, const std::vector<std::vector<uint32_t>> &byBucket,
                       bool isDynamic(const StepProgram &, const Bucket &), Space space, int64_t elementBytes,
                       Stage &stage, int64_t &base) {
  std::vector<uint32_t> dynamic;
  std::vector<SlotRequest> requests;
  for (uint32_t b = 0; b < byBucket.size(); ++b) {
    if (isDynamic(step, step.buckets[b])) {
      for (uint32_t i : byBucket[b]) {
        dynamic.push_back(i);
        requests.push_back({step.buckets[b].elements * elementBytes, instances[i].first, instances[i].last, 0});
      }
      continue;
    }
    for (size_t i = 0; i < byBucket[b].size(); ++i) {
      BucketInstance &instance = instances[byBucket[b][i]];
      instance.offset = stage.buckets[b][space];
      if (i > 0)
        instance.predecessors = {byBucket[b][i - 1]};
    }
  }
  int64_t bytes = placeSlots(requests);
  for (size_t i = 0; i < dynamic.size(); ++i)
    instances[dynamic[i]].offset = base + requests[i].offset;
  std::sort(dynamic.begin(), dynamic.end(), [&](uint32_t a, uint32_t b) {
    return std::make_pair(instances[a].first, a) < std::make_pair(instances[b].first, b);
  });
  Occupants occupants;
  for (uint32_t i : dynamic) {
    BucketInstance &instance = instances[i];
    int64_t size = step.buckets[instance.bucket].elements * elementBytes;
    if (size > 0)
      instance.predecessors = occupants.replace(instance.offset, instance.offset + size, i);
  }
  base += bytes;
  return peakBytes(requests);
}

BucketPlan Planner::run(Stage &stage, int64_t &base) {
  for (size_t group = 0; group < batch.groups.size(); ++group)
    groupOf.insert(groupOf.end(), batch.groups[group], static_cast<uint32_t>(group));
  plan.parametersOf.resize(step.buckets.size());
  plan.accumulatorsOf.resize(step.buckets.size());
  findPeriods();
  findGathers();
  stage.memory.gradients +=
      place(plan.accumulators, plan.accumulatorsOf, hasDynamicAccumulators, Space::Accumulator, 4, stage, base);
  stage.memory.parameters += place(plan.parameters, plan.parametersOf, hasDynamicParameters, Space::Parameter,
                                   bytesOf(step.computeType), stage, base);
  return std::move(plan);
}

} // namespace

int64_t drover::schedule::placeLastingSpaces(const StepProgram &step, int32_t stageIndex, Stage &stage) {
  int64_t end = 0;
  auto take = [&](int64_t bytes, int64_t &category) {
    int64_t offset = end;
    end = alignTo(end + bytes, kSlotAlignment);
    category += bytes;
    return offset;
  };
  Memory &memory = stage.memory;
  int64_t scalars = 0, scalarOffset = take(kScalarBytes, scalars);
  bool moments = step.plan.optimizer == "adamw";
  stage.buckets.resize(step.buckets.size());
  for (size_t b = 0; b < step.buckets.size(); ++b) {
    const Bucket &bucket = step.buckets[b];
    if (!isHeld(step, bucket, stageIndex))
      continue;
    Binding &places = stage.buckets[b];
    places[Space::Scalar] = scalarOffset;
    if (!hasDynamicParameters(step, bucket))
      places[Space::Parameter] = take(bucket.elements * bytesOf(step.computeType), memory.parameters);
    if (!step.train || step.ownerOf(bucket) != stageIndex)
      continue;
    int64_t shard = step.shardElements(bucket) * 4;
    // Whole masters in f32 are the parameters.
    bool separateMaster = step.computeType != DType::F32 || step.isSharded();
    places[Space::Master] = separateMaster ? take(shard, memory.optimizer) : places[Space::Parameter];
    if (bucket.trainable() && moments) {
      places[Space::Moment1] = take(shard, memory.optimizer);
      places[Space::Moment2] = take(shard, memory.optimizer);
    }
  }
  // From here on places may differ between batches.
  for (size_t b = 0; b < step.buckets.size(); ++b) {
    const Bucket &bucket = step.buckets[b];
    if (!step.train || !bucket.trainable() || !isHeld(step, bucket, stageIndex))
      continue;
    Binding &places = stage.buckets[b];
    if (!hasDynamicAccumulators(step, bucket))
      places[Space::Accumulator] = take(bucket.elements * 4, memory.gradients);
    places[Space::Gradient] =
        step.isSharded() ? take(step.shardElements(bucket) * 4, memory.gradients) : places[Space::Accumulator];
  }
  return end;
}

BucketPlan drover::schedule::planBuckets(const StepProgram &step, const Batch &batch,
                                         const std::vector<ChunkAccess> &accesses,
                                         const std::vector<const GlobalItem *> &items, Stage &stage, int64_t &base) {
  return Planner(step, batch, accesses, items).run(stage, base);
}
