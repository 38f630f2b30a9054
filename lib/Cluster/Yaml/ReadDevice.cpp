//===- ReadDevice.cpp - the device of a cluster file ----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ReadDevice.h"

using namespace drover;
using namespace drover::cluster;

namespace {
// Far around what is built, from one core to a rack sold as one device: they catch a wrong unit.
constexpr Bounds kPeak = {1e8, 1e18}, kMemory = {1e6, 1e14}, kMemoryBandwidth = {1e7, 1e15}, kWatts = {1, 1e5};
constexpr Bounds kContext = {0, 1e12}, kLaunch = {0, 1e-2}, kHalf = {0, 1e6}, kSpread = {0, 0.5};
constexpr int64_t kMostSms = 4096, kLargestTile = 4096;

void readPeak(FileErrors &errors, MapReader &device, Device &result) {
  const YamlNode *node = device.require("peak");
  if (!node)
    return;
  MapReader peak(errors, *node, "the peak", {"f32", "bf16", "f16", "fp8"});
  for (int i = 0; i < kNumPrecisions; ++i)
    peak.readQuantity(nameOf(static_cast<Precision>(i)), result.peak[i], Quantity::FlopsPerSecond, kPeak, false);
  if (node->kind == YamlNode::Kind::Mapping && node->items.empty())
    errors.report(node->place, "the peak lists no format: expected some of f32, bf16, f16, fp8");
}

void readMemory(FileErrors &errors, MapReader &device, Device &result) {
  const YamlNode *node = device.require("memory");
  if (!node)
    return;
  MapReader memory(errors, *node, "the memory", {"total", "usable", "context", "bandwidth", "achieved"});
  memory.readQuantity("total", result.memoryBytes, Quantity::Bytes, kMemory);
  memory.readQuantity("usable", result.usableBytes, Quantity::Bytes, kMemory);
  memory.readQuantity("context", result.contextBytes, Quantity::Bytes, kContext, false);
  memory.readQuantity("bandwidth", result.memoryBandwidth, Quantity::BytesPerSecond, kMemoryBandwidth);
  memory.readQuantity("achieved", result.memoryFraction, Quantity::Number, kFraction);
  if (result.usableBytes > result.memoryBytes)
    errors.report(memory.placeOf("usable"), "'usable' is more than 'total', " +
                                                printQuantity(result.usableBytes, Quantity::Bytes) + " of " +
                                                printQuantity(result.memoryBytes, Quantity::Bytes));
  if (result.contextBytes > result.usableBytes)
    errors.report(memory.placeOf("context"), "'context' is more than 'usable', " +
                                                 printQuantity(result.contextBytes, Quantity::Bytes) + " of " +
                                                 printQuantity(result.usableBytes, Quantity::Bytes));
}

MatmulRates readMatmulRates(FileErrors &errors, const YamlNode &node) {
  MatmulRates rates;
  MapReader reader(errors, node, "the matmul rates of a format", {"fraction", "half_k", "tile_m", "tile_n"});
  reader.readQuantity("fraction", rates.fraction, Quantity::Number, kFraction);
  reader.readQuantity("half_k", rates.halfK, Quantity::Number, kHalf);
  reader.readCount("tile_m", rates.tileM, 1, kLargestTile);
  reader.readCount("tile_n", rates.tileN, 1, kLargestTile);
  return rates;
}

void readMatmul(FileErrors &errors, MapReader &device, Device &result) {
  const YamlNode *node = device.require("matmul");
  if (!node)
    return;
  MapReader matmul(errors, *node, "the matmul rates", {"f32", "bf16", "f16", "fp8"});
  for (size_t i = 0; i < node->keys.size(); ++i) {
    std::optional<Precision> precision = parsePrecision(node->keys[i]);
    if (!precision)
      continue;
    if (!(result.peakOf(*precision) > 0))
      errors.report(node->keyPlaces[i], "matmul rates of " + node->keys[i] + ", for which the device lists no peak");
    MatmulRates rates = readMatmulRates(errors, node->items[i]);
    if (i == 0)
      result.matmul.fill(rates);
    result.matmul[static_cast<size_t>(*precision)] = rates;
  }
  if (node->kind == YamlNode::Kind::Mapping && node->items.empty())
    errors.report(node->place, "the matmul rates list no format: expected some of f32, bf16, f16, fp8");
}

AttentionRates readAttentionRates(FileErrors &errors, const YamlNode &node) {
  AttentionRates rates;
  MapReader reader(errors, node, "an attention kernel",
                   {"kernel", "forward", "backward", "half_sequence", "odd_head_penalty", "head_size_multiple"});
  reader.readChoice("kernel", rates.kernel, {"flash3", "flash2", "triton", "unfused", "generated"});
  reader.readQuantity("forward", rates.forward, Quantity::Number, kFraction);
  reader.readQuantity("backward", rates.backward, Quantity::Number, {0, 2, true});
  reader.readQuantity("half_sequence", rates.halfSequence, Quantity::Number, kHalf, false);
  reader.readQuantity("odd_head_penalty", rates.oddHeadPenalty, Quantity::Number, {1, 10}, false);
  reader.readCount("head_size_multiple", rates.headSizeMultiple, 1, 1024, false);
  return rates;
}
} // namespace

Device cluster::readDevice(FileErrors &errors, const YamlNode &node) {
  Device result;
  MapReader device(errors, node, "the device",
                   {"name", "kind", "peak", "memory", "sms", "power", "shared_cores", "core_scaling", "matmul",
                    "attention", "launch", "spread", "pass_cost", "eager_traffic", "ring_hidden", "contention",
                    "clock_boost"});
  if (errors.any())
    return result;
  device.readText("name", result.name);
  device.readText("kind", result.kind);
  readPeak(errors, device, result);
  readMemory(errors, device, result);
  device.readCount("sms", result.sms, 1, kMostSms);
  device.readQuantity("power", result.watts, Quantity::Watts, kWatts, false);
  device.readCount("shared_cores", result.sharedCores, 1, kMostSms, false);
  device.readQuantity("core_scaling", result.coreScaling, Quantity::Number, kFraction, false);
  if (device.find("core_scaling") && !device.find("shared_cores"))
    errors.report(device.placeOf("core_scaling"),
                  "'core_scaling' is of cores that ranks share: expected 'shared_cores' beside it");
  readMatmul(errors, device, result);
  for (const YamlNode &item : device.readList("attention")) {
    AttentionRates rates = readAttentionRates(errors, item);
    if (result.findAttention(rates.kernel))
      errors.report(item.place, "the attention kernel '" + rates.kernel + "' is listed twice");
    result.attention.push_back(std::move(rates));
  }
  device.readQuantity("launch", result.launchSeconds, Quantity::Seconds, kLaunch);
  device.readQuantity("spread", result.spread, Quantity::Number, kSpread);
  device.readQuantity("pass_cost", result.passCost, Quantity::Number, {0, 1000, true}, false);
  device.readQuantity("eager_traffic", result.eagerTraffic, Quantity::Number, {0.5, 10}, false);
  device.readQuantity("ring_hidden", result.ringHidden, Quantity::Number, {0, 1}, false);
  device.readQuantity("contention", result.contention, Quantity::Number, {0, 1}, false);
  device.readQuantity("clock_boost", result.clockBoost, Quantity::Number, {0, 1}, false);
  return result;
}
