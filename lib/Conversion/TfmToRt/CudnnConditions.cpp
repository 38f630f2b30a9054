//===- CudnnConditions.cpp - where cuDNN computes attention -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CudnnConditions.h"

using namespace drover::lower;

/// Of a backward: with longer sequences the deterministic one takes more memory than a layer's activations.
static constexpr int64_t kMostWorkspace = int64_t(4) << 30;

static std::string number(int64_t value) { return std::to_string(value); }

/// What the plan's graph does not have: masks other than a causal one over dense sequences. An additive mask would be
/// dense in both lengths, and with one the backward gives NaN where the length is 64 modulo 128 (pytorch #196678);
/// ragged documents give zero gradients with sums by head (cudnn-frontend PR 462), and NaN before 9.18
/// (TransformerEngine #2186).
static std::string whyNotMask(const CudnnQuestion &q) {
  if (q.hasMask)
    return "a mask of pairs";
  if (q.hasKeyMask)
    return "a mask of keys";
  if (q.hasDocuments)
    return "documents";
  if (q.hasQueryIndex)
    return "queries at places of their own, as with context parallelism";
  if (q.hasSlopes)
    return "ALiBi slopes";
  if (q.sizes.window > 0)
    return "a window";
  if (q.sizes.softcap > 0)
    return "a softcap";
  return "";
}

/// cudnn-frontend, docs/operations/Attention.md: multiples of 8; up to 128 in both directions on all versions.
static std::string whyNotSizes(const drover_attention &d) {
  if (d.head_size != d.value_head_size)
    return "values of another head size (" + number(d.value_head_size) + ") than keys (" + number(d.head_size) + ")";
  if (d.head_size % 8 != 0 || d.head_size > 128)
    return "heads of " + number(d.head_size) + " elements, which is no multiple of 8 up to 128";
  if (d.heads % d.kv_heads != 0)
    return number(d.heads) + " query heads, which " + number(d.kv_heads) + " kv heads do not divide";
  if (d.causal != 0 && d.queries > d.keys)
    return number(d.queries) + " queries over " + number(d.keys) + " keys with a causal mask";
  return "";
}

static std::string whyNotBackward(const drover_attention &d) {
  if (d.dtype_kv_grad != DROVER_BF16)
    return "gradients of keys and values in f32, which are summed over ranks";
  if (d.queries < 2)
    return "one query, for which the backward gives NaN (cudnn-frontend #1072)";
  int64_t bytes = drover_cudnn_workspace(&d, true);
  if (bytes > kMostWorkspace)
    return "a deterministic backward with " + number(bytes) + " bytes of workspace, which is more than " +
           number(kMostWorkspace);
  return "";
}

std::string drover::lower::whyNotCudnn(const CudnnQuestion &q) {
  if (q.sizes.dtype != DROVER_BF16)
    return "f32";
  std::string reason = whyNotMask(q);
  if (reason.empty())
    reason = whyNotSizes(q.sizes);
  if (reason.empty() && q.backward)
    reason = whyNotBackward(q.sizes);
  return reason;
}
