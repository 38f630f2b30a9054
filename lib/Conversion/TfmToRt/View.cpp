//===- View.cpp - strided views of buffers ----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "View.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

ArrayRef<int64_t> lower::shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

Type lower::elementTypeOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

int64_t lower::product(ArrayRef<int64_t> sizes) {
  int64_t total = 1;
  for (int64_t size : sizes)
    total *= size;
  return total;
}

Sizes lower::contiguousStrides(ArrayRef<int64_t> shape) {
  Sizes strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i])
    strides[i] = stride;
  return strides;
}

void lower::collapse(Sizes &shape, Sizes &strides) {
  Sizes newShape, newStrides;
  for (auto [size, stride] : llvm::zip(shape, strides)) {
    if (size == 1)
      continue;
    if (!newShape.empty() && newStrides.back() == stride * size) {
      newShape.back() *= size;
      newStrides.back() = stride;
      continue;
    }
    newShape.push_back(size);
    newStrides.push_back(stride);
  }
  shape = newShape;
  strides = newStrides;
}

bool lower::isWhole(const View &view) {
  return view.offset == 0 && ArrayRef(view.strides) == ArrayRef(contiguousStrides(view.shape)) &&
         product(view.shape) == product(shapeOf(view.root));
}

std::optional<int64_t> lower::rowStride(const View &view) {
  if (view.shape.empty())
    return std::nullopt;
  Sizes shape(llvm::drop_end(view.shape)), strides(llvm::drop_end(view.strides));
  collapse(shape, strides);
  if (shape.size() > 1)
    return std::nullopt;
  return shape.empty() ? view.shape.back() : strides.front();
}

std::optional<MatrixView> lower::matrixView(const View &view) {
  size_t rank = view.shape.size();
  assert(rank >= 2 && "expects a matrix");
  MatrixView matrix;
  int64_t rows = view.shape[rank - 2], cols = view.shape[rank - 1];
  int64_t outer = view.strides[rank - 2], inner = view.strides[rank - 1];
  // A leading dimension must be at least the length of the stored rows, even where it is never used.
  if ((inner == 1 || cols == 1) && (outer >= cols || rows == 1)) {
    matrix.leading = std::max(outer, cols);
  } else if ((outer == 1 || rows == 1) && (inner >= rows || cols == 1)) {
    matrix.transposed = true;
    matrix.leading = std::max(inner, rows);
  } else {
    return std::nullopt;
  }
  Sizes shape(llvm::drop_end(view.shape, 2)), strides(llvm::drop_end(view.strides, 2));
  collapse(shape, strides);
  if (shape.size() > 1)
    return std::nullopt;
  if (!shape.empty()) {
    matrix.batch = shape.front();
    matrix.batchStride = strides.front();
  }
  return matrix;
}

bool Access::isIdentity(int64_t rows, int64_t cols, bool perRow) const {
  if (offset != 0 || (!perRow && cols != 1 && colStride != 1) || (perRow && colStride != 0))
    return false;
  int64_t stride = perRow ? 1 : cols;
  return rows == 1 || (rowShape.size() == 1 && rowShape.front() == rows && rowStrides.front() == stride);
}

Access lower::accessOf(const View &full, Role role, int64_t cols) {
  Access access;
  View view = full;
  while (role == Role::Element && cols != 1 && !view.shape.empty() && view.shape.back() == 1) {
    view.shape.pop_back();
    view.strides.pop_back();
  }
  access.root = view.root;
  access.offset = view.offset;
  if (role == Role::Row) {
    access.rowShape = view.shape;
    access.rowStrides = view.strides;
  } else if (role == Role::Element && !view.shape.empty()) {
    access.rowShape.assign(view.shape.begin(), view.shape.end() - 1);
    access.rowStrides.assign(view.strides.begin(), view.strides.end() - 1);
    access.colStride = view.shape.back() == 1 ? 0 : view.strides.back();
  } else if (role == Role::Column) {
    access.colStride = view.shape.back() == 1 ? 0 : view.strides.back();
  }
  collapse(access.rowShape, access.rowStrides);
  if (llvm::all_of(access.rowStrides, [](int64_t stride) { return stride == 0; })) {
    access.rowShape.clear();
    access.rowStrides.clear();
  }
  return access;
}

//===----------------------------------------------------------------------===//
// Views of values
//===----------------------------------------------------------------------===//

bool lower::isInline(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  return isa<tfm::FillOp, tfm::IotaOp, tfm::ShardOffsetOp>(op);
}

/// Strides of a reshaped view, where there are such.
static std::optional<Sizes> reshapeStrides(const View &view, ArrayRef<int64_t> shape) {
  Sizes oldShape = view.shape, oldStrides = view.strides;
  collapse(oldShape, oldStrides);
  Sizes strides(shape.size(), 0);
  size_t group = oldShape.size();
  int64_t left = 1, stride = 0; // of the old dimension that is being cut, from the inside
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1)
      continue;
    if (left == 1) {
      if (group == 0)
        return std::nullopt;
      --group;
      left = oldShape[group];
      stride = oldStrides[group];
    }
    if (left % shape[i] != 0)
      return std::nullopt;
    strides[i] = stride;
    stride *= shape[i];
    left /= shape[i];
  }
  if (left != 1 || group != 0)
    return std::nullopt;
  // Sizes of 1 take the stride that keeps a contiguous view recognizable.
  int64_t next = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1)
      strides[i] = next;
    next = strides[i] * shape[i];
  }
  return strides;
}

std::optional<View> lower::composeView(Operation *op, const View &input) {
  View view = input;
  if (auto transpose = dyn_cast<tfm::TransposeOp>(op)) {
    for (auto [i, from] : llvm::enumerate(transpose.getPermutation())) {
      view.shape[i] = input.shape[from];
      view.strides[i] = input.strides[from];
    }
    return view;
  }
  if (auto slice = dyn_cast<tfm::SliceOp>(op)) {
    view.shape.assign(shapeOf(slice.getResult()).begin(), shapeOf(slice.getResult()).end());
    for (auto [i, offset, stride] : llvm::enumerate(slice.getOffsets(), slice.getStrides())) {
      view.offset += offset * input.strides[i];
      view.strides[i] = stride * input.strides[i];
    }
    return view;
  }
  if (auto broadcast = dyn_cast<tfm::BroadcastOp>(op)) {
    ArrayRef<int64_t> shape = shapeOf(broadcast.getResult());
    view.shape.assign(shape.begin(), shape.end());
    view.strides.assign(shape.size(), 0);
    size_t extra = shape.size() - input.shape.size();
    for (size_t i = 0; i < input.shape.size(); ++i)
      view.strides[extra + i] = input.shape[i] == shape[extra + i] ? input.strides[i] : 0;
    return view;
  }
  if (auto reshape = dyn_cast<tfm::ReshapeOp>(op)) {
    ArrayRef<int64_t> shape = shapeOf(reshape.getResult());
    if (llvm::equal(shape, view.shape))
      return view;
    std::optional<Sizes> strides = reshapeStrides(input, shape);
    if (!strides)
      return std::nullopt;
    view.shape.assign(shape.begin(), shape.end());
    view.strides = *strides;
    return view;
  }
  return std::nullopt;
}

View Views::resolve(Value value, bool place) const {
  Operation *op = value.getDefiningOp();
  if (op && !materialized.contains(value)) {
    if (isa<tfm::ReshapeOp, tfm::TransposeOp, tfm::SliceOp, tfm::BroadcastOp>(op))
      if (std::optional<View> view = composeView(op, resolve(op->getOperand(0), place)))
        return *view;
    if (isInline(op)) {
      // A constant is the same everywhere; an iota is start + step * (this view's position).
      View view{value, 0, Sizes(shapeOf(value)), Sizes(shapeOf(value).size(), 0)};
      if (auto iota = dyn_cast<tfm::IotaOp>(op))
        view.strides[iota.getAxis()] = 1;
      return view;
    }
  }
  if (place)
    if (auto it = placements.find(value); it != placements.end())
      return it->second;
  return {value, 0, Sizes(shapeOf(value)), contiguousStrides(shapeOf(value))};
}

View Views::of(Value value) const { return resolve(value, /*place=*/true); }
View Views::withoutPlacement(Value value) const { return resolve(value, /*place=*/false); }

bool Views::isView(Value value) const {
  Operation *op = value.getDefiningOp();
  return op && !materialized.contains(value) &&
         isa<tfm::ReshapeOp, tfm::TransposeOp, tfm::SliceOp, tfm::BroadcastOp>(op) &&
         withoutPlacement(value).root != value;
}
