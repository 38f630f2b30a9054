//===- Constants.cpp - tensors from attributes and files --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Kernels.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace drover;
using namespace drover::interpreter;

FailureOr<ElementKind> drover::elementKind(Type type) {
  type = getElementTypeOrSelf(type);
  if (type.isF16())
    return ElementKind::F16;
  if (type.isBF16())
    return ElementKind::BF16;
  if (type.isF32())
    return ElementKind::F32;
  if (type.isF64())
    return ElementKind::F64;
  if (type.isSignlessInteger(1))
    return ElementKind::I1;
  if (type.isSignlessInteger(8))
    return ElementKind::I8;
  if (type.isSignlessInteger(16))
    return ElementKind::I16;
  if (type.isSignlessInteger(32))
    return ElementKind::I32;
  if (type.isSignlessInteger(64) || type.isIndex())
    return ElementKind::I64;
  return failure();
}

static double toDouble(APFloat value) {
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}

static int64_t toInt(const APInt &value, ElementKind kind) {
  return kind == ElementKind::I1 ? static_cast<int64_t>(value.getZExtValue()) : value.getSExtValue();
}

FailureOr<Tensor> drover::readConstant(TypedAttr attr, std::string &reason) {
  FailureOr<ElementKind> kind = elementKind(attr.getType());
  if (failed(kind)) {
    reason = "constant of an element type that no tensor holds";
    return failure();
  }
  SmallVector<int64_t> shape;
  if (auto type = dyn_cast<ShapedType>(attr.getType()))
    shape.assign(type.getShape().begin(), type.getShape().end());
  if (countElements(shape, int64_t{1} << 31) < 0) {
    reason = "constant too large to be read";
    return failure();
  }
  Tensor tensor(*kind, shape);
  if (auto value = dyn_cast<FloatAttr>(attr)) {
    tensor.floats[0] = toDouble(value.getValue());
    return tensor;
  }
  if (auto value = dyn_cast<IntegerAttr>(attr)) {
    tensor.ints[0] = toInt(value.getValue(), *kind);
    return tensor;
  }
  if (auto dense = dyn_cast<DenseElementsAttr>(attr)) {
    if (isFloat(*kind) && dense.isSplat())
      std::fill(tensor.floats.begin(), tensor.floats.end(), toDouble(dense.getSplatValue<APFloat>()));
    else if (isFloat(*kind))
      for (auto [i, value] : llvm::enumerate(dense.getValues<APFloat>()))
        tensor.floats[i] = toDouble(value);
    else if (dense.isSplat())
      std::fill(tensor.ints.begin(), tensor.ints.end(), toInt(dense.getSplatValue<APInt>(), *kind));
    else
      for (auto [i, value] : llvm::enumerate(dense.getValues<APInt>()))
        tensor.ints[i] = toInt(value, *kind);
    return tensor;
  }
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attr)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob || blob->getData().size() < static_cast<size_t>(tensor.size()) * byteWidth(*kind)) {
      reason = "resource '" + resource.getRawHandle().getKey().str() + "' is missing or too short";
      return failure();
    }
    decode(blob->getData(), tensor);
    return tensor;
  }
  reason = "constant of a form that is not known";
  return failure();
}

DenseElementsAttr drover::makeConstant(RankedTensorType type, const Tensor &tensor) {
  assert(type.getShape() == ArrayRef(tensor.shape) && "a constant has its tensor's shape");
  if (tensor.kind == ElementKind::I1) {
    SmallVector<bool> bits;
    for (int64_t value : tensor.ints)
      bits.push_back(value != 0);
    return DenseElementsAttr::get(type, bits);
  }
  std::vector<char> bytes = encode(tensor);
  return DenseElementsAttr::getFromRawBuffer(type, bytes);
}

FailureOr<Tensor> drover::readSource(tfm::SourceAttr source, RankedTensorType type, StringRef folder,
                                     std::string &reason) {
  FailureOr<ElementKind> stored = elementKind(source.getType()), kind = elementKind(type);
  auto fail = [&](const Twine &why) {
    reason = (source.getFile() + ": " + why).str();
    return failure();
  };
  if (failed(stored) || failed(kind) || isFloat(*stored) != isFloat(*kind) || !type.hasStaticShape())
    return fail("expected a static tensor of floats for floats or of integers for integers");
  int64_t count = countElements(type.getShape(), int64_t{1} << 40);
  if (count < 0 || source.getBytes() != static_cast<uint64_t>(count) * byteWidth(*stored))
    return fail("expected " + Twine(count * byteWidth(*stored)) + " bytes for the parameter, not " +
                Twine(source.getBytes()));
  SmallString<128> path(source.getFile());
  if (!llvm::sys::path::is_absolute(path)) {
    path = folder;
    llvm::sys::path::append(path, source.getFile());
  }
  // The size is checked first: pages mapped beyond the end of a file fault when they are read.
  uint64_t size;
  if (std::error_code error = llvm::sys::fs::file_size(path, size))
    return fail(error.message());
  if (source.getOffset() > size || source.getBytes() > size - source.getOffset())
    return fail("expected " + Twine(source.getBytes()) + " bytes at " + Twine(source.getOffset()) + ", the file has " +
                Twine(size));
  auto buffer = llvm::MemoryBuffer::getFileSlice(path, source.getBytes(), source.getOffset());
  if (!buffer)
    return fail(buffer.getError().message());

  SmallVector<int64_t> shape(type.getShape());
  if (source.getTransposed()) {
    if (shape.size() != 2)
      return fail("expected a parameter of rank 2 where it is stored transposed");
    std::swap(shape[0], shape[1]);
  }
  Tensor raw(*stored, shape);
  decode(ArrayRef((*buffer)->getBufferStart(), (*buffer)->getBufferSize()), raw);
  Tensor tensor(*kind, type.getShape());
  double plus = source.getPlus().convertToDouble();
  for (int64_t i = 0; i < count; ++i) {
    int64_t from = source.getTransposed() ? (i % shape[0]) * shape[1] + i / shape[0] : i;
    if (isFloat(*kind))
      tensor.floats[i] = roundTo(roundTo(raw.floats[from] - plus, *stored), *kind);
    else
      tensor.ints[i] = wrapTo(raw.ints[from], *kind);
  }
  return tensor;
}
