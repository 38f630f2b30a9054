//===- Channels.cpp - channels as linear forms ----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Channels.h"

using namespace mlir;
using namespace drover::tfm;

using Forms = std::vector<LinearForm>;

namespace {
/// Follows a value whose last `trailing` dimensions are channels. A form stops at what it cannot see through.
class Walker {
public:
  std::optional<Forms> walk(Value value, unsigned trailing, int depth);

private:
  Forms leaf(Value value, int64_t count) {
    Forms forms(count);
    for (int64_t c = 0; c < count; ++c)
      forms[c].push_back({value, c, 1.0, Value(), 0});
    return forms;
  }
  std::optional<Forms> walkSlice(SliceOp op, unsigned trailing, int depth);
  std::optional<Forms> walkConcat(ConcatOp op, unsigned trailing, int depth);
  std::optional<Forms> walkReshape(ReshapeOp op, unsigned trailing, int depth);
  std::optional<Forms> walkSum(Operation *op, unsigned trailing, int depth);
  std::optional<Forms> walkProduct(arith::MulFOp op, unsigned trailing, int depth);
};

/// Number of elements of the last `trailing` dimensions; -1 where dynamic.
int64_t countTrailing(Value value, unsigned trailing) {
  int64_t count = 1;
  for (int64_t size : cast<RankedTensorType>(value.getType()).getShape().take_back(trailing)) {
    if (ShapedType::isDynamic(size))
      return -1;
    count *= size;
  }
  return count;
}
} // namespace

std::optional<Forms> Walker::walk(Value value, unsigned trailing, int depth) {
  int64_t count = countTrailing(value, trailing);
  if (count < 0 || count > 4096)
    return std::nullopt;
  Operation *op = value.getDefiningOp();
  std::optional<Forms> forms;
  if (op && depth > 0) {
    if (auto slice = dyn_cast<SliceOp>(op))
      forms = walkSlice(slice, trailing, depth - 1);
    else if (auto concat = dyn_cast<ConcatOp>(op))
      forms = walkConcat(concat, trailing, depth - 1);
    else if (auto reshape = dyn_cast<ReshapeOp>(op))
      forms = walkReshape(reshape, trailing, depth - 1);
    else if (isa<arith::AddFOp, arith::SubFOp>(op))
      forms = walkSum(op, trailing, depth - 1);
    else if (auto product = dyn_cast<arith::MulFOp>(op))
      forms = walkProduct(product, trailing, depth - 1);
    else if (auto negate = dyn_cast<arith::NegFOp>(op)) {
      forms = walk(negate.getOperand(), trailing, depth - 1);
      if (forms)
        for (LinearForm &form : *forms)
          for (Term &term : form)
            term.scale = -term.scale;
    }
  }
  return forms ? forms : leaf(value, count);
}

std::optional<Forms> Walker::walkSlice(SliceOp op, unsigned trailing, int depth) {
  auto from = cast<RankedTensorType>(op.getInput().getType()), to = cast<RankedTensorType>(op.getType());
  unsigned rank = from.getRank(), leading = rank - trailing;
  if (op.getOffsetMap())
    return std::nullopt;
  std::optional<Sizes> fromSizes = symbolicSizes(op.getInput()), toSizes = symbolicSizes(op.getResult());
  for (unsigned dim = 0; dim < leading; ++dim)
    if (op.getOffsets()[dim] != 0 || op.getStrides()[dim] != 1 || !fromSizes || !toSizes ||
        (*fromSizes)[dim] != (*toSizes)[dim])
      return std::nullopt;
  std::optional<Forms> inner = walk(op.getInput(), trailing, depth);
  if (!inner)
    return std::nullopt;
  Forms forms;
  int64_t count = countTrailing(op.getResult(), trailing);
  for (int64_t c = 0; c < count; ++c) {
    int64_t rest = c, source = 0, stride = 1;
    for (unsigned dim = rank; dim-- > leading;) {
      int64_t index = rest % to.getDimSize(dim);
      rest /= to.getDimSize(dim);
      source += (op.getOffsets()[dim] + index * op.getStrides()[dim]) * stride;
      stride *= from.getDimSize(dim);
    }
    forms.push_back((*inner)[source]);
  }
  return forms;
}

std::optional<Forms> Walker::walkConcat(ConcatOp op, unsigned trailing, int depth) {
  auto type = cast<RankedTensorType>(op.getType());
  unsigned rank = type.getRank(), axis = op.getAxis();
  if (axis < rank - trailing)
    return std::nullopt;
  int64_t inner = countTrailing(op.getResult(), rank - axis - 1);
  int64_t outer = countTrailing(op.getResult(), trailing) / (inner * type.getDimSize(axis));
  Forms forms(outer * type.getDimSize(axis) * inner);
  int64_t offset = 0;
  for (Value input : op.getInputs()) {
    std::optional<Forms> part = walk(input, trailing, depth);
    if (!part)
      return std::nullopt;
    int64_t block = cast<RankedTensorType>(input.getType()).getDimSize(axis) * inner;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < block; ++i)
        forms[o * type.getDimSize(axis) * inner + offset + i] = (*part)[o * block + i];
    offset += block;
  }
  return forms;
}

std::optional<Forms> Walker::walkReshape(ReshapeOp op, unsigned trailing, int depth) {
  std::optional<Sizes> from = symbolicSizes(op.getInput()), to = symbolicSizes(op.getResult());
  if (!from || !to)
    return std::nullopt;
  // The leading dimensions must be the same ones; the channels then are the same in row-major order.
  unsigned leading = to->size() - trailing;
  if (from->size() < leading || ArrayRef(*from).take_front(leading) != ArrayRef(*to).take_front(leading))
    return std::nullopt;
  if (countTrailing(op.getInput(), from->size() - leading) != countTrailing(op.getResult(), trailing))
    return std::nullopt;
  return walk(op.getInput(), from->size() - leading, depth);
}

std::optional<Forms> Walker::walkSum(Operation *op, unsigned trailing, int depth) {
  std::optional<Forms> lhs = walk(op->getOperand(0), trailing, depth), rhs = walk(op->getOperand(1), trailing, depth);
  if (!lhs || !rhs)
    return std::nullopt;
  for (auto [left, right] : llvm::zip(*lhs, *rhs))
    for (Term term : right) {
      if (isa<arith::SubFOp>(op))
        term.scale = -term.scale;
      left.push_back(term);
      if (left.size() > 4)
        return std::nullopt;
    }
  return lhs;
}

std::optional<Forms> Walker::walkProduct(arith::MulFOp op, unsigned trailing, int depth) {
  Value input;
  if (std::optional<double> factor = matchWithSplat<arith::MulFOp>(op.getResult(), input)) {
    std::optional<Forms> forms = walk(input, trailing, depth);
    if (forms)
      for (LinearForm &form : *forms)
        for (Term &term : form)
          term.scale *= *factor;
    return forms;
  }
  for (unsigned side : {1u, 0u}) {
    Value table = op->getOperand(side);
    if (!isTable(table) || isTable(op->getOperand(1 - side)))
      continue;
    std::optional<Forms> forms = walk(op->getOperand(1 - side), trailing, depth);
    if (!forms)
      return std::nullopt;
    for (auto [channel, form] : llvm::enumerate(*forms))
      for (Term &term : form) {
        if (term.table)
          return std::nullopt;
        term.table = table;
        term.tableChannel = channel;
      }
    return forms;
  }
  return std::nullopt;
}

std::optional<Forms> drover::tfm::channelsOf(Value value) {
  if (cast<RankedTensorType>(value.getType()).getRank() == 0)
    return std::nullopt;
  return Walker().walk(value, 1, 16);
}
