//===- MeasureCollectives.cpp - seconds of collectives --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Measure.h"
#include "drover/rt/flight_recorder.h"
#include <algorithm>
#include <limits>
#include <numeric>

namespace drover::rt {

namespace {

/// From what one wake-up costs to what is bound by copies.
constexpr int64_t kSizes[] = {1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 20};
/// A turn issues so many bytes, but no more operations than these.
constexpr int64_t kBytesOfTurn = 1 << 20, kMostOperations = 8;
/// Turns are short, so that some of them meet no other load: there are more of them.
constexpr int kTurns = 10;

class CollectiveMeasurer {
public:
  CollectiveMeasurer(World &world, const MeasureOptions &options) : options(options), ranks(world.size()) {
    std::vector<int> members(static_cast<size_t>(ranks));
    std::iota(members.begin(), members.end(), 0);
    group = world.createCommunicator(1, "measured", members);
    input.resize(kSizes[std::size(kSizes) - 1] / sizeof(float), 1.0f);
    output = input;
  }

  nlohmann::ordered_json run() {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const char *kind : {"all_gather", "reduce_scatter", "all_reduce", "broadcast", "message"})
      for (int64_t bytes : kSizes) {
        // Whole elements of equal parts.
        int64_t part = std::max<int64_t>(1, bytes / ranks / static_cast<int64_t>(sizeof(float)));
        int64_t whole = part * ranks * static_cast<int64_t>(sizeof(float));
        rows.push_back({{"kind", kind}, {"ranks", ranks}, {"bytes", whole}, {"seconds", secondsOf(kind, part)}});
      }
    return rows;
  }

private:
  void operate(const std::string &kind, int64_t part) {
    const float *in = input.data();
    float *out = output.data();
    int64_t whole = part * ranks;
    TensorCut cut = {1, part, 1, false};
    if (kind == "all_gather")
      group->allGather(in, out, DROVER_F32, cut).wait();
    else if (kind == "reduce_scatter")
      group->reduceScatter(in, out, DROVER_F32, ReduceOp::Sum, cut).wait();
    else if (kind == "all_reduce")
      group->allReduce(in, out, whole, DROVER_F32, ReduceOp::Sum).wait();
    else if (kind == "broadcast")
      group->broadcast(out, whole, DROVER_F32, 0).wait();
    else
      message(whole);
  }

  /// To and fro between the first two; half of it is one.
  void message(int64_t count) {
    if (group->rank() > 1)
      return;
    int other = 1 - group->rank();
    for (int sender = 0; sender < 2; ++sender)
      if (group->rank() == sender)
        group->send(input.data(), count, DROVER_F32, other).wait();
      else
        group->receive(output.data(), count, DROVER_F32, other).wait();
  }

  double secondsOf(const std::string &kind, int64_t part) {
    int64_t bytes = part * ranks * static_cast<int64_t>(sizeof(float));
    int64_t operations = std::clamp<int64_t>(kBytesOfTurn / bytes, 1, kMostOperations);
    double best = std::numeric_limits<double>::infinity();
    operate(kind, part); // warm
    for (int turn = 0; turn < kTurns * options.turns; ++turn) {
      group->barrier();
      int64_t start = monotonicNs();
      for (int64_t i = 0; i < operations; ++i)
        operate(kind, part);
      best = std::min(best, 1e-9 * static_cast<double>(monotonicNs() - start) / static_cast<double>(operations));
    }
    return kind == "message" ? best / 2 : best;
  }

  const MeasureOptions &options;
  int ranks;
  std::unique_ptr<Communicator> group;
  std::vector<float> input, output;
};

} // namespace

nlohmann::ordered_json measureCollectives(World &world, const MeasureOptions &options) {
  return CollectiveMeasurer(world, options).run();
}

} // namespace drover::rt
