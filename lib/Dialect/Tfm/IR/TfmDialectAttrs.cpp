//===- TfmDialectAttrs.cpp - what functions say about themselves ----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Verification of the discardable attributes of docs/tfm.md. What holds for bodies, tfm.body and tfm.inplace, is the
// verify pass's of the microbatch program.
//===----------------------------------------------------------------------===//
#include "OpUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace drover::tfm;

static LogicalResult verifyName(Operation *op, NamedAttribute attribute) {
  auto name = dyn_cast<StringAttr>(attribute.getValue());
  if (!name || name.empty())
    return op->emitError() << "'" << attribute.getName().getValue() << "' expects a name, not " << attribute.getValue();
  return success();
}

static LogicalResult verifyUnit(Operation *op, NamedAttribute attribute) {
  if (!isa<UnitAttr>(attribute.getValue()))
    return op->emitError() << "'" << attribute.getName().getValue() << "' expects no value, not "
                           << attribute.getValue();
  return success();
}

static LogicalResult verifyNames(Operation *op, NamedAttribute attribute) {
  auto names = dyn_cast<ArrayAttr>(attribute.getValue());
  if (!names || !llvm::all_of(names, [](Attribute name) { return isa<StringAttr>(name); }))
    return op->emitError() << "'" << attribute.getName().getValue() << "' expects an array of names, not "
                           << attribute.getValue();
  return success();
}

/// `tfm.shape`: one size per dimension, over the module's symbols.
static LogicalResult verifyShape(Operation *op, RankedTensorType type, Attribute attribute) {
  auto map = dyn_cast<AffineMapAttr>(attribute);
  if (!map || map.getValue().getNumDims() != 0 || map.getValue().getNumResults() != type.getRank())
    return op->emitError() << "'tfm.shape' expects an affine map without dimensions and with " << type.getRank()
                           << " results, not " << attribute;
  auto module = op->getParentOfType<ModuleOp>();
  auto symbols = module ? module->getAttrOfType<ArrayAttr>(TfmDialect::kSymbolsAttr) : ArrayAttr();
  size_t known = symbols ? symbols.size() : 0;
  if (map.getValue().getNumSymbols() > known)
    return op->emitError() << "'tfm.shape' has " << map.getValue().getNumSymbols()
                           << " symbols where 'tfm.symbols' of the module names " << known;
  return success();
}

/// No two arguments have one name. Asked of every argument, so that the first one with the attribute answers for all.
static LogicalResult verifyDistinct(Operation *op, unsigned index, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  for (unsigned before = index; before-- > 0;)
    if (function.getArgAttr(before, attribute.getName()))
      return success();
  llvm::SmallPtrSet<Attribute, 16> names;
  for (unsigned i = index; i < function.getNumArguments(); ++i)
    if (Attribute name = function.getArgAttr(i, attribute.getName()); name && !names.insert(name).second)
      return op->emitError() << "'" << attribute.getName().getValue() << "' expects distinct names, " << name
                             << " is that of argument " << i << " and of one before it";
  return success();
}

/// `tfm.parameter`: there is something to train.
static LogicalResult verifySizes(Operation *op, unsigned index) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  auto type = function ? dyn_cast<RankedTensorType>(function.getArgumentTypes()[index]) : RankedTensorType();
  if (type && llvm::is_contained(type.getShape(), 0))
    return op->emitError() << "'tfm.parameter' expects sizes of 1 and more, not " << type;
  return success();
}

/// `tfm.source`: as many bytes as the parameter's elements take, of a file within the model's folder.
static LogicalResult verifySource(Operation *op, RankedTensorType type, Attribute attribute) {
  auto source = dyn_cast<SourceAttr>(attribute);
  if (!source)
    return op->emitError() << "'tfm.source' expects #tfm.source, not " << attribute;
  if (!source.getType().isIntOrFloat())
    return op->emitError() << "'tfm.source' expects an element type of integers or floats, not " << source.getType();
  if (source.getTransposed() && type.getRank() != 2)
    return op->emitError() << "'tfm.source' is transposed, which expects a parameter of rank 2, not " << type;
  if (!type.hasStaticShape())
    return op->emitError() << "'tfm.source' expects a parameter of static shape, not " << type;
  int64_t bytes = (source.getType().getIntOrFloatBitWidth() + 7) / 8;
  for (int64_t size : type.getShape())
    bytes = product(bytes, size);
  if (ShapedType::isDynamic(bytes))
    return op->emitError() << "'tfm.source' expects a parameter of less than 2^63 bytes, not " << type;
  if (source.getBytes() != static_cast<uint64_t>(bytes))
    return op->emitError() << "'tfm.source' has " << source.getBytes() << " bytes where " << type << " in "
                           << source.getType() << " takes " << bytes;
  if (source.getOffset() > static_cast<uint64_t>(INT64_MAX) - source.getBytes())
    return op->emitError() << "'tfm.source' expects a range that ends before byte 2^63, not offset "
                           << source.getOffset();
  StringRef file = source.getFile();
  if (file.empty() || llvm::sys::path::is_absolute(file) ||
      llvm::is_contained(llvm::make_range(llvm::sys::path::begin(file), llvm::sys::path::end(file)), ".."))
    return op->emitError() << "'tfm.source' expects a path within the model's folder, not \"" << file << '"';
  return success();
}

LogicalResult TfmDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  if (name == kSymbolsAttr)
    return verifyNames(op, attribute);
  if (name == kMicrobatchAttr)
    return verifyUnit(op, attribute);
  if (name == kLayerAttr) {
    auto layer = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!layer || layer.getValue().isNegative())
      return op->emitError() << "'tfm.layer' expects a number counted from 0, not " << attribute.getValue();
  }
  return success();
}

LogicalResult TfmDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  if (name == kInputAttr || name == kParameterAttr || name == kAccumulatorAttr)
    return success(succeeded(verifyName(op, attribute)) &&
                   (name == kAccumulatorAttr || succeeded(verifyDistinct(op, index, attribute))) &&
                   (name != kParameterAttr || succeeded(verifySizes(op, index))));
  if (name == kAliasesAttr)
    return verifyNames(op, attribute);
  if (name == kSeedAttr)
    return verifyUnit(op, attribute);
  if (name != kShapeAttr && name != kSourceAttr)
    return success();
  auto function = dyn_cast<FunctionOpInterface>(op);
  auto type = function ? dyn_cast<RankedTensorType>(function.getArgumentTypes()[index]) : RankedTensorType();
  if (!type) // bodies after bufferization have memory in place of tensors
    return success();
  // The file holds the model's shape, of which a rank may hold a part.
  if (auto global = function.getArgAttrOfType<DenseI64ArrayAttr>(index, kGlobalShapeAttr))
    type = RankedTensorType::get(global.asArrayRef(), type.getElementType());
  return name == kShapeAttr ? verifyShape(op, type, attribute.getValue())
                            : verifySource(op, type, attribute.getValue());
}

LogicalResult TfmDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned, NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  if (name == kOutputAttr || name == kAccumulatorAttr)
    return verifyName(op, attribute);
  return success();
}
