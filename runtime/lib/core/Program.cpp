//===- Program.cpp - the step program that an executable embeds -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/program.h"
#include "drover/rt/error.h"
#include "drover/rt/sha256.h"
#include "drover/rt/text.h"
#include <algorithm>
#include <set>

namespace drover::rt {

int64_t TensorInfo::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Program::Program(const drover_program &embedded)
    : gpuImages(embedded.gpu_images), numGpuImages(embedded.gpu_images ? embedded.num_gpu_images : 0),
      allActions(static_cast<const drover_action *>(embedded.actions),
                 static_cast<const drover_action *>(embedded.actions) + embedded.num_actions),
      bodyFunctions(embedded.bodies), numBodies(embedded.num_bodies) {
  if (embedded.version != DROVER_PROGRAM_VERSION)
    fail("program of version ", embedded.version, ", this runtime runs version ", DROVER_PROGRAM_VERSION);
  Sha256 digest;
  digest.update(embedded.metadata, embedded.metadata_bytes);
  digest.update(allActions.data(), allActions.size() * sizeof(drover_action));
  hash = digest.finish().substr(0, 16);
  readMetadata(embedded.metadata, embedded.metadata_bytes);
  validate();
}

int64_t Program::arenaBytes(int64_t stage) const {
  int64_t bytes = 0;
  for (const BatchInfo &batch : batches)
    bytes = std::max(bytes, batch.stages[size_t(stage)].arenaBytes);
  return bytes;
}

int64_t Program::workspaceBytes(int64_t stage) const {
  int64_t bytes = 0;
  auto take = [&](int64_t body) {
    if (body >= 0)
      bytes = std::max(bytes, bodies[size_t(body)].workspaceBytes);
  };
  for (int64_t body : {updateBody, normBody, castBody, addBody})
    take(body);
  for (size_t chunk = size_t(stage); chunk < chunks.size(); chunk += size_t(grid.size(DROVER_AXIS_PP)))
    for (const std::vector<CallInfo> &phase : chunks[chunk].phases)
      for (const CallInfo &call : phase)
        take(call.body);
  return bytes;
}

int64_t Program::bucketSpaceBytes(int64_t bucket, Space space) const {
  int64_t elements = buckets[size_t(bucket)].elements;
  bool isState = space == Space::Gradient || (space >= Space::Master && space <= Space::Moment2);
  if (isState && zero > 0)
    elements /= grid.size(DROVER_AXIS_CP) * grid.size(DROVER_AXIS_DP);
  return elements * (space == Space::Parameter ? byteSize(computeDType) : 4);
}

int64_t Program::sequenceLength() const {
  const TensorInfo *tokens = inputWithRole("tokens");
  return tokens->shape[1] * (tokens->cuts.empty() ? 1 : grid.size(DROVER_AXIS_CP));
}

const BatchInfo *Program::findBatch(int64_t globalBatch) const {
  for (const BatchInfo &batch : batches)
    if (batch.globalBatch == globalBatch)
      return &batch;
  return nullptr;
}

std::string Program::batchesText() const {
  std::string text;
  for (const BatchInfo &batch : batches)
    text += (text.empty() ? "" : ", ") + std::to_string(batch.globalBatch);
  return text;
}

const TensorInfo *Program::inputWithRole(const std::string &role) const {
  for (const TensorInfo &input : inputs)
    if (input.role == role)
      return &input;
  return nullptr;
}

} // namespace drover::rt
