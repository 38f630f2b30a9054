//===- TfmStructuralOps.cpp - what was not raised ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "OpUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace drover::tfm;

/// The result's own shape, refined by `map` where that is given: for ops whose sizes do not follow
/// from their operands.
static Shape ownShape(Value result, std::optional<AffineMap> map, ArrayRef<int64_t> symbols) {
  Shape shape(shapeOf(result));
  if (!map)
    return shape;
  Shape evaluated = evaluateSizes(*map, symbols);
  return evaluated.size() == shape.size() ? refine(shape, evaluated) : shape;
}

/// A dynamic result needs a map with one result per dimension.
static LogicalResult verifyShapeMap(Operation *op, Value result, std::optional<AffineMap> map) {
  ArrayRef<int64_t> shape = shapeOf(result);
  if (!map) {
    if (llvm::any_of(shape, ShapedType::isDynamic))
      return op->emitOpError("expects 'shape' where a result size is dynamic");
    return success();
  }
  if (map->getNumDims() != 0 || map->getNumResults() != shape.size())
    return op->emitOpError("expects 'shape' to have no dimensions and ") << shape.size() << " results";
  return success();
}

//===----------------------------------------------------------------------===//
// Reshape, transpose, broadcast
//===----------------------------------------------------------------------===//
// In graph regions and unreachable blocks ops may use themselves, or each other in a circle. Composing two of a circle
// makes it shorter, down to an op that uses itself, where the folders stop.

LogicalResult ReshapeOp::inferResultShapes(ArrayRef<int64_t> symbols, Shapes &shapes) {
  shapes.push_back(ownShape(getResult(), getShape(), symbols));
  return success();
}
LogicalResult ReshapeOp::verify() {
  ArrayRef<int64_t> input = shapeOf(getInput()), result = shapeOf(getResult());
  bool isStatic = llvm::none_of(input, ShapedType::isDynamic) && llvm::none_of(result, ShapedType::isDynamic);
  if (isStatic && elements(getInput()) != elements(getResult())) // C1
    return emitOpError("expects as many elements in the result as in the operand, not ")
           << str(result) << " for " << str(input);
  if (failed(verifySameElementType(*this, {getInput(), getResult()}))) // C1
    return failure();
  return verifyShapeMap(*this, getResult(), getShape()); // C2
}
uint64_t ReshapeOp::getFlops() { return 0; }
OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  auto type = cast<RankedTensorType>(getType());
  if (getInput() != getResult() && getInput().getType() == type && type.hasStaticShape())
    return getInput();
  auto inner = getInput().getDefiningOp<ReshapeOp>();
  if (!inner || inner.getInput() == getInput())
    return {};
  getInputMutable().assign(inner.getInput());
  return getResult();
}

LogicalResult TransposeOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  ArrayRef<int64_t> input = shapeOf(getInput());
  Shape shape;
  for (int64_t dim : getPermutation())
    shape.push_back(input[dim]);
  shapes.push_back(shape);
  return success();
}
LogicalResult TransposeOp::verify() {
  SmallVector<int64_t> sorted(getPermutation());
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, shapeOf(getInput()).size()))) // C1
    return emitOpError("expects a permutation of ") << shapeOf(getInput()).size() << " dimensions";
  if (failed(verifySameElementType(*this, {getInput(), getResult()}))) // C2
    return failure();
  return verifyShapes(*this);
}
uint64_t TransposeOp::getFlops() { return 0; }
OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (getInput() != getResult() && getInput().getType() == getType() &&
      llvm::equal(getPermutation(), llvm::seq<int64_t>(0, getPermutation().size())))
    return getInput();
  auto inner = getInput().getDefiningOp<TransposeOp>();
  if (!inner || inner.getInput() == getInput())
    return {};
  SmallVector<int64_t> composed;
  for (int64_t dim : getPermutation())
    composed.push_back(inner.getPermutation()[dim]);
  getInputMutable().assign(inner.getInput());
  setPermutation(composed);
  return getResult();
}

LogicalResult BroadcastOp::inferResultShapes(ArrayRef<int64_t> symbols, Shapes &shapes) {
  shapes.push_back(ownShape(getResult(), getShape(), symbols));
  return success();
}
LogicalResult BroadcastOp::verify() {
  ArrayRef<int64_t> input = shapeOf(getInput()), result = shapeOf(getResult());
  if (input.size() > result.size()) // C1
    return emitOpError("expects a result of rank ") << input.size() << " or more, not " << result.size();
  for (auto [in, out] : llvm::zip(llvm::reverse(input), llvm::reverse(result)))
    if (in != 1 && !compatible(in, out))
      return emitOpError("expects ") << str(input) << " to broadcast to " << str(result);
  if (failed(verifySameElementType(*this, {getInput(), getResult()}))) // C3
    return failure();
  return verifyShapeMap(*this, getResult(), getShape()); // C2
}
uint64_t BroadcastOp::getFlops() { return 0; }
OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  auto type = cast<RankedTensorType>(getType());
  bool same = getInput() != getResult() && getInput().getType() == type && type.hasStaticShape();
  return same ? OpFoldResult(getInput()) : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// Slice, pad, concat
//===----------------------------------------------------------------------===//

/// The box (offsets, strides, sizes of `inner`) lies within `outer`. Offsets and strides are any numbers: sums are
/// taken in 128 bits.
static LogicalResult verifyBox(Operation *op, ArrayRef<int64_t> offsets, ArrayRef<int64_t> strides,
                               ArrayRef<int64_t> inner, ArrayRef<int64_t> outer) {
  if (offsets.size() != outer.size() || strides.size() != outer.size() || inner.size() != outer.size()) // C1
    return op->emitOpError("expects ") << outer.size() << " offsets, strides and sizes";
  for (auto [offset, stride, size, full] : llvm::zip(offsets, strides, inner, outer)) {
    if (stride == 0)
      return op->emitOpError("expects strides not to be zero");
    if (ShapedType::isDynamic(offset) || ShapedType::isDynamic(size) || ShapedType::isDynamic(full) || size == 0)
      continue;
    __int128 last = offset + static_cast<__int128>(size - 1) * stride;
    if (std::min<__int128>(offset, last) < 0 || std::max<__int128>(offset, last) >= full) // C2
      return op->emitOpError("expects the box to lie within [0, ")
             << full << "), not " << size << " elements from " << offset << " by " << stride;
  }
  return success();
}

/// C3 and C4 of slice and pad.
template <typename OpT> static LogicalResult verifyBoxMaps(OpT op) {
  if (failed(verifySameElementType(op, {op.getInput(), op.getResult()}))) // C4
    return failure();
  std::optional<AffineMap> map = op.getOffsetMap();
  if (!map && llvm::any_of(op.getOffsets(), ShapedType::isDynamic)) // C3
    return op.emitOpError("expects 'offset_map' where an offset is dynamic");
  if (map && (map->getNumDims() != 0 || map->getNumResults() != op.getOffsets().size()))
    return op.emitOpError("expects 'offset_map' to have no dimensions and ") << op.getOffsets().size() << " results";
  return verifyShapeMap(op, op.getResult(), op.getShape());
}

/// A box of all elements.
template <typename OpT> static OpFoldResult foldWholeBox(OpT op) {
  auto type = cast<RankedTensorType>(op.getType());
  bool whole = op.getInput() != op.getResult() && op.getInput().getType() == type && type.hasStaticShape() &&
               llvm::all_of(op.getOffsets(), [](int64_t offset) { return offset == 0; }) &&
               llvm::all_of(op.getStrides(), [](int64_t stride) { return stride == 1; });
  return whole ? OpFoldResult(op.getInput()) : OpFoldResult();
}

LogicalResult SliceOp::inferResultShapes(ArrayRef<int64_t> symbols, Shapes &shapes) {
  shapes.push_back(ownShape(getResult(), getShape(), symbols));
  return success();
}
LogicalResult SliceOp::verify() {
  if (failed(verifyBox(*this, getOffsets(), getStrides(), shapeOf(getResult()), shapeOf(getInput()))))
    return failure();
  return verifyBoxMaps(*this);
}
uint64_t SliceOp::getFlops() { return 0; }
OpFoldResult SliceOp::fold(FoldAdaptor) { return foldWholeBox(*this); }

LogicalResult PadOp::inferResultShapes(ArrayRef<int64_t> symbols, Shapes &shapes) {
  shapes.push_back(ownShape(getResult(), getShape(), symbols));
  return success();
}
LogicalResult PadOp::verify() {
  if (failed(verifyBox(*this, getOffsets(), getStrides(), shapeOf(getInput()), shapeOf(getResult())))) // C1
    return failure();
  return verifyBoxMaps(*this);
}
uint64_t PadOp::getFlops() { return 0; }
OpFoldResult PadOp::fold(FoldAdaptor) { return foldWholeBox(*this); }

LogicalResult ConcatOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  if (getInputs().empty()) // C1
    return emitOpError("expects at least one operand");
  Shape shape(shapeOf(getInputs().front()));
  int64_t axis = getAxis(), total = 0;
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
    return emitOpError("expects axis to be a dimension of rank ") << shape.size() << ", not " << axis;
  for (Value input : getInputs()) {
    Shape other(shapeOf(input));
    if (other.size() != shape.size())
      return emitOpError("expects operands of one rank");
    if (ShapedType::isDynamic(total) || ShapedType::isDynamic(other[axis]) ||
        llvm::AddOverflow(total, other[axis], total))
      total = ShapedType::kDynamic;
    other[axis] = shape[axis] = ShapedType::kDynamic;
    if (!compatible(shape, other))
      return emitOpError("expects operands that agree but for axis ")
             << axis << ", not " << str(shape) << " and " << str(other);
    shape = refine(shape, other);
  }
  shape[axis] = total;
  shapes.push_back(shape);
  return success();
}
LogicalResult ConcatOp::verify() {
  if (failed(verifyShapes(*this)))
    return failure();
  SmallVector<Value> values(getInputs());
  values.push_back(getResult());
  return verifySameElementType(*this, values); // C1
}
uint64_t ConcatOp::getFlops() { return 0; }
OpFoldResult ConcatOp::fold(FoldAdaptor) {
  bool same = getInputs().size() == 1 && getInputs()[0] != getResult() && getInputs()[0].getType() == getType();
  return same ? OpFoldResult(getInputs()[0]) : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// Reduce, matmul, softmax
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  ArrayRef<int64_t> input = shapeOf(getInput());
  int64_t previous = -1;
  for (int64_t axis : getAxes()) {
    if (axis <= previous || axis >= static_cast<int64_t>(input.size())) // C1
      return emitOpError("expects ascending axes below ") << input.size() << ", not " << axis;
    previous = axis;
  }
  Shape shape;
  for (auto [dim, size] : llvm::enumerate(input)) {
    if (!llvm::is_contained(getAxes(), static_cast<int64_t>(dim)))
      shape.push_back(size);
    else if (getKeep())
      shape.push_back(1);
  }
  shapes.push_back(shape);
  return success();
}
LogicalResult ReduceOp::verify() {
  if (failed(verifySameElementType(*this, {getInput(), getResult()}))) // C2
    return failure();
  return verifyShapes(*this);
}
uint64_t ReduceOp::getFlops() { return 0; }
OpFoldResult ReduceOp::fold(FoldAdaptor) {
  bool same = getAxes().empty() && getInput() != getResult() && getInput().getType() == getType();
  return same ? OpFoldResult(getInput()) : OpFoldResult();
}

LogicalResult MatmulOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  Shape lhs(shapeOf(getLhs())), rhs(shapeOf(getRhs()));
  if (lhs.size() != rhs.size() || lhs.size() < 2 ||
      !compatible(ArrayRef(lhs).drop_back(2), ArrayRef(rhs).drop_back(2))) // C1
    return emitOpError("expects operands of one rank and batch, not ") << str(lhs) << " and " << str(rhs);
  size_t rank = lhs.size();
  if (getTransposeLhs())
    std::swap(lhs[rank - 1], lhs[rank - 2]);
  if (getTransposeRhs())
    std::swap(rhs[rank - 1], rhs[rank - 2]);
  if (!compatible(lhs[rank - 1], rhs[rank - 2])) // C2
    return emitOpError("expects equal contracted sizes, not ")
           << str({lhs[rank - 1]}) << " and " << str({rhs[rank - 2]});
  Shape shape = refine(ArrayRef(lhs).drop_back(2), ArrayRef(rhs).drop_back(2));
  shape.push_back(lhs[rank - 2]);
  shape.push_back(rhs[rank - 1]);
  shapes.push_back(shape);
  return success();
}
LogicalResult MatmulOp::verify() {
  if (failed(verifySameElementType(*this, {getLhs(), getRhs()}))) // C3
    return failure();
  Type type = getElementTypeOrSelf(getLhs()), result = getElementTypeOrSelf(getResult());
  if (result != type && result != accumulatorType(type))
    return emitOpError("expects a result of ") << type << " or " << accumulatorType(type) << ", not " << result;
  return verifyShapes(*this);
}
uint64_t MatmulOp::getFlops() {
  ArrayRef<int64_t> lhs = shapeOf(getLhs());
  return countProduct({2, elements(getResult()), sizeProduct(lhs[lhs.size() - (getTransposeLhs() ? 2 : 1)])});
}

LogicalResult SoftmaxOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  return inferSame(*this, getInput(), 1, shapes);
}
LogicalResult SoftmaxOp::verify() {
  if (getAxis() >= shapeOf(getInput()).size()) // C1
    return emitOpError("expects axis to be a dimension of ") << str(shapeOf(getInput()));
  if (failed(verifySameElementType(*this, {getInput(), getResult()}))) // C2
    return failure();
  return verifyShapes(*this);
}
uint64_t SoftmaxOp::getFlops() { return 0; }

//===----------------------------------------------------------------------===//
// Gather, scatter
//===----------------------------------------------------------------------===//

LogicalResult GatherOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  ArrayRef<int64_t> input = shapeOf(getInput()), indices = shapeOf(getIndices());
  int64_t axis = getAxis();
  if (axis < 0 || axis >= static_cast<int64_t>(input.size())) // C1
    return emitOpError("expects axis to be a dimension of ") << str(input) << ", not " << axis;
  Shape shape(input.take_front(axis));
  llvm::append_range(shape, indices);
  llvm::append_range(shape, input.drop_front(axis + 1));
  shapes.push_back(shape);
  return success();
}
LogicalResult GatherOp::verify() {
  if (failed(verifySameElementType(*this, {getInput(), getResult()}))) // C2
    return failure();
  if (failed(verifyShapes(*this)))
    return failure();
  return verifyConstantIndices(*this, getIndices(), shapeOf(getInput()).slice(getAxis(), 1), /*fromEnd=*/true); // C3
}
uint64_t GatherOp::getFlops() { return 0; }

LogicalResult ScatterAddOp::inferResultShapes(ArrayRef<int64_t> symbols, Shapes &shapes) {
  Shape own = ownShape(getResult(), getShape(), symbols);
  ArrayRef<int64_t> indices = shapeOf(getIndices());
  int64_t axis = getAxis();
  if (axis < 0 || axis >= static_cast<int64_t>(own.size()))
    return emitOpError("expects axis to be a dimension of ") << str(own) << ", not " << axis;
  Shape updates(ArrayRef(own).take_front(axis));
  llvm::append_range(updates, indices);
  llvm::append_range(updates, ArrayRef(own).drop_front(axis + 1));
  if (!compatible(updates, shapeOf(getUpdates()))) // C1
    return emitOpError("expects updates of shape ") << str(updates) << ", not " << str(shapeOf(getUpdates()));
  shapes.push_back(own);
  return success();
}
LogicalResult ScatterAddOp::verify() {
  if (failed(verifyShapes(*this)))
    return failure();
  if (failed(verifyConstantIndices(*this, getIndices(), shapeOf(getResult()).slice(getAxis(), 1),
                                   /*fromEnd=*/true))) // C1
    return failure();
  return verifyShapeMap(*this, getResult(), getShape());
}
uint64_t ScatterAddOp::getFlops() { return 0; }

LogicalResult ScatterNdOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  shapes.push_back(Shape(shapeOf(getInput()))); // C2
  return success();
}
LogicalResult ScatterNdOp::verify() {
  ArrayRef<int64_t> input = shapeOf(getInput()), indices = shapeOf(getIndices());
  if (indices.empty() || ShapedType::isDynamic(indices.back()) ||
      indices.back() > static_cast<int64_t>(input.size())) // C1
    return emitOpError("expects the last size of indices ")
           << str(indices) << " to be static and at most " << input.size();
  if (failed(verifySameElementType(*this, {getInput(), getUpdates(), getResult()}))) // C2
    return failure();
  Shape updates(indices.drop_back());
  llvm::append_range(updates, input.drop_front(indices.back()));
  if (!compatible(updates, shapeOf(getUpdates()))) // C3
    return emitOpError("expects updates of shape ") << str(updates) << ", not " << str(shapeOf(getUpdates()));
  if (failed(verifyConstantIndices(*this, getIndices(), input.take_front(indices.back()), /*fromEnd=*/true))) // C4
    return failure();
  return verifyShapes(*this);
}
uint64_t ScatterNdOp::getFlops() { return 0; }

//===----------------------------------------------------------------------===//
// Iota, size, fill
//===----------------------------------------------------------------------===//

LogicalResult IotaOp::inferResultShapes(ArrayRef<int64_t> symbols, Shapes &shapes) {
  shapes.push_back(ownShape(getResult(), getShape(), symbols));
  return success();
}
LogicalResult IotaOp::verify() {
  if (getAxis() >= shapeOf(getResult()).size()) // C1
    return emitOpError("expects axis to be a dimension of ") << str(shapeOf(getResult()));
  return verifyShapeMap(*this, getResult(), getShape()); // C2
}
uint64_t IotaOp::getFlops() { return 0; }

LogicalResult SizeOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  shapes.push_back(Shape(shapeOf(getResult())));
  return success();
}
LogicalResult SizeOp::verify() {
  if (getValue().getNumDims() != 0 || getValue().getNumResults() != 1) // C1
    return emitOpError("expects a map without dimensions and with one result");
  if (!shapeOf(getResult()).empty()) // C1
    return emitOpError("expects a result of rank 0, not ") << str(shapeOf(getResult()));
  return success();
}
uint64_t SizeOp::getFlops() { return 0; }
OpFoldResult SizeOp::fold(FoldAdaptor) {
  auto constant = dyn_cast<AffineConstantExpr>(getValue().getResult(0));
  if (!constant)
    return {};
  auto type = cast<RankedTensorType>(getType());
  if (type.getElementType().isInteger(32) && !llvm::isInt<32>(constant.getValue()))
    return {};
  Attribute value = type.getElementType().isF32()
                        ? Attribute(FloatAttr::get(type.getElementType(), constant.getValue()))
                        : Attribute(IntegerAttr::get(type.getElementType(), constant.getValue()));
  return DenseElementsAttr::get(type, value);
}

LogicalResult FillOp::inferResultShapes(ArrayRef<int64_t> symbols, Shapes &shapes) {
  shapes.push_back(ownShape(getResult(), getShape(), symbols));
  return success();
}
LogicalResult FillOp::verify() {
  Type element = getElementTypeOrSelf(getResult());
  if (getValue().getType() != element) // C1
    return emitOpError("expects a value of ") << element << ", not " << getValue().getType();
  return verifyShapeMap(*this, getResult(), getShape()); // C2
}
uint64_t FillOp::getFlops() { return 0; }
