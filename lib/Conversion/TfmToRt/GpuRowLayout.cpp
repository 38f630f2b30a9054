//===- GpuRowLayout.cpp - how threads are laid over rows --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GpuRowEmitter.h"
#include <numeric>

using namespace mlir;
using namespace drover;
using namespace drover::lower;

/// Bytes of the widest access of a thread.
static constexpr int64_t kAccessBytes = 16;
/// A warp takes a row of up to this many steps; longer rows are for a block.
static constexpr int64_t kWarpSteps = 4;

/// Elements of the narrowest stored type that make up the widest access.
int64_t GpuRowEmitter::widthLimit() const {
  int64_t bytes = 8;
  auto visit = [&](const Access &access, Type type) {
    if (access.colStride != 0)
      bytes = std::min(bytes, bytesOf(type));
  };
  for (const Node &node : nodes)
    if (node.kind == NodeKind::Load)
      visit(node.access, node.storage);
  for (const Sink &sink : program.sinks)
    if (!sink.columnSum)
      visit(sink.access, elementTypeOf(sink.value));
  return std::min<int64_t>(kAccessBytes / bytes, 8);
}

static int64_t powerOfTwoIn(int64_t value, int64_t limit) {
  int64_t power = 1;
  while (power < limit && value % (2 * power) == 0)
    power *= 2;
  return power;
}

/// Values along the row that one phase leaves to a later one.
int64_t GpuRowEmitter::numKept() const {
  llvm::DenseSet<NodeId> known, kept;
  for (unsigned phase = 0; phase < program.numPhases(); ++phase) {
    llvm::SetVector<NodeId> reached;
    SmallVector<NodeId> next;
    for (const Sink &sink : program.sinks)
      if (needs(sink, phase) && isColumnSink(sink))
        next.push_back(sink.node);
    for (NodeId id : reductionsOf(phase))
      next.push_back(nodes[id].operands[0]);
    while (!next.empty()) {
      NodeId id = next.pop_back_val();
      if (nodes[id].perRow)
        continue;
      if (known.contains(id))
        kept.insert(id);
      else if (reached.insert(id))
        llvm::append_range(next, nodes[id].operands);
    }
    known.insert(reached.begin(), reached.end());
  }
  return kept.size();
}

void GpuRowEmitter::chooseLayout() {
  int64_t cols = program.domain.cols;
  layout.width = powerOfTwoIn(cols, widthLimit());
  int64_t vectors = cols / layout.width, sums = columnSums().size();
  // What has registers of its own: what is kept from phase to phase, and sums over rows.
  int64_t kept = numKept();
  auto fits = [&](int64_t threads, int64_t steps, int64_t values) {
    // A multiprocessor has 65536 registers, a thread at most 255; the rest of it is for what is computed.
    int64_t registers = std::min<int64_t>(65536 / threads, 255);
    return steps * layout.width * std::max<int64_t>(values, 1) <= registers * 5 / 8 - 24;
  };
  if (sums == 0 && vectors <= GpuKernel::kWarp * kWarpSteps) {
    layout.group = std::min<int64_t>(llvm::PowerOf2Ceil(vectors), GpuKernel::kWarp);
    layout.steps = llvm::divideCeilSigned(vectors, layout.group);
    layout.held = fits(layout.threads, layout.steps, kept);
    return;
  }
  layout.held = false;
  for (int64_t threads : {256, 512, 1024}) {
    int64_t count = llvm::divideCeilSigned(vectors, threads);
    layout.steps = count;
    // As few threads as do the same number of steps.
    layout.threads = layout.group =
        llvm::divideCeilSigned(llvm::divideCeil(vectors, count), GpuKernel::kWarp) * GpuKernel::kWarp;
    layout.sumsHeld = sums > 0 && fits(threads, count, kept + sums);
    layout.held = sums > 0 ? layout.sumsHeld : fits(threads, count, kept);
    if (layout.held)
      return;
  }
}

int64_t GpuRowEmitter::alignedElements(const Access &access, std::optional<int64_t> gatherStride, int64_t width) const {
  if (flat)
    return width;
  int64_t common = std::gcd(width, access.offset);
  for (int64_t stride : access.rowStrides)
    common = std::gcd(common, stride);
  if (gatherStride)
    common = std::gcd(common, *gatherStride);
  return powerOfTwoIn(common, width);
}

SmallVector<const Sink *> GpuRowEmitter::columnSums() const {
  SmallVector<const Sink *> sums;
  for (const Sink &sink : program.sinks)
    if (sink.columnSum)
      sums.push_back(&sink);
  return sums;
}
