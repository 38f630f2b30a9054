//===- TransformUtils.cpp - shared pieces of the passes ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TransformUtils.h"

using namespace mlir;
using namespace drover::tfm;

std::string drover::tfm::quoted(ArrayRef<StringRef> names) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(names, stream, [&](StringRef name) { stream << "'" << name << "'"; });
  return text;
}

func::FuncOp drover::tfm::lookupFunction(ModuleOp module, StringRef name) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function) {
    module.emitError("expects a function @") << name;
    return nullptr;
  }
  if (!function.getBody().hasOneBlock()) {
    function.emitError("expects one block, not ") << function.getBody().getBlocks().size();
    return nullptr;
  }
  return function;
}

StringRef drover::tfm::bodyPhase(func::FuncOp body) {
  auto phase = body->getAttrOfType<StringAttr>(TfmDialect::kBodyAttr);
  return phase ? phase.getValue() : StringRef();
}

std::optional<int64_t> drover::tfm::inplaceArgument(func::FuncOp body, unsigned result) {
  auto attr = body.getResultAttrOfType<IntegerAttr>(result, TfmDialect::kInplaceAttr);
  return attr ? std::optional<int64_t>(attr.getInt()) : std::nullopt;
}

bool drover::tfm::isFloatTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

RankedTensorType drover::tfm::wideType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getElementType().isF64() ? tensor : tensor.clone(Float32Type::get(type.getContext()));
}

uint64_t drover::tfm::bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return static_cast<uint64_t>(tensor.getNumElements()) * llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
}

StringRef drover::tfm::argumentName(func::FuncOp function, unsigned index, StringRef attribute) {
  auto name = function.getArgAttrOfType<StringAttr>(index, attribute);
  return name ? name.getValue() : StringRef();
}

void drover::tfm::eraseDeadOperations(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

Value drover::tfm::castTo(OpBuilder &builder, Location loc, Value value, Type elementType) {
  auto from = cast<RankedTensorType>(value.getType());
  if (from.getElementType() == elementType)
    return value;
  auto to = from.clone(elementType);
  unsigned fromWidth = from.getElementTypeBitWidth(), toWidth = elementType.getIntOrFloatBitWidth();
  if (fromWidth < toWidth)
    return arith::ExtFOp::create(builder, loc, to, value);
  if (fromWidth > toWidth)
    return arith::TruncFOp::create(builder, loc, to, value);
  // Two formats of one width (f16, bf16) meet in f32.
  Value wide = arith::ExtFOp::create(builder, loc, from.clone(builder.getF32Type()), value);
  return arith::TruncFOp::create(builder, loc, to, wide);
}
