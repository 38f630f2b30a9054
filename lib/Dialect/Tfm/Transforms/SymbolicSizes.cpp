//===- SymbolicSizes.cpp - sizes as products of symbols -------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "SymbolicSizes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace drover::tfm;

std::optional<Size> Size::get(AffineExpr expr) {
  if (!expr)
    return std::nullopt;
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return Size(constant.getValue());
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && binary.getKind() == AffineExprKind::Mul)
    return *get(binary.getLHS()) * *get(binary.getRHS());
  Size size;
  size.atoms.push_back(expr);
  return size;
}

static bool before(AffineExpr a, AffineExpr b) { return a.getAsOpaquePointer() < b.getAsOpaquePointer(); }

Size Size::operator*(const Size &other) const {
  Size result(coefficient * other.coefficient);
  result.atoms.resize(atoms.size() + other.atoms.size());
  std::merge(atoms.begin(), atoms.end(), other.atoms.begin(), other.atoms.end(), result.atoms.begin(), before);
  return result;
}

std::optional<Size> Size::dividedBy(const Size &divisor) const {
  if (divisor.coefficient == 0 || coefficient % divisor.coefficient)
    return std::nullopt;
  Size result(coefficient / divisor.coefficient);
  if (!std::includes(atoms.begin(), atoms.end(), divisor.atoms.begin(), divisor.atoms.end(), before))
    return std::nullopt;
  std::set_difference(atoms.begin(), atoms.end(), divisor.atoms.begin(), divisor.atoms.end(),
                      std::back_inserter(result.atoms), before);
  return result;
}

AffineExpr Size::expr(MLIRContext *context) const {
  // Symbols by number, so that equal sizes print equally.
  SmallVector<AffineExpr> ordered(atoms.begin(), atoms.end());
  llvm::sort(ordered, [](AffineExpr a, AffineExpr b) {
    auto position = [](AffineExpr expr) {
      auto symbol = dyn_cast<AffineSymbolExpr>(expr);
      return symbol ? symbol.getPosition() : ~0u;
    };
    return position(a) < position(b);
  });
  AffineExpr result = getAffineConstantExpr(1, context);
  for (AffineExpr atom : ordered)
    result = result * atom;
  return result * coefficient;
}

int64_t Size::evaluate(ArrayRef<int64_t> symbols) const {
  int64_t result = coefficient;
  for (AffineExpr atom : atoms) {
    SmallVector<AffineExpr> values;
    for (int64_t symbol : symbols)
      values.push_back(getAffineConstantExpr(symbol, atom.getContext()));
    AffineExpr value = simplifyAffineExpr(atom.replaceSymbols(values), 0, symbols.size());
    result *= cast<AffineConstantExpr>(value).getValue();
  }
  return result;
}

/// The map of sizes that `value` carries, from its argument or its op.
static AffineMap ownMap(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto map = function ? function.getArgAttrOfType<AffineMapAttr>(argument.getArgNumber(), TfmDialect::kShapeAttr)
                        : AffineMapAttr();
    return map ? map.getValue() : AffineMap();
  }
  auto map = value.getDefiningOp()->getAttrOfType<AffineMapAttr>("shape");
  return map ? map.getValue() : AffineMap();
}

/// The operand's dimension that result dimension `dim` has the size of, for ops that carry no map.
static std::optional<std::pair<Value, unsigned>> sourceOfDim(Operation *op, unsigned dim) {
  using Source = std::pair<Value, unsigned>;
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return Source{transpose.getInput(), transpose.getPermutation()[dim]};
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    if (reduce.getKeep())
      return Source{reduce.getInput(), dim};
    for (unsigned input = 0, kept = 0;; ++input)
      if (!llvm::is_contained(reduce.getAxes(), static_cast<int64_t>(input)) && kept++ == dim)
        return Source{reduce.getInput(), input};
  }
  if (auto matmul = dyn_cast<MatmulOp>(op)) {
    unsigned rank = result.getRank();
    if (dim + 1 == rank)
      return Source{matmul.getRhs(), matmul.getTransposeRhs() ? dim - 1 : dim};
    return Source{matmul.getLhs(), dim + 2 == rank && matmul.getTransposeLhs() ? dim + 1 : dim};
  }
  if (auto gather = dyn_cast<GatherOp>(op)) {
    unsigned axis = gather.getAxis(), rank = cast<RankedTensorType>(gather.getIndices().getType()).getRank();
    if (dim < axis)
      return Source{gather.getInput(), dim};
    return dim < axis + rank ? Source{gather.getIndices(), dim - axis} : Source{gather.getInput(), dim - rank + 1};
  }
  // Element-wise ops, softmax, linear, norms, rope, attention, embedding: the leading sizes are those of an operand.
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (type && dim < static_cast<unsigned>(type.getRank()))
      return Source{operand, dim};
  }
  return std::nullopt;
}

static std::optional<Size> symbolicSize(Value value, unsigned dim) {
  while (true) {
    int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(dim);
    if (!ShapedType::isDynamic(size))
      return Size(size);
    if (AffineMap map = ownMap(value))
      return Size::get(simplifyAffineExpr(map.getResult(dim), 0, map.getNumSymbols()));
    Operation *op = value.getDefiningOp();
    if (!op || op->getNumOperands() == 0)
      return std::nullopt;
    if (auto concat = dyn_cast<ConcatOp>(op); concat && concat.getAxis() == dim) {
      AffineExpr sum = getAffineConstantExpr(0, op->getContext());
      for (Value input : concat.getInputs()) {
        std::optional<Size> part = symbolicSize(input, dim);
        if (!part)
          return std::nullopt;
        sum = sum + part->expr(op->getContext());
      }
      return Size::get(sum);
    }
    auto source = sourceOfDim(op, dim);
    if (!source)
      return std::nullopt;
    std::tie(value, dim) = *source;
  }
}

std::optional<Sizes> drover::tfm::symbolicSizes(Value value) {
  Sizes sizes;
  for (unsigned dim = 0, rank = cast<RankedTensorType>(value.getType()).getRank(); dim < rank; ++dim) {
    std::optional<Size> size = symbolicSize(value, dim);
    if (!size)
      return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

bool drover::tfm::sameSizes(Value a, Value b) {
  auto typeA = cast<RankedTensorType>(a.getType()), typeB = cast<RankedTensorType>(b.getType());
  if (typeA.hasStaticShape() || typeB.hasStaticShape())
    return typeA.getShape() == typeB.getShape();
  std::optional<Sizes> sizesA = symbolicSizes(a), sizesB = symbolicSizes(b);
  return sizesA && sizesB && *sizesA == *sizesB;
}

unsigned drover::tfm::numSymbols(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto symbols = op->getAttrOfType<ArrayAttr>(TfmDialect::kSymbolsAttr))
      return symbols.size();
  return 0;
}

RankedTensorType drover::tfm::tensorType(ArrayRef<Size> sizes, Type element) {
  SmallVector<int64_t> shape;
  for (const Size &size : sizes)
    shape.push_back(size.dim());
  return RankedTensorType::get(shape, element);
}

AffineMapAttr drover::tfm::shapeMap(ArrayRef<Size> sizes, Operation *scope) {
  if (llvm::all_of(sizes, [](const Size &size) { return size.constant().has_value(); }))
    return {};
  SmallVector<AffineExpr> exprs;
  for (const Size &size : sizes)
    exprs.push_back(size.expr(scope->getContext()));
  return AffineMapAttr::get(AffineMap::get(0, numSymbols(scope), exprs, scope->getContext()));
}

static Operation *scopeOf(OpBuilder &builder) { return builder.getInsertionBlock()->getParentOp(); }

Value drover::tfm::buildReshape(OpBuilder &builder, Location loc, Value input, ArrayRef<Size> sizes) {
  RankedTensorType type = tensorType(sizes, getElementTypeOrSelf(input));
  if (type == input.getType()) {
    std::optional<Sizes> own = symbolicSizes(input);
    if (type.hasStaticShape() || (own && ArrayRef<Size>(*own) == sizes))
      return input;
  }
  return ReshapeOp::create(builder, loc, type, input, shapeMap(sizes, scopeOf(builder)));
}

Value drover::tfm::buildTranspose(OpBuilder &builder, Location loc, Value input, ArrayRef<int64_t> permutation) {
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return input;
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(type.getDimSize(dim));
  return TransposeOp::create(builder, loc, type.clone(shape), input, permutation);
}

Value drover::tfm::buildBroadcast(OpBuilder &builder, Location loc, Value input, ArrayRef<Size> sizes) {
  RankedTensorType type = tensorType(sizes, getElementTypeOrSelf(input));
  if (type == input.getType() && type.hasStaticShape())
    return input;
  return BroadcastOp::create(builder, loc, type, input, shapeMap(sizes, scopeOf(builder)));
}
