//===- Work.cpp - what a body does on one rank ----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// FLOPs and collectives are those of the program (a test holds them against `drover check`); bytes of memory-bound
// passes are counted operator by operator from what each reads and writes.
#include "drover/Cost/Work.h"
#include <algorithm>

using namespace drover;
using namespace drover::cost;
using cluster::Axis;
using schedule::DType;

namespace {
constexpr double kHalfBytes = 2;

class WorkBuilder {
public:
  WorkBuilder(const ModelShape &shape, const Sizes &sizes)
      : shape(shape), sizes(sizes), rows(sizes.tokens()), tp(static_cast<double>(sizes.tp)),
        element(static_cast<double>(schedule::bytesOf(sizes.dtype))), h(static_cast<double>(shape.hidden)) {}

  Work build(BodyKind body, BodyPhase phase);

private:
  // Bodies.
  void embedForward();
  void embedBackward();
  void layerForward(bool last);
  void layerBackward(BodyPhase phase);
  void layerRecompute();
  void headForward();
  void headBackward(BodyPhase phase);

  // Parts of a layer.
  void attention(AttentionPhase phase);
  void attentionRead();
  void columnInput(bool backward);
  void rowOutput();
  void linear(double n, double k, bool fp8);
  void linearBackward(double n, double k, bool fp8, BodyPhase phase, bool column);

  // Elements.
  void add(const Matmul &matmul) { work.push_back({matmul, again}); }
  void pass(double bytes) { work.push_back({Pass{bytes}, again}); }
  void collective(Axis axis, CollectiveKind kind, DType dtype, double bytes, Beside beside = Beside::Nothing);
  Beside when(TpOverlap least, Beside beside) const { return sizes.tpOverlap >= least ? beside : Beside::Nothing; }

  double residual() const { return rows * h * element; }
  /// Of the residual stream: a part of the rows where sequence parallelism spreads them.
  double ownResidual() const { return residual() / (sizes.sequenceParallel ? tp : 1); }
  double queryWidth() const { return static_cast<double>(shape.queryWidth()) / tp; }
  /// A kv head is replicated where TP is larger than their number.
  double kvWidth() const {
    return static_cast<double>(std::max<int64_t>(1, shape.kvHeads / sizes.tp) * shape.headSize);
  }
  double qkvWidth() const { return queryWidth() + 2 * kvWidth(); }
  double upWidth() const { return static_cast<double>(shape.ffnHidden * (shape.gated ? 2 : 1)) / tp; }
  double downWidth() const { return static_cast<double>(shape.ffnHidden) / tp; }
  /// Padded to what TP divides.
  double vocabulary() const { return static_cast<double>((shape.vocabulary + sizes.tp - 1) / sizes.tp); }
  /// Bytes of reading or writing something `width` wide for every row.
  double wide(double width) const { return rows * width * element; }

  const ModelShape &shape;
  const Sizes &sizes;
  double rows, tp, element, h;
  bool again = false;
  Work work;
};

void WorkBuilder::collective(Axis axis, CollectiveKind kind, DType dtype, double bytes, Beside beside) {
  if ((axis == Axis::TP ? sizes.tp : sizes.cp) > 1)
    work.push_back({Collective{axis, kind, dtype, bytes, beside}, again});
}

/// Before a column-parallel linear: the rows of the others (arXiv 2205.05198, section 4.2.2).
void WorkBuilder::columnInput(bool backward) {
  if (sizes.sequenceParallel)
    collective(Axis::TP, CollectiveKind::AllGather, sizes.dtype, residual(),
               when(backward ? TpOverlap::Bulk : TpOverlap::Ring, Beside::NextMatmul));
}

/// After a row-parallel linear: the sum.
void WorkBuilder::rowOutput() {
  collective(Axis::TP, sizes.sequenceParallel ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce, sizes.dtype,
             residual(), when(TpOverlap::Ring, Beside::PreviousMatmul));
}

void WorkBuilder::linear(double n, double k, bool fp8) {
  if (fp8)
    // Operands: read in 16 bits, written in 8 twice, once transposed for the backward.
    pass((kHalfBytes + 2) * (rows * k + n * k));
  add({rows, n, k, fp8});
}

/// Data gradient, then weight gradient into the accumulator. A column-parallel linear gathers its input again and sums
/// the gradient of its input.
void WorkBuilder::linearBackward(double n, double k, bool fp8, BodyPhase phase, bool column) {
  if (fp8 && phase != BodyPhase::WeightGradient)
    pass((kHalfBytes + 2) * rows * n);
  if (phase != BodyPhase::WeightGradient) {
    add({rows, k, n, fp8});
    if (column)
      collective(Axis::TP, sizes.sequenceParallel ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce,
                 sizes.dtype, residual(), when(TpOverlap::Bulk, Beside::NextMatmul));
  }
  if (phase != BodyPhase::InputGradient) {
    add({k, n, rows, fp8});
    // Read and written by the product that adds to it.
    pass(2 * static_cast<double>(sizes.gradientBytes) * n * k);
  }
}

void WorkBuilder::attention(AttentionPhase phase) {
  bool forward = phase == AttentionPhase::Forward;
  double sequence = static_cast<double>(sizes.sequence);
  double length = sizes.documentLength > 0 ? std::min(sizes.documentLength, sequence) : sequence;
  double keys = sizes.unfusedAttention ? sequence : (length + 1) / 2;
  auto heads = static_cast<int64_t>(queryWidth() / static_cast<double>(shape.headSize));
  AttentionShape attended{rows, rows * keys, std::max<int64_t>(1, heads), shape.headSize};
  work.push_back({Attention{phase, attended}, again});
  if (!sizes.unfusedAttention)
    return;
  // Bytes of each score. Forward: the product writes it, scale with mask and softmax read and write it, dropout reads
  // and writes it and a mask of a byte, the second product reads it. Backward: the same of its gradient, with the
  // probabilities and the mask read again.
  double scores = attended.pairs * static_cast<double>(attended.heads);
  pass(scores * (forward ? 2 + 4 + 5 + 2 : 2 + 5 + 6 + 4 + 2));
}

/// Keys and values of the other CP ranks.
void WorkBuilder::attentionRead() {
  for (int i = 0; i < 2; ++i)
    collective(Axis::CP, CollectiveKind::AllGather, sizes.dtype, wide(kvWidth()) * static_cast<double>(sizes.cp));
}

void WorkBuilder::embedForward() {
  pass(2 * residual() * (shape.positionRows > 0 ? 1.5 : 1));
  collective(Axis::TP, sizes.sequenceParallel ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce, sizes.dtype,
             residual());
}

void WorkBuilder::embedBackward() {
  if (sizes.sequenceParallel)
    collective(Axis::TP, CollectiveKind::AllGather, sizes.dtype, residual());
  // Rows read, and added to the table's gradient.
  pass(residual() + 2 * rows * h * static_cast<double>(sizes.gradientBytes));
}

/// `last`: with the last matmul and its sum, whose result nobody reads where only a backward follows.
void WorkBuilder::layerForward(bool last) {
  bool fused = sizes.fusedElementwise;
  pass((fused ? 4 : 5) * ownResidual()); // residual add with the norm; one kernel each
  columnInput(again);
  linear(qkvWidth(), h, sizes.fp8);
  if (shape.positionRows == 0)
    pass((fused ? 2 : 5) * wide(queryWidth() + kvWidth())); // rotary
  else if (!fused)
    pass(2 * wide(qkvWidth())); // bias
  attentionRead();
  if (!(again && sizes.recompute == Recompute::HalfMatmuls))
    attention(AttentionPhase::Forward);
  linear(h, queryWidth(), sizes.fp8);
  rowOutput();
  pass((fused ? 4 : 5) * ownResidual());
  columnInput(again);
  linear(upWidth(), h, sizes.fp8);
  pass((shape.gated ? (fused ? 3 : 5) : (fused ? 2 : 4)) * wide(downWidth()));
  if (!last)
    return;
  linear(h, downWidth(), sizes.fp8);
  rowOutput();
}

void WorkBuilder::layerRecompute() {
  again = true;
  size_t first = work.size();
  switch (sizes.recompute) {
  case Recompute::None:
    break;
  case Recompute::Selective:
    attention(AttentionPhase::Forward);
    break;
  case Recompute::Full:
    layerForward(false);
    break;
  case Recompute::Layers:
    layerForward(true);
    break;
  case Recompute::HalfMatmuls:
  case Recompute::HalfLayers:
    layerForward(true);
    for (size_t i = first; i < work.size(); ++i) {
      bool halved = sizes.recompute == Recompute::HalfLayers;
      if (auto *matmul = std::get_if<Matmul>(&work[i].what))
        matmul->m /= 2;
      else if (auto *pass = std::get_if<Pass>(&work[i].what); pass && halved)
        pass->bytes /= 2;
      else if (auto *attention = std::get_if<Attention>(&work[i].what); attention && halved)
        attention->shape.rows /= 2, attention->shape.pairs /= 2;
      else if (auto *collective = std::get_if<Collective>(&work[i].what); collective && halved)
        collective->bytes /= 2;
    }
    break;
  }
  again = false;
}

void WorkBuilder::layerBackward(BodyPhase phase) {
  bool fused = sizes.fusedElementwise, input = phase != BodyPhase::WeightGradient;
  // A layer that runs forward again has gathered its inputs by that.
  bool gathered = sizes.recompute == Recompute::Full || sizes.recompute == Recompute::Layers;
  if (input) {
    layerRecompute();
    columnInput(true); // the gradient of the output, for both products of the row-parallel linear
  }
  linearBackward(h, downWidth(), sizes.fp8, phase, false);
  if (input) {
    pass((shape.gated ? (fused ? 5 : 8) : (fused ? 3 : 5)) * wide(downWidth()));
    if (!gathered)
      columnInput(true);
  }
  linearBackward(upWidth(), h, sizes.fp8, phase, true);
  if (input) {
    pass((fused ? 4 : 6) * ownResidual());
    columnInput(true);
  }
  linearBackward(h, queryWidth(), sizes.fp8, phase, false);
  if (input) {
    if (sizes.recompute != Recompute::Full && sizes.recompute != Recompute::Layers)
      attentionRead();
    attention(AttentionPhase::Backward);
    for (int i = 0; i < 2; ++i)
      collective(Axis::CP, CollectiveKind::ReduceScatter, DType::F32,
                 4 * rows * kvWidth() * static_cast<double>(sizes.cp));
    if (shape.positionRows == 0)
      pass((fused ? 2 : 5) * wide(queryWidth() + kvWidth()));
    if (!gathered)
      columnInput(true);
  }
  linearBackward(qkvWidth(), h, sizes.fp8, phase, true);
  if (input)
    pass((fused ? 4 : 6) * ownResidual());
}

void WorkBuilder::headForward() {
  pass(2 * ownResidual());
  columnInput(again);
  add({rows, vocabulary(), h});
  if (again)
    return;
  // Cross entropy in f32. Fused: read for maximum and sum, and for the label. Else a cast, then maximum, difference,
  // exponential and sum, one kernel each.
  pass(rows * vocabulary() * (sizes.fusedLoss ? 8 : 26));
  for (int i = 0; i < 3; ++i) // maximum, sum of exponentials, the label's logit (Megatron-LM, vocab parallel loss)
    collective(Axis::TP, CollectiveKind::AllReduce, DType::F32, 4 * rows);
}

void WorkBuilder::headBackward(BodyPhase phase) {
  bool input = phase != BodyPhase::WeightGradient;
  if (input) {
    if (sizes.recompute == Recompute::Full) {
      again = true;
      headForward();
      again = false;
    } else {
      columnInput(true);
    }
    pass(rows * vocabulary() * (sizes.fusedLoss ? 6 : 14));
  }
  linearBackward(vocabulary(), h, false, phase, true);
  if (input)
    pass(3 * ownResidual());
}

Work WorkBuilder::build(BodyKind body, BodyPhase phase) {
  bool forward = phase == BodyPhase::Forward;
  switch (body) {
  case BodyKind::Embed:
    if (forward)
      embedForward();
    else if (phase != BodyPhase::WeightGradient)
      embedBackward();
    break;
  case BodyKind::Layer:
    if (forward)
      layerForward(true);
    else
      layerBackward(phase);
    break;
  case BodyKind::Head:
    if (forward)
      headForward();
    else
      headBackward(phase);
    break;
  }
  return std::move(work);
}
} // namespace

Work cost::workOf(const ModelShape &shape, const Sizes &sizes, BodyKind body, BodyPhase phase) {
  return WorkBuilder(shape, sizes).build(body, phase);
}

double cost::flopsOf(const Work &work, bool again) {
  double flops = 0;
  for (const Op &op : work) {
    if (op.again && !again)
      continue;
    if (const auto *matmul = std::get_if<Matmul>(&op.what))
      flops += matmul->flops();
    else if (const auto *attention = std::get_if<Attention>(&op.what))
      flops += attention->shape.flops(attention->phase);
  }
  return flops;
}

double cost::sentBytes(const Work &work, Axis axis, CollectiveKind kind, int64_t ranks) {
  double bytes = 0;
  for (const Op &op : work)
    if (const auto *collective = std::get_if<Collective>(&op.what);
        collective && collective->axis == axis && collective->kind == kind)
      bytes += collective->bytes;
  double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return bytes * share * (kind == CollectiveKind::AllReduce ? 2 : 1);
}
