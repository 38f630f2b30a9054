//===- LibraryCalls.cpp - matmuls, attention, embedding ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "LibraryCalls.h"
#include "../AttentionSizes.h"
#include "CudnnConditions.h"
#include "GpuAttention.h"
#include "SpecialKernels.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

static bool isComputeType(Type type) { return type.isF32() || type.isBF16(); }

bool lower::isMatmul(Operation *op) {
  return isa<tfm::LinearOp, tfm::LinearWeightGradOp, tfm::MatmulOp>(op) && !isElementProduct(op);
}

bool lower::isLibraryCall(Operation *op) {
  if (isMatmul(op))
    return isComputeType(elementTypeOf(op->getOperand(0))) &&
           elementTypeOf(op->getOperand(0)) == elementTypeOf(op->getOperand(1)) &&
           isComputeType(elementTypeOf(op->getResult(0)));
  return isa<tfm::AttentionOp, tfm::AttentionGradOp, tfm::EmbeddingGradOp>(op);
}

//===----------------------------------------------------------------------===//
// Matmuls
//===----------------------------------------------------------------------===//

/// Joins the leading dimensions of a view to rows.
static std::optional<View> asRows(const View &view) {
  std::optional<int64_t> stride = rowStride(view);
  if (!stride)
    return std::nullopt;
  View rows{view.root, view.offset, {}, {}};
  rows.shape = {product(ArrayRef(view.shape).drop_back()), view.shape.back()};
  rows.strides = {*stride, view.strides.back()};
  return rows;
}

std::optional<MatmulViews> lower::matmulViews(Operation *op, const View &lhs, const View &rhs, const View &result) {
  MatmulViews views;
  if (auto matmul = dyn_cast<tfm::MatmulOp>(op)) {
    views = {lhs, rhs, result, matmul.getTransposeLhs(), matmul.getTransposeRhs()};
  } else {
    std::optional<View> left = asRows(lhs), to = asRows(result);
    if (auto linear = dyn_cast<tfm::LinearOp>(op)) {
      if (!left || !to)
        return std::nullopt;
      return views = {*left, rhs, *to, false, !linear.getInOut()};
    }
    // weight_grad[n, k]: gradient^T input; the other way round with in_out.
    std::optional<View> right = asRows(rhs);
    if (!left || !right || !to)
      return std::nullopt;
    if (!cast<tfm::LinearWeightGradOp>(op).getInOut())
      std::swap(left, right);
    views = {*left, *right, *to, true, false};
  }
  return views;
}

Value lower::matrixOperand(BodyEmitter &emitter, const View &view, bool &transposed, int64_t batch) {
  MatrixView matrix = *matrixView(view);
  size_t rank = view.shape.size();
  View stored{view.root, view.offset, {view.shape[rank - 2], view.shape[rank - 1]}, {matrix.leading, 1}};
  if (matrix.transposed) {
    std::swap(stored.shape[0], stored.shape[1]);
    transposed = !transposed;
  }
  if (batch > 1) {
    stored.shape.insert(stored.shape.begin(), batch);
    stored.strides.insert(stored.strides.begin(), matrix.batchStride);
  }
  return emitter.strided(stored);
}

static void emitMatmul(BodyEmitter &emitter, MatmulViews views, rt::Store store) {
  int64_t batch = matrixView(views.result)->batch;
  bool plain = false;
  Value lhs = matrixOperand(emitter, views.lhs, views.transposeLhs, batch);
  Value rhs = matrixOperand(emitter, views.rhs, views.transposeRhs, batch);
  Value result = matrixOperand(emitter, views.result, plain, batch);
  rt::MatmulOp::create(emitter.body, emitter.call, lhs, rhs, result, store, views.transposeLhs, views.transposeRhs);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

std::optional<View> lower::attentionRows(View view) {
  if (view.shape[2] == 1)
    view.strides[2] = 1;
  if (view.shape[1] == 1)
    view.strides[1] = view.shape[0] == 1 ? view.shape[2] : view.strides[0];
  if (view.shape[0] == 1)
    view.strides[0] = view.shape[1] * view.strides[1];
  if (view.strides[2] != 1 || view.strides[0] != view.shape[1] * view.strides[1] || view.strides[1] < view.shape[2])
    return std::nullopt;
  return view;
}

static bool attentionFits(Operation *op, Value operand, const View &view) {
  auto has = [&](Value mask) { return mask && mask == operand; };
  auto isMask = [&](auto attention) {
    if (has(attention.getDocuments()) || has(attention.getQueryIndex()))
      return isWhole(view);
    if (has(attention.getMask()) || has(attention.getKeyMask()))
      return view.shape.back() == 1 || view.strides.back() == 1;
    return view.shape.size() == 3 && attentionRows(view).has_value();
  };
  if (auto attention = dyn_cast<tfm::AttentionOp>(op))
    return isMask(attention);
  auto gradient = cast<tfm::AttentionGradOp>(op);
  return operand == gradient.getLogSumExp() ? isWhole(view) : isMask(gradient);
}

bool lower::operandFits(Operation *op, unsigned index, const View &view) {
  if (isa<tfm::AttentionOp, tfm::AttentionGradOp>(op))
    return attentionFits(op, op->getOperand(index), view);
  if (isa<tfm::EmbeddingGradOp>(op))
    return ArrayRef(view.strides) == ArrayRef(contiguousStrides(view.shape));
  bool rows = isa<tfm::LinearWeightGradOp>(op) || (isa<tfm::LinearOp>(op) && index == 0);
  std::optional<View> matrix = rows ? asRows(view) : view;
  return matrix && matrixView(*matrix);
}

namespace {
/// Operands of both directions after the tensors that only one of them has.
struct AttentionMasks {
  Value mask, keyMask, documents, queryIndex;
};
} // namespace

template <typename Op> static AttentionMasks emitMasks(BodyEmitter &emitter, const Views &views, Op op) {
  auto operand = [&](Value value) -> Value {
    if (!value)
      return {};
    View view = views.of(value);
    for (auto [size, stride] : llvm::zip(view.shape, view.strides)) // broadcast: size 1
      if (stride == 0)
        size = 1;
    return emitter.strided(view);
  };
  return {operand(op.getMask()), operand(op.getKeyMask()), operand(op.getDocuments()), operand(op.getQueryIndex())};
}

static Value rows(BodyEmitter &emitter, const Views &views, Value value) {
  return emitter.strided(*attentionRows(views.of(value)));
}

static Value whole(BodyEmitter &emitter, const Views &views, Value value) { return emitter.strided(views.of(value)); }

template <typename Op> static int64_t attentionWorkspace(Op op) {
  drover_attention desc = attentionSizes(op);
  desc.dtype = elementTypeOf(op.getQuery()).isF32() ? DROVER_F32 : DROVER_BF16;
  return drover_attention_workspace(&desc);
}

static void emitAttention(BodyEmitter &emitter, const Views &views, tfm::AttentionOp op) {
  AttentionMasks masks = emitMasks(emitter, views, op);
  rt::AttentionOp::create(emitter.body, emitter.call, rows(emitter, views, op.getQuery()),
                          rows(emitter, views, op.getKey()), rows(emitter, views, op.getValue()), masks.mask,
                          masks.keyMask, masks.documents, masks.queryIndex, rows(emitter, views, op.getResult()),
                          whole(emitter, views, op.getLogSumExp()), emitter.scratch(0), op.getNumHeads(),
                          op.getNumKvHeads(), op.getScale(), static_cast<rt::Causal>(op.getCausal()),
                          op.getWindowAttr(), op.getSoftcapAttr(), op.getAlibiSlopesAttr());
}

static void emitAttentionGrad(BodyEmitter &emitter, const Views &views, tfm::AttentionGradOp op) {
  AttentionMasks masks = emitMasks(emitter, views, op);
  rt::AttentionGradOp::create(
      emitter.body, emitter.call, rows(emitter, views, op.getQuery()), rows(emitter, views, op.getKey()),
      rows(emitter, views, op.getValue()), rows(emitter, views, op.getResult()),
      whole(emitter, views, op.getLogSumExp()), rows(emitter, views, op.getGradient()), masks.mask, masks.keyMask,
      masks.documents, masks.queryIndex, rows(emitter, views, op.getQueryGrad()), rows(emitter, views, op.getKeyGrad()),
      rows(emitter, views, op.getValueGrad()), emitter.scratch(0), op.getNumHeads(), op.getNumKvHeads(), op.getScale(),
      static_cast<rt::Causal>(op.getCausal()), op.getWindowAttr(), op.getSoftcapAttr(), op.getAlibiSlopesAttr());
}

//===----------------------------------------------------------------------===//
// By cuDNN
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kCudnnAttr = "drover.cudnn";

template <typename Op> static CudnnQuestion cudnnQuestion(Op op, bool backward, Type keyGrad) {
  CudnnQuestion question;
  drover_attention &sizes = question.sizes = attentionSizes(op);
  sizes.dtype = elementTypeOf(op.getQuery()).isBF16() ? DROVER_BF16 : DROVER_F32;
  sizes.dtype_kv_grad = keyGrad.isBF16() ? DROVER_BF16 : DROVER_F32;
  sizes.causal = static_cast<int32_t>(op.getCausal());
  sizes.window = op.getWindow().value_or(0);
  sizes.softcap = op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0.0;
  question.backward = backward;
  question.hasMask = bool(op.getMask());
  question.hasKeyMask = bool(op.getKeyMask());
  question.hasDocuments = bool(op.getDocuments());
  question.hasQueryIndex = bool(op.getQueryIndex());
  question.hasSlopes = op.getAlibiSlopes().has_value();
  return question;
}

template <typename Op> static void markCudnn(Op op, const CudnnQuestion &question) {
  std::string reason = whyNotCudnn(question);
  if (reason.empty())
    op->setAttr(kCudnnAttr, UnitAttr::get(op.getContext()));
  else
    op.emitWarning("attention is computed by a generated kernel, since cuDNN's is not taken for ") << reason;
}

void lower::markCudnnAttention(Operation *body) {
  body->walk([](tfm::AttentionOp op) { markCudnn(op, cudnnQuestion(op, false, elementTypeOf(op.getKey()))); });
  body->walk([](tfm::AttentionGradOp op) { markCudnn(op, cudnnQuestion(op, true, elementTypeOf(op.getKeyGrad()))); });
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

SmallVector<int64_t> lower::libraryScratchBytes(Operation *op, Target target) {
  auto attention = dyn_cast<tfm::AttentionOp>(op);
  auto gradient = dyn_cast<tfm::AttentionGradOp>(op);
  if (op->hasAttr(kCudnnAttr)) {
    drover_attention sizes = attention ? attentionSizes(attention) : attentionSizes(gradient);
    return {drover_cudnn_workspace(&sizes, bool(gradient))};
  }
  if (attention)
    return target == Target::Cuda ? gpuAttentionScratchBytes(attention) : SmallVector{attentionWorkspace(attention)};
  if (gradient)
    return target == Target::Cuda ? gpuAttentionScratchBytes(gradient) : SmallVector{attentionWorkspace(gradient)};
  return {};
}

template <typename Op> static LogicalResult verifyHeads(Op op) {
  drover_attention sizes = attentionSizes(op);
  int64_t longest = std::max(sizes.head_size, sizes.value_head_size);
  if (longest <= kLongestHead)
    return success();
  return op.emitOpError("expects heads of at most ")
         << kLongestHead << " elements for the cuda target, not " << longest;
}

LogicalResult lower::verifyLibraryCall(Operation *op, Target target) {
  auto attention = dyn_cast<tfm::AttentionOp>(op);
  auto gradient = dyn_cast<tfm::AttentionGradOp>(op);
  if (target == Target::Cuda &&
      ((attention && failed(verifyHeads(attention))) || (gradient && failed(verifyHeads(gradient)))))
    return failure();
  if (isa<tfm::AttentionOp, tfm::AttentionGradOp, tfm::EmbeddingGradOp>(op))
    for (Value operand : op->getOperands()) {
      Type type = elementTypeOf(operand);
      if (type.isF64() || type.isF16())
        return op->emitOpError("is supported in f32 and bf16 by the ")
               << (target == Target::Cuda ? "cuda" : "host") << " target, not in " << type;
    }
  return success();
}

void lower::emitLibraryCall(BodyEmitter &emitter, const Views &views, Operation *op, const View &target,
                            rt::Store store) {
  if (isMatmul(op))
    return emitMatmul(emitter, *matmulViews(op, views.of(op->getOperand(0)), views.of(op->getOperand(1)), target),
                      store);
  bool isCuda = emitter.target == Target::Cuda && !op->hasAttr(kCudnnAttr);
  if (auto attention = dyn_cast<tfm::AttentionOp>(op))
    return isCuda ? emitGpuAttention(emitter, views, attention) : emitAttention(emitter, views, attention);
  if (auto gradient = dyn_cast<tfm::AttentionGradOp>(op))
    return isCuda ? emitGpuAttentionGrad(emitter, views, gradient) : emitAttentionGrad(emitter, views, gradient);
  auto embedding = cast<tfm::EmbeddingGradOp>(op);
  if (isCuda)
    return emitGpuEmbeddingGrad(emitter, views, embedding, target, store);
  View ids = views.of(embedding.getIds()), gradient = views.of(embedding.getGradient());
  ids.shape = {product(ids.shape)};
  ids.strides = {1};
  gradient.shape = {ids.shape[0], gradient.shape.back()};
  gradient.strides = contiguousStrides(gradient.shape);
  Value offset;
  if (embedding.getOffset()) {
    View view = views.of(embedding.getOffset());
    offset = emitter.strided({view.root, view.offset, {1}, {1}});
  }
  rt::EmbeddingGradOp::create(emitter.body, emitter.call, emitter.strided(ids), emitter.strided(gradient), offset,
                              emitter.strided(target), store);
}
