//===- AttentionSizes.h - sizes of the runtime's attention ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CONVERSION_ATTENTIONSIZES_H
#define DROVER_LIB_CONVERSION_ATTENTIONSIZES_H

#include "drover/rt/abi.h"
#include "mlir/IR/BuiltinTypes.h"

namespace drover {

/// What the operands' shapes say, of tfm.attention and rt.attention and of their gradients.
template <typename AttentionT> drover_attention attentionSizes(AttentionT op) {
  auto shape = [](mlir::Value operand) { return llvm::cast<mlir::ShapedType>(operand.getType()).getShape(); };
  llvm::ArrayRef<int64_t> query = shape(op.getQuery()), key = shape(op.getKey()), value = shape(op.getValue());
  drover_attention desc = {};
  desc.batch = query[0];
  desc.queries = query[1];
  desc.keys = key[1];
  desc.heads = op.getNumHeads();
  desc.kv_heads = op.getNumKvHeads();
  desc.head_size = query[2] / desc.heads;
  desc.value_head_size = value[2] / desc.kv_heads;
  return desc;
}

} // namespace drover

#endif // DROVER_LIB_CONVERSION_ATTENTIONSIZES_H
