//===- TensorBuilder.cpp - types, known values, materialization -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TensorBuilder.h"
#include "llvm/Support/Endian.h"
#include <cmath>

using namespace llvm;
using namespace mlir;

namespace drover::onnx {

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

bool Value::isStatic() const {
  return all_of(shape, [](const Expr &size) { return size.isConstant(); });
}

std::vector<int64_t> Value::dims() const {
  std::vector<int64_t> result;
  for (const Expr &size : shape)
    result.push_back(size.constant().value_or(ShapedType::kDynamic));
  return result;
}

std::optional<double> Value::splat() const {
  if (!known)
    return std::nullopt;
  if (isFloat(type)) {
    if (known->floats.empty() || !all_equal(known->floats))
      return std::nullopt;
    return known->floats.front();
  }
  if (known->ints.empty() || !all_equal(known->ints) || !known->ints.front().isConstant())
    return std::nullopt;
  return static_cast<double>(*known->ints.front().constant());
}

double roundTo(ElemType type, double value) {
  if (type == ElemType::Double || !isFloat(type))
    return value;
  if (type == ElemType::Float)
    return static_cast<float>(value);
  bool lost;
  APFloat number(value);
  number.convert(type == ElemType::Float16 ? APFloat::IEEEhalf() : APFloat::BFloat(), APFloat::rmNearestTiesToEven,
                 &lost);
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  return number.convertToDouble();
}

void forEachIndex(ArrayRef<int64_t> dims, llvm::function_ref<void(ArrayRef<int64_t>)> body) {
  if (is_contained(dims, 0))
    return;
  SmallVector<int64_t> index(dims.size(), 0);
  while (true) {
    body(index);
    int64_t dim = static_cast<int64_t>(dims.size()) - 1;
    for (; dim >= 0; --dim) {
      if (++index[dim] < dims[dim])
        break;
      index[dim] = 0;
    }
    if (dim < 0)
      return;
  }
}

int64_t flatIndex(ArrayRef<int64_t> dims, ArrayRef<int64_t> index) {
  int64_t flat = 0;
  for (auto [size, place] : zip(dims, index))
    flat = flat * size + place;
  return flat;
}

int64_t broadcastIndex(ArrayRef<int64_t> dims, ArrayRef<int64_t> index) {
  int64_t flat = 0;
  for (auto [size, place] : zip(dims, index.take_back(dims.size())))
    flat = flat * size + (size == 1 ? 0 : place);
  return flat;
}

/// One element as a double, by the formats of TensorProto.
static double decodeFloat(ElemType type, const char *bytes) {
  using namespace support;
  switch (type) {
  case ElemType::Float:
    return endian::read<float, endianness::little>(bytes);
  case ElemType::Double:
    return endian::read<double, endianness::little>(bytes);
  default: {
    APInt bits(16, endian::read<uint16_t, endianness::little>(bytes));
    APFloat number(type == ElemType::Float16 ? APFloat::IEEEhalf() : APFloat::BFloat(), bits);
    bool lost;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    return number.convertToDouble();
  }
  }
}

static int64_t decodeInt(ElemType type, const char *bytes) {
  uint64_t bits = 0;
  unsigned size = byteSize(type);
  for (unsigned i = 0; i < size; ++i)
    bits |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  if (type == ElemType::Bool)
    return bits != 0;
  return isUnsigned(type) ? static_cast<int64_t>(bits) : SignExtend64(bits, 8 * size);
}

Known decode(ElemType type, StringRef bytes, int64_t count) {
  Known known;
  unsigned size = byteSize(type);
  for (int64_t i = 0; i < count; ++i)
    if (isFloat(type))
      known.floats.push_back(decodeFloat(type, bytes.data() + i * size));
    else
      known.ints.push_back(decodeInt(type, bytes.data() + i * size));
  return known;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

void TensorBuilder::fail(const Twine &message) {
  if (!failed())
    error = message.str();
}

Type TensorBuilder::elementType(ElemType type) const {
  switch (type) {
  case ElemType::Float:
    return builder.getF32Type();
  case ElemType::Double:
    return builder.getF64Type();
  case ElemType::Float16:
    return builder.getF16Type();
  case ElemType::BFloat16:
    return builder.getBF16Type();
  case ElemType::Bool:
    return builder.getI1Type();
  default:
    return builder.getIntegerType(8 * byteSize(type));
  }
}

RankedTensorType TensorBuilder::tensorType(ElemType type, ArrayRef<Expr> shape) const {
  SmallVector<int64_t> dims;
  for (const Expr &size : shape)
    dims.push_back(size.constant().value_or(ShapedType::kDynamic));
  return RankedTensorType::get(dims, elementType(type));
}

void TensorBuilder::numberSymbols() {
  symbolOfAtom.assign(symbols.getAtoms().size(), ~0u);
  unsigned next = 0;
  for (auto [number, atom] : enumerate(symbols.getAtoms()))
    if (atom.kind == SymbolTable::Kind::Symbol && !atom.binding)
      symbolOfAtom[number] = next++;
}

std::vector<std::string> TensorBuilder::symbolNames() const {
  std::vector<std::string> names;
  for (const SymbolTable::Atom &atom : symbols.getAtoms())
    if (atom.kind == SymbolTable::Kind::Symbol && !atom.binding)
      names.push_back(atom.name);
  return names;
}

AffineExpr TensorBuilder::affine(const Expr &expr) const {
  MLIRContext *context = builder.getContext();
  AffineExpr sum = getAffineConstantExpr(0, context);
  // From the highest monomial down, so that constants come last.
  for (const auto &[monomial, coefficient] : reverse(expr.getTerms())) {
    AffineExpr term;
    for (unsigned number : monomial) {
      const SymbolTable::Atom &atom = symbols.getAtoms()[number];
      AffineExpr factor;
      if (atom.kind == SymbolTable::Kind::Symbol)
        factor = getAffineSymbolExpr(symbolOfAtom[number], context);
      else if (atom.kind == SymbolTable::Kind::FloorDiv)
        factor = affine(atom.lhs).floorDiv(affine(atom.rhs));
      else
        factor = affine(atom.lhs) % affine(atom.rhs);
      term = term ? term * factor : factor;
    }
    AffineExpr number = getAffineConstantExpr(coefficient, context);
    sum = sum + (term ? term * number : number);
  }
  return sum;
}

AffineMapAttr TensorBuilder::affineMap(ArrayRef<Expr> exprs) const {
  SmallVector<AffineExpr> results;
  for (const Expr &expr : exprs)
    results.push_back(affine(expr));
  unsigned count = count_if(symbolOfAtom, [](unsigned number) { return number != ~0u; });
  return AffineMapAttr::get(AffineMap::get(0, count, results, builder.getContext()));
}

AffineMapAttr TensorBuilder::shapeMap(ArrayRef<Expr> shape) const {
  return all_of(shape, [](const Expr &size) { return size.isConstant(); }) ? AffineMapAttr() : affineMap(shape);
}

Expr TensorBuilder::count(ArrayRef<Expr> shape) const {
  Expr product = 1;
  for (const Expr &size : shape)
    product = product * size;
  return product;
}

//===----------------------------------------------------------------------===//
// Known values
//===----------------------------------------------------------------------===//

Value TensorBuilder::fromKnown(ElemType type, ArrayRef<Expr> shape, Known known) {
  Value value;
  value.type = type;
  value.shape.assign(shape.begin(), shape.end());
  value.known = std::make_shared<const Known>(std::move(known));
  return value;
}

Value TensorBuilder::ints(ArrayRef<Expr> values, ElemType type) {
  Known known;
  known.ints = values.vec();
  return fromKnown(type, {Expr(values.size())}, std::move(known));
}

Value TensorBuilder::scalarInt(const Expr &value, ElemType type) {
  Known known;
  known.ints = {value};
  return fromKnown(type, {}, std::move(known));
}

Value TensorBuilder::uniform(ElemType type, ArrayRef<Expr> shape, double value) {
  Known known;
  known.uniform = true;
  if (isFloat(type))
    known.floats = {roundTo(type, value)};
  else
    known.ints = {static_cast<int64_t>(value)};
  return fromKnown(type, shape, std::move(known));
}

Value TensorBuilder::scalar(ElemType type, double value) { return uniform(type, {}, value); }

Value TensorBuilder::likeOperands(const Value &result, ArrayRef<const Value *> operands) const {
  Value value = result;
  value.hidden = any_of(operands, [](const Value *operand) { return operand->hidden; });
  return value;
}

Value TensorBuilder::wrap(mlir::Value ir, ElemType type, ArrayRef<Expr> shape, ArrayRef<const Value *> operands) {
  Value value;
  value.type = type;
  value.shape.assign(shape.begin(), shape.end());
  value.ir = ir;
  return likeOperands(value, operands);
}

Value TensorBuilder::iota(ElemType type, ArrayRef<Expr> shape, int64_t axis, const Expr &start, int64_t step) {
  if (failed())
    return {};
  RankedTensorType resultType = tensorType(type, shape);
  // tfm.iota knows i32, i64 and f32.
  ElemType counted = type == ElemType::Int32 || type == ElemType::Float ? type : ElemType::Int64;
  RankedTensorType countedType = tensorType(counted, shape);
  std::optional<int64_t> constantStart = start.constant();
  mlir::Value ir = tfm::IotaOp::create(builder, location, countedType, builder.getI64IntegerAttr(axis),
                                       builder.getI64IntegerAttr(constantStart.value_or(0)),
                                       builder.getI64IntegerAttr(step), shapeMap(shape));
  Value value = wrap(ir, counted, shape, {});
  if (!constantStart)
    value = add(value, cast(scalarInt(start), counted));
  (void)resultType;
  return cast(value, type);
}

//===----------------------------------------------------------------------===//
// Materialization
//===----------------------------------------------------------------------===//

mlir::Attribute TensorBuilder::elementAttr(const Value &value, size_t index) const {
  Type element = elementType(value.type);
  if (isFloat(value.type))
    return builder.getFloatAttr(element, value.floatAt(index));
  unsigned width = element.getIntOrFloatBitWidth();
  APInt bits(64, static_cast<uint64_t>(*value.intAt(index).constant()));
  return builder.getIntegerAttr(element, bits.trunc(width));
}

/// A symbolic integer is a tfm.size; a vector of them is joined.
mlir::Value TensorBuilder::materializeInts(const Value &value) {
  auto sizeOf = [&](const Expr &expr) {
    Value size = wrap(tfm::SizeOp::create(builder, location, tensorType(ElemType::Int64, {}), affineMap({expr})),
                      ElemType::Int64, {}, {});
    return reshape(cast(size, value.type), {Expr(1)});
  };
  if (value.known->uniform || value.known->ints.size() == 1)
    return materialize(
        broadcast(value.rank() == 0 ? reshape(sizeOf(value.intAt(0)), {}) : sizeOf(value.intAt(0)), value.shape));
  std::vector<Value> parts;
  for (const Expr &expr : value.known->ints)
    parts.push_back(sizeOf(expr));
  return materialize(reshape(concat(parts, 0), value.shape));
}

/// The axis and step of a value that counts along one axis and is constant along the others.
static std::optional<std::pair<int64_t, int64_t>> countedAxis(const Value &value) {
  std::vector<int64_t> dims = value.dims();
  std::optional<int64_t> axis;
  for (auto [dim, size] : enumerate(dims))
    if (size > 8 && !axis)
      axis = dim;
  if (!axis)
    return std::nullopt;
  int64_t stride = 1;
  for (int64_t size : ArrayRef(dims).drop_front(*axis + 1))
    stride *= size;
  int64_t start = *value.intAt(0).constant(), step = *value.intAt(stride).constant() - start;
  if (step == 0)
    return std::nullopt;
  bool matches = true;
  forEachIndex(dims, [&](ArrayRef<int64_t> index) {
    matches &= *value.intAt(flatIndex(dims, index)).constant() == start + step * index[*axis];
  });
  return matches ? std::make_optional(std::make_pair(*axis, step)) : std::nullopt;
}

mlir::Value TensorBuilder::materializeKnown(const Value &value) {
  bool isInt = !isFloat(value.type);
  if (isInt && any_of(value.known->ints, [](const Expr &expr) { return !expr.isConstant(); }))
    return materializeInts(value);
  RankedTensorType type = tensorType(value);
  bool same = isInt ? all_equal(value.known->ints) : all_equal(value.known->floats);
  if (same && !(value.known->ints.empty() && value.known->floats.empty())) {
    mlir::Attribute element = elementAttr(value, 0);
    if (type.hasStaticShape())
      return arith::ConstantOp::create(builder, location, DenseElementsAttr::get(type, element));
    return tfm::FillOp::create(builder, location, type, llvm::cast<TypedAttr>(element), shapeMap(value.shape));
  }
  // Positions that an exporter has folded look as those of a file with symbolic sizes.
  if (isInt && (value.type == ElemType::Int64 || value.type == ElemType::Int32))
    if (auto counted = countedAxis(value))
      return materialize(iota(value.type, value.shape, counted->first, *value.intAt(0).constant(), counted->second));
  SmallVector<mlir::Attribute> elements;
  for (size_t i = 0, e = isInt ? value.known->ints.size() : value.known->floats.size(); i < e; ++i)
    elements.push_back(elementAttr(value, i));
  return arith::ConstantOp::create(builder, location, DenseElementsAttr::get(type, elements));
}

mlir::Value TensorBuilder::materialize(const Value &value) {
  if (value.ir)
    return value.ir;
  if (failed() || !value.isValid()) {
    fail("a value is missing");
    // Never reaches a program: the caller drops what it builds after an error.
    return arith::ConstantOp::create(
        builder, location, DenseElementsAttr::get(RankedTensorType::get({}, builder.getI64Type()), int64_t(0)));
  }
  if (value.initializer)
    return materializeInitializer(value);
  return materializeKnown(value);
}

} // namespace drover::onnx
