//===- Inputs.cpp - named inputs of a model ---------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Interpreter/Inputs.h"
#include "Kernels.h"
#include "drover/Support/Npy.h"

using namespace mlir;
using namespace drover;
using namespace drover::interpreter;

static bool isFile(StringRef value) { return value != "zeros" && value != "ones" && value != "arange"; }

std::string drover::argumentName(func::FuncOp function, unsigned index) {
  for (StringRef attr : {StringRef(tfm::TfmDialect::kInputAttr), StringRef(tfm::TfmDialect::kParameterAttr),
                         StringRef("tfm.accumulator")})
    if (auto name = function.getArgAttrOfType<StringAttr>(index, attr))
      return name.str();
  return function.getArgAttr(index, "tfm.seed") ? "seed" : "arg" + std::to_string(index);
}

std::string drover::resultName(func::FuncOp function, unsigned index) {
  for (StringRef attr : {StringRef(tfm::TfmDialect::kOutputAttr), StringRef("tfm.accumulator")})
    if (auto name = function.getResultAttrOfType<StringAttr>(index, attr))
      return name.str();
  return "result" + std::to_string(index);
}

/// Sizes of an argument, dynamic ones from its `tfm.shape`.
static LogicalResult sizesOf(func::FuncOp function, unsigned index, ArrayRef<int64_t> symbols,
                             SmallVectorImpl<int64_t> &shape, std::string &reason) {
  auto type = cast<RankedTensorType>(function.getArgumentTypes()[index]);
  shape.assign(type.getShape().begin(), type.getShape().end());
  if (type.hasStaticShape())
    return success();
  auto map = function.getArgAttrOfType<AffineMapAttr>(index, tfm::TfmDialect::kShapeAttr);
  SmallVector<int64_t> sizes;
  if (!map || map.getValue().getNumResults() != shape.size() || failed(evaluateMap(map.getValue(), symbols, sizes))) {
    reason = "its sizes depend on a symbol without a value";
    return failure();
  }
  shape = sizes;
  return success();
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
static uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// Floats in [-0.5, 0.5), integers in [0, 16): ids of any vocabulary that a test has.
static void randomize(Tensor &tensor, StringRef name, uint64_t seed) {
  for (char c : name)
    seed = mix(seed ^ static_cast<unsigned char>(c));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    uint64_t bits = mix(seed + static_cast<uint64_t>(i));
    if (isFloat(tensor.kind))
      tensor.floats[i] = roundTo(static_cast<double>(bits >> 11) * 0x1p-53 - 0.5, tensor.kind);
    else
      tensor.ints[i] = wrapTo(static_cast<int64_t>(bits & 15), tensor.kind);
  }
}

/// A file's tensor in the kind of the argument: floats to floats, integers to integers that hold every value.
static FailureOr<Tensor> readFile(StringRef path, ElementKind kind, std::string &reason) {
  llvm::Expected<Tensor> tensor = readNpy(path);
  if (!tensor) {
    reason = llvm::toString(tensor.takeError());
    return failure();
  }
  if (isFloat(tensor->kind) != isFloat(kind)) {
    reason = (path + ": expected " + name(kind) + ", has " + name(tensor->kind)).str();
    return failure();
  }
  tensor->kind = kind;
  for (double &value : tensor->floats)
    value = roundTo(value, kind);
  for (int64_t value : tensor->ints)
    if (wrapTo(value, kind) != value) {
      reason = (path + ": " + Twine(value) + " does not fit in " + name(kind)).str();
      return failure();
    }
  return std::move(*tensor);
}

FailureOr<Tensor> drover::readArgument(func::FuncOp function, unsigned index, const NamedInputs &inputs,
                                       ArrayRef<int64_t> symbols, std::string &reason) {
  std::string own = argumentName(function, index);
  auto fail = [&](const Twine &why) {
    reason = ("argument '" + own + "': " + why).str();
    return failure();
  };
  auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[index]);
  FailureOr<ElementKind> kind = elementKind(function.getArgumentTypes()[index]);
  if (!type || failed(kind))
    return fail("expected a tensor of floats or signless integers");
  std::string why;
  auto given = inputs.values.find(own);
  if (given != inputs.values.end() && isFile(given->second)) {
    FailureOr<Tensor> tensor = readFile(given->second, *kind, why);
    if (failed(tensor))
      return fail(why);
    SmallVector<int64_t> shape;
    if (failed(sizesOf(function, index, symbols, shape, why)))
      return fail(why);
    if (shape != tensor->shape) {
      llvm::raw_string_ostream text(why);
      text << given->second << ": expected shape [";
      llvm::interleaveComma(shape, text);
      text << "], has [";
      llvm::interleaveComma(tensor->shape, text);
      return fail(why + "]");
    }
    return tensor;
  }
  auto source = function.getArgAttrOfType<tfm::SourceAttr>(index, tfm::TfmDialect::kSourceAttr);
  if (given == inputs.values.end() && source) {
    FailureOr<Tensor> tensor = readSource(source, type, inputs.folder, why);
    return succeeded(tensor) ? tensor : FailureOr<Tensor>(fail(why));
  }
  if (given == inputs.values.end() && !inputs.randomSeed)
    return fail("expected a value");
  SmallVector<int64_t> shape;
  if (failed(sizesOf(function, index, symbols, shape, why)))
    return fail(why);
  if (countElements(shape, int64_t{1} << 31) < 0)
    return fail("its sizes are negative or too large");
  Tensor tensor(*kind, shape);
  if (given == inputs.values.end())
    randomize(tensor, own, *inputs.randomSeed);
  else if (given->second != "zeros")
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.setDouble(i, given->second == "ones" ? 1 : static_cast<double>(shape.empty() ? 0 : i % shape.back()));
  return tensor;
}

LogicalResult drover::bindSymbols(func::FuncOp function, const NamedInputs &inputs, SmallVectorImpl<int64_t> &symbols,
                                  std::string &reason) {
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    auto given = inputs.values.find(argumentName(function, index));
    auto map = function.getArgAttrOfType<AffineMapAttr>(index, tfm::TfmDialect::kShapeAttr);
    if (!map || given == inputs.values.end() || !isFile(given->second))
      continue;
    llvm::Expected<Tensor> tensor = readNpy(given->second);
    if (!tensor) {
      reason = llvm::toString(tensor.takeError());
      return failure();
    }
    if (failed(bindSymbols(map.getValue(), tensor->shape, symbols, reason))) {
      reason = given->second + ": " + reason;
      return failure();
    }
  }
  return success();
}
