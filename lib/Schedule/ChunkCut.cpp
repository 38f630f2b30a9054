//===- ChunkCut.cpp - calls to chunks, values to spaces -------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ChunkCut.h"
#include "drover/Schedule/SlotAllocator.h"
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

using namespace drover::schedule;

namespace {

/// A use of a value: the chunk, the phase and the place among all calls.
struct Use {
  uint32_t chunk;
  size_t phase;
  size_t call;
};

class Cutter {
public:
  Cutter(const MicrobatchProgram &program, std::vector<StepChunk> &chunks) : program(program), chunks(chunks) {}

  Result<ChunkCut> run(const std::vector<int64_t> &layersPerChunk) {
    using Step = std::optional<Error> (Cutter::*)();
    if (std::optional<Error> error = assignCalls(layersPerChunk))
      return *error;
    for (Step step : {&Cutter::findRoots, &Cutter::chooseSpaces})
      if (std::optional<Error> error = (this->*step)())
        return *error;
    pack();
    return std::move(cut);
  }

private:
  std::optional<Error> assignCalls(const std::vector<int64_t> &layersPerChunk);
  std::optional<Error> findRoots();
  std::optional<Error> chooseSpaces();
  std::optional<Error> chooseSpace(uint32_t value, const Use &def, const std::vector<Use> &uses);
  uint32_t nextChunk(const Use &def) const;
  void pack();

  std::string describe(const Call &call) const {
    std::string text = "call of body '" + program.bodies[call.body].name + "'";
    return call.layer < 0 ? text : text + " for layer " + std::to_string(call.layer);
  }

  const MicrobatchProgram &program;
  std::vector<StepChunk> &chunks;
  ChunkCut cut;
  std::vector<bool> hasCalls;   // by chunk
  std::map<uint32_t, Use> defs; // of roots that calls make
  std::map<uint32_t, std::vector<Use>> uses;
};

std::optional<Error> Cutter::assignCalls(const std::vector<int64_t> &layersPerChunk) {
  int64_t numLayers = program.numLayers();
  int64_t sum = std::accumulate(layersPerChunk.begin(), layersPerChunk.end(), int64_t{0});
  if (sum != numLayers)
    return Error{"layers per chunk sum to " + std::to_string(sum) + ": the model has " + std::to_string(numLayers) +
                 " layers"};
  std::vector<uint32_t> chunkOfLayer;
  for (size_t chunk = 0; chunk < layersPerChunk.size(); ++chunk)
    chunkOfLayer.insert(chunkOfLayer.end(), layersPerChunk[chunk], static_cast<uint32_t>(chunk));

  // A call without a layer goes with the layer before it; those before the first layer to the first chunk and those
  // after the last one to the last, whatever layers these hold. Backward calls mirror that.
  auto last = static_cast<uint32_t>(layersPerChunk.size() - 1);
  std::array<int64_t, 3> lastLayered = {-1, -1, -1};
  for (size_t i = 0; i < program.calls.size(); ++i)
    if (program.calls[i].layer >= 0)
      lastLayered[phaseOf(program.calls[i])] = static_cast<int64_t>(i);
  std::array<uint32_t, 3> current = {0, last, last};
  bool backward = false;
  hasCalls.assign(layersPerChunk.size(), false);
  for (size_t i = 0; i < program.calls.size(); ++i) {
    const Call &call = program.calls[i];
    size_t phase = phaseOf(call);
    if (backward && !call.backward)
      return Error{describe(call) + " is a forward call behind a backward call"};
    backward = call.backward;
    uint32_t chunk = current[phase];
    if (call.layer >= 0)
      chunk = chunkOfLayer[call.layer];
    else if (lastLayered[phase] >= 0 && static_cast<int64_t>(i) > lastLayered[phase])
      chunk = backward ? 0 : last;
    if (backward ? chunk > current[phase] : chunk < current[phase])
      return Error{describe(call) + " belongs to chunk " + std::to_string(chunk) + ", the call before it to chunk " +
                   std::to_string(current[phase]) + ": layers must follow each other"};
    cut.chunkOfCall.push_back(current[phase] = chunk);
    hasCalls[chunk] = true;
  }
  return std::nullopt;
}

std::optional<Error> Cutter::findRoots() {
  cut.root.resize(program.values.size());
  std::iota(cut.root.begin(), cut.root.end(), 0u);
  std::set<uint32_t> overwritten;
  for (size_t i = 0; i < program.calls.size(); ++i) {
    const Call &call = program.calls[i];
    for (uint32_t operand : call.operands) {
      if (overwritten.count(operand))
        return Error{describe(call) + " reads a value that an earlier call overwrote in place"};
      if (program.values[cut.root[operand]].kind == ValueKind::Result && !defs.count(cut.root[operand]))
        return Error{describe(call) + " reads a value before it is made"};
      uses[cut.root[operand]].push_back({cut.chunkOfCall[i], phaseOf(call), i});
    }
    for (size_t r = 0; r < call.results.size(); ++r) {
      uint32_t result = call.results[r];
      if (call.inPlace[r] < 0) {
        defs.insert({result, Use{cut.chunkOfCall[i], phaseOf(call), i}});
        continue;
      }
      if (static_cast<size_t>(call.inPlace[r]) >= call.operands.size())
        return Error{describe(call) + " has result " + std::to_string(r) + " in place of operand " +
                     std::to_string(call.inPlace[r]) + ": it has " + std::to_string(call.operands.size())};
      uint32_t operand = call.operands[call.inPlace[r]];
      if (program.values[operand].bytes != program.values[result].bytes)
        return Error{describe(call) + " has a result of " + std::to_string(program.values[result].bytes) +
                     " bytes in place of an operand of " + std::to_string(program.values[operand].bytes)};
      ValueKind kind = program.values[cut.root[operand]].kind;
      if (kind != ValueKind::Accumulator && kind != ValueKind::Result)
        return Error{describe(call) + " overwrites an input or a parameter in place"};
      cut.root[result] = cut.root[operand];
      overwritten.insert(operand);
    }
  }
  return std::nullopt;
}

std::optional<Error> Cutter::chooseSpaces() {
  cut.places.resize(program.values.size());
  for (const auto &[value, def] : defs) {
    cut.places[value].chunk = def.chunk;
    auto isValue = [&, value = value](int64_t other) { return other >= 0 && cut.root[other] == value; };
    if (program.train && isValue(program.loss))
      cut.places[value].space = Space::Scalar;
    else if (std::any_of(program.outputs.begin(), program.outputs.end(),
                         [&](const Output &output) { return isValue(output.value); }))
      cut.places[value].space = Space::Output;
    else if (std::optional<Error> error = chooseSpace(value, def, uses[value]))
      return error;
  }
  return std::nullopt;
}

/// The chunk that a value may flow to: the next one that does something.
uint32_t Cutter::nextChunk(const Use &def) const {
  uint32_t step = def.phase == 0 ? 1 : static_cast<uint32_t>(-1), next = def.chunk + step;
  while (next < chunks.size() && !hasCalls[next])
    next += step;
  return next;
}

std::optional<Error> Cutter::chooseSpace(uint32_t value, const Use &def, const std::vector<Use> &valueUses) {
  Space space = Space::Scratch;
  uint32_t next = nextChunk(def);
  bool crosses = false;
  for (const Use &use : valueUses) {
    if (use.chunk != def.chunk && (use.chunk != next || def.phase == 2))
      return Error{describe(program.calls[use.call]) + " in chunk " + std::to_string(use.chunk) +
                   " reads a value of chunk " + std::to_string(def.chunk) +
                   ": values flow to the neighbouring chunk only; fewer chunks avoid that"};
    crosses |= use.chunk != def.chunk;
    if (use.phase == 2 && def.phase != 2)
      space = def.phase == 0 ? Space::Kept : Space::Handed;
    else if (use.phase != def.phase && space == Space::Scratch)
      space = Space::Stash;
  }
  if (crosses)
    space = def.phase == 0 ? Space::Y : Space::DX;
  cut.places[value].space = space;
  return std::nullopt;
}

void Cutter::pack() {
  // Scratch is coloured by the calls of a phase: a result is live from its call to its last reader, both included,
  // since a body may write a result before it has read its operands.
  std::map<std::pair<uint32_t, size_t>, std::pair<std::vector<uint32_t>, std::vector<SlotRequest>>> scratch;
  for (auto &[value, def] : defs) {
    ChunkCut::Place &place = cut.places[value];
    StepChunk &chunk = chunks[def.chunk];
    int64_t bytes = program.values[value].bytes;
    auto append = [&](int64_t &size) {
      place.offset = size;
      size = alignTo(size + bytes, kSlotAlignment);
    };
    switch (place.space) {
    case Space::Stash:
      append(chunk.stashBytes);
      break;
    case Space::Kept:
      append(chunk.keptBytes);
      break;
    case Space::Handed:
      append(chunk.handedBytes);
      break;
    case Space::Y:
      append(chunk.yBytes);
      break;
    case Space::DX:
      append(chunk.dxBytes);
      break;
    case Space::Scratch: {
      auto &[values, requests] = scratch[{def.chunk, def.phase}];
      int64_t lastUse = static_cast<int64_t>(def.call);
      for (const Use &use : uses[value])
        lastUse = std::max(lastUse, static_cast<int64_t>(use.call));
      values.push_back(value);
      requests.push_back({bytes, static_cast<int64_t>(def.call), lastUse, 0});
      break;
    }
    case Space::Scalar:
      place.offset = kLossOffset;
      break;
    default:
      break; // outputs are packed by the builder
    }
  }
  for (auto &[phase, group] : scratch) {
    auto &[values, requests] = group;
    chunks[phase.first].scratchBytes[phase.second] = placeSlots(requests);
    for (size_t i = 0; i < values.size(); ++i)
      cut.places[values[i]].offset = requests[i].offset;
  }
  for (size_t i = 1; i < chunks.size(); ++i) {
    chunks[i].xBytes = chunks[i - 1].yBytes;
    if (!hasCalls[i])
      chunks[i].yBytes = chunks[i].xBytes;
  }
  for (size_t i = chunks.size() - 1; i > 0; --i) {
    if (!hasCalls[i])
      chunks[i].dxBytes = chunks[i].dyBytes;
    chunks[i - 1].dyBytes = chunks[i].dxBytes;
  }
}

} // namespace

Result<ChunkCut> drover::schedule::cutIntoChunks(const MicrobatchProgram &program,
                                                 const std::vector<int64_t> &layersPerChunk,
                                                 std::vector<StepChunk> &chunks) {
  chunks.assign(layersPerChunk.size(), StepChunk());
  return Cutter(program, chunks).run(layersPerChunk);
}
