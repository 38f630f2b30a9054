//===- StepDump.cpp - the tensors of a step in one file -------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/data_order.h"
#include "drover/rt/error.h"
#include "drover/rt/parameter_layout.h"
#include "drover/rt/parameter_writer.h"
#include "drover/rt/step_dump.h"

namespace drover::rt {

void StepDump::addParameters(const char *kind, const std::vector<BucketMemory> &shards, bool frozen) {
  auto nameOf = [&](const ParameterInfo &parameter) { return concat(kind, ".", parameter.name); };
  ParameterCollector(rank.program, rank.plan, rank.worldGroup(), shards)
      .collect(
          [&](const ParameterInfo &parameter) { return (frozen || !parameter.frozen) && isWanted(nameOf(parameter)); },
          [&](const ParameterInfo &parameter, const float *values) {
            const auto *bytes = reinterpret_cast<const uint8_t *>(values);
            tensors[nameOf(parameter)] = {DROVER_F32, parameter.shape, {bytes, bytes + parameter.elements * 4}};
          });
}

std::string StepDump::nameOf(const Part &part) const {
  static constexpr const char *phases[] = {"forward", "backward", "weight_gradient"};
  const BodyInfo &body = rank.program.bodies[size_t(part.body)];
  int64_t result = 0;
  for (int64_t i = 0; i < part.operand; ++i)
    result += body.operands[size_t(i)].result;
  return concat(phases[std::min<int64_t>(part.phase, 2)], part.layer < 0 ? "" : concat(".layer.", part.layer), ".",
                body.name, ".", result, ".sequence.", part.sequence);
}

void StepDump::addResults(const drover_action &action, const CallInfo &call, const std::vector<void *> &operands,
                          const Reader &read) {
  const Program &program = rank.program;
  const BodyInfo &body = program.bodies[size_t(call.body)];
  int64_t rows = program.microbatchSize();
  for (size_t i = 0; i < std::min(operands.size(), body.operands.size()); ++i) {
    const OperandType &type = body.operands[i];
    // What has no batch, the loss, has no sequence to be named by.
    if (!type.result || type.shape.empty() || type.shape[0] % rows)
      continue;
    int64_t bytes = byteSize(type.dtype);
    for (int64_t size : type.shape)
      bytes *= size;
    for (int64_t row = 0; row < rows; ++row) {
      int64_t sequence = DataOrder::number(0, action.microbatch, program.grid.size(DROVER_AXIS_DP),
                                           rank.plan.place[DROVER_AXIS_DP], rows, row);
      Part part{call.body, int64_t(i), call.layer, action.phase, sequence, bytes / rows};
      if (!isWanted(nameOf(part)))
        continue;
      const auto *header = reinterpret_cast<const uint8_t *>(&part);
      parts.insert(parts.end(), header, header + sizeof(part));
      parts.resize(parts.size() + size_t(part.bytes));
      read(static_cast<const uint8_t *>(operands[i]) + row * part.bytes, part.bytes,
           parts.data() + parts.size() - part.bytes);
    }
  }
}

/// Adds what `from` holds to `to`: a pending sum.
static void addValues(DType dtype, const uint8_t *from, uint8_t *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    float values[2];
    toFloat(from + i * byteSize(dtype), dtype, 1, values);
    toFloat(to + i * byteSize(dtype), dtype, 1, values + 1);
    float sum = values[0] + values[1];
    uint16_t rounded = floatToBfloat(sum);
    std::memcpy(to + i * byteSize(dtype), dtype == DROVER_F32 ? static_cast<void *>(&sum) : &rounded,
                size_t(byteSize(dtype)));
  }
}

void StepDump::takePart(int64_t source, const Part &part, const uint8_t *values) {
  const Grid &grid = rank.program.grid;
  const OperandType &type = rank.program.bodies[size_t(part.body)].operands[size_t(part.operand)];
  Coordinates place = grid.coordinates(source);
  // Sequences are named one by one, so that what the batch is cut over does not matter.
  std::vector<int64_t> local = type.shape;
  local[0] /= rank.program.microbatchSize();
  std::vector<CutInfo> cuts;
  for (const CutInfo &cut : type.cuts)
    if (cut.axis != DROVER_AXIS_DP)
      cuts.push_back(cut);
  std::vector<int64_t> shape = globalShape(grid, local, cuts);
  int64_t width = byteSize(type.dtype), elements = 1;
  for (int64_t size : shape)
    elements *= size;
  Tensor &tensor = tensors.try_emplace(nameOf(part), Tensor{type.dtype, shape, {}}).first->second;
  tensor.data.resize(size_t(elements * width));
  bool adds = false, isReplica = false;
  for (int axis : {DROVER_AXIS_KV, DROVER_AXIS_REPLICA, DROVER_AXIS_CP}) {
    // kv and replica are factors of tp.
    auto names = [&](int other) { return other == axis || (other == DROVER_AXIS_TP && axis != DROVER_AXIS_CP); };
    bool isPartial = std::any_of(type.partial.begin(), type.partial.end(), names);
    bool isCut = std::any_of(cuts.begin(), cuts.end(), [&](const CutInfo &cut) { return names(cut.axis); });
    adds |= isPartial && place[size_t(axis)] > 0;
    isReplica |= !isPartial && !isCut && place[size_t(axis)] > 0;
  }
  if (isReplica)
    return;
  bool sums = adds && (type.dtype == DROVER_F32 || type.dtype == DROVER_BF16);
  TensorLayout(grid, place, shape, local, cuts)
      .forEachRun(0, part.bytes / width, [&](int64_t from, int64_t to, int64_t count) {
        if (to < 0)
          return;
        uint8_t *target = tensor.data.data() + to * width;
        if (sums)
          addValues(type.dtype, values + from * width, target, count);
        else
          std::memcpy(target, values + from * width, size_t(count * width));
      });
}

void StepDump::takeParts(int64_t source, const std::vector<uint8_t> &received) {
  for (size_t offset = 0; offset < received.size();) {
    Part part;
    std::memcpy(&part, received.data() + offset, sizeof(part));
    takePart(source, part, received.data() + offset + sizeof(part));
    offset += sizeof(part) + size_t(part.bytes);
  }
}

void StepDump::write(const std::string &path) {
  std::vector<int64_t> sizes = rank.all(int64_t(parts.size()));
  if (!rank.isFirst()) {
    if (!parts.empty())
      rank.worldGroup()->send(parts.data(), int64_t(parts.size()), DROVER_I8, 0).wait();
    return;
  }
  takeParts(0, parts);
  for (size_t source = 1; source < sizes.size(); ++source) {
    std::vector<uint8_t> received(static_cast<size_t>(sizes[source]));
    if (!received.empty())
      rank.worldGroup()->receive(received.data(), sizes[source], DROVER_I8, int(source)).wait();
    takeParts(int64_t(source), received);
  }
  if (tensors.empty())
    fail("--dump: no tensor of the step has such a name");
  std::vector<TensorToStore> list;
  for (const auto &[name, tensor] : tensors)
    list.emplace_back(name, tensor.dtype, tensor.shape, tensor.data.data());
  writeSafetensors(path, list);
}

} // namespace drover::rt
