//===- Parameters.cpp - parameter arguments, ties, constants --------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Parameters.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace mlir;

namespace drover::onnx {

void Parameters::begin(TensorBuilder &tensorBuilder, Block &entry) {
  builder = &tensorBuilder;
  block = &entry;
  arguments.clear();
  embeddings.clear();
  byName.clear();
}

//===----------------------------------------------------------------------===//
// What is a parameter
//===----------------------------------------------------------------------===//

/// Below as many values, that all differ says nothing.
static constexpr int64_t fewestWeights = 8;

const Parameters::Look &Parameters::lookAt(const Tensor &tensor) const {
  auto [look, isNew] = looks.try_emplace(&tensor);
  if (!isNew)
    return look->second;
  if (Expected<StringRef> bytes = data.bytes(tensor))
    look->second = {formulaBehind(tensor, *bytes), isIrregular(tensor, *bytes)};
  else
    consumeError(bytes.takeError());
  return look->second;
}

StringRef Parameters::whyConstant(StringRef name, const Tensor &tensor) const {
  const Look &look = lookAt(tensor);
  if (look.formula.empty() && names.isMadeUp(name) && !(look.isIrregular && tensor.count() >= fewestWeights))
    return "computed by the exporter";
  return look.formula;
}

bool Parameters::holdsWeightsInConstants() const {
  if (!weightsInConstants)
    weightsInConstants = none_of(model.graph.initializers, [&](const Tensor &tensor) {
      ParameterNames::Kind kind = names.kindOf(tensor.name);
      if (!isFloat(tensor.type) || tensor.count() <= 1 || kind == ParameterNames::Kind::Buffer)
        return false;
      return kind == ParameterNames::Kind::Parameter || (lookAt(tensor).isIrregular && lookAt(tensor).formula.empty());
    });
  return *weightsInConstants;
}

bool Parameters::mayBeParameter(const Tensor &constant) const {
  if (!isFloat(constant.type) || constant.dims.empty() || constant.count() == 1)
    return false;
  if (ParameterNames::Kind kind = names.kindOf(constant.name); kind != ParameterNames::Kind::Unknown)
    return kind == ParameterNames::Kind::Parameter;
  const Look &look = lookAt(constant);
  bool isTrained = look.isIrregular && constant.count() >= fewestWeights;
  return look.formula.empty() && (isTrained || holdsWeightsInConstants());
}

bool Parameters::isParameter(const Value &value, Role role) const {
  const Tensor *tensor = value.initializer;
  if (!tensor || !isFloat(tensor->type))
    return false;
  if (constantNodes.contains(tensor) && !mayBeParameter(*tensor))
    return false;
  ParameterNames::Kind kind = names.kindOf(value.name);
  // A mask may be called `attn.bias`.
  if (kind == ParameterNames::Kind::Parameter && !names.hasSignature() && tensor->dims.size() > 2)
    return whyConstant(value.name, *tensor).empty();
  if (kind != ParameterNames::Kind::Unknown)
    return kind == ParameterNames::Kind::Parameter;
  switch (role) {
  case Role::Embedding:
    return tensor->dims.size() == 2 && lookAt(*tensor).formula.empty();
  case Role::Linear:
    return tensor->dims.size() == 2;
  case Role::NormWeight:
  case Role::Bias:
    return tensor->dims.size() == 1 && tensor->dims[0] > 1;
  case Role::Other:
    return !value.name.empty() && tensor->count() > 1 && whyConstant(value.name, *tensor).empty();
  }
  return false;
}

/// `4x64`.
static std::string shapeOf(const Tensor &tensor) {
  return join(map_range(tensor.dims, [](int64_t size) { return std::to_string(size); }), "x");
}

bool Parameters::refuseEmpty(const Tensor &tensor) const {
  bool isWeight = names.kindOf(tensor.name) == ParameterNames::Kind::Parameter || tensor.dims.size() == 2;
  if (!isFloat(tensor.type) || tensor.count() != 0 || !isWeight || !uses.lookup(&tensor))
    return false;
  builder->fail("'" + tensor.name + "' has the shape " + shapeOf(tensor) +
                ", expected a weight with sizes of 1 and more; export the model again with its weights");
  return true;
}

/// A float32 tensor in a model of 16-bit weights is a folded cast, not a folded sum.
bool Parameters::isDowncast(const Tensor &tensor) const {
  return tensor.type == ElemType::Float && any_of(uses, [](const auto &use) {
           const Tensor &other = *use.first;
           return byteSize(other.type) == 2 && isFloat(other.type) && other.dims.size() == 2;
         });
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// `type` is the tensor's, or wider where the graph widens it first.
mlir::Value Parameters::argument(StringRef name, const Tensor &tensor, ElemType type, bool transposed, double plus) {
  Shape shape(tensor.dims.begin(), tensor.dims.end());
  if (transposed)
    std::swap(shape[0], shape[1]);
  std::string unique = name.str();
  for (unsigned suffix = 1;; ++suffix) {
    auto found = byName.find(unique);
    if (found == byName.end())
      break;
    const Argument &existing = arguments[found->second];
    if (existing.tensor == &tensor && existing.transposed == transposed)
      return existing.value;
    // Two parameters of one name: the same module used twice, or a name that could not be recovered.
    if (existing.transposed == transposed && existing.tensor->type == tensor.type &&
        existing.tensor->dims == tensor.dims && sameBits(*existing.tensor, tensor, false))
      return existing.value;
    unique = (name + "." + Twine(suffix)).str();
    report.remarks.push_back("two different parameters are called '" + name.str() + "'; one is '" + unique + "' here");
  }
  mlir::Value value = block->addArgument(builder->tensorType(type, shape), builder->location);
  byName[unique] = arguments.size();
  arguments.push_back({unique, &tensor, transposed, plus, value});
  return value;
}

bool Parameters::sameBits(const Tensor &a, const Tensor &b, bool transposed) {
  Expected<StringRef> x = data.bytes(a), y = data.bytes(b);
  if (!x || !y) {
    consumeError(x.takeError());
    consumeError(y.takeError());
    return false;
  }
  if (!transposed)
    return *x == *y;
  int64_t rows = a.dims[0], columns = a.dims[1], size = byteSize(a.type);
  // In tiles, so that a large table is read about once.
  constexpr int64_t tile = 64;
  for (int64_t r0 = 0; r0 < rows; r0 += tile)
    for (int64_t c0 = 0; c0 < columns; c0 += tile)
      for (int64_t r = r0, re = std::min(rows, r0 + tile); r < re; ++r)
        for (int64_t c = c0, ce = std::min(columns, c0 + tile); c < ce; ++c)
          if (std::memcmp(x->data() + (r * columns + c) * size, y->data() + (c * rows + r) * size, size) != 0)
            return false;
  return true;
}

const Parameters::Argument *Parameters::tiedEmbedding(const Tensor &tensor, bool &transposed) {
  for (size_t index : embeddings) {
    const Argument &embedding = arguments[index];
    const Tensor &table = *embedding.tensor;
    if (table.type != tensor.type || tensor.dims.size() != 2)
      continue;
    bool straight = table.dims == tensor.dims,
         crossed = table.dims[0] == tensor.dims[1] && table.dims[1] == tensor.dims[0];
    if (&table == &tensor || (straight && sameBits(table, tensor, false))) {
      transposed = false;
      return &embedding;
    }
    if (crossed && sameBits(table, tensor, true)) {
      transposed = true;
      return &embedding;
    }
  }
  return nullptr;
}

Value Parameters::get(const Node &node, const Value &value, Role role, bool *inOut) {
  const Tensor &tensor = *value.initializer;
  ParameterNames::Name name = names.nameFor(node, value.name, role, uses.lookup(&tensor) > 1);
  // How the tensor is stored relative to the value: a Linear's value is used as [in, out] by MatMul.
  bool isMatrix = tensor.dims.size() == 2;
  bool foldedTranspose = role == Role::Linear && isMatrix && name.folded && inOut && *inOut && !value.transposed;
  double plus =
      role == Role::NormWeight && name.folded && !name.direct && value.name != name.text && !isDowncast(tensor) ? 1.0
                                                                                                                : 0.0;
  bool crossed = false;
  const Argument *tied = role == Role::Linear && tie ? tiedEmbedding(tensor, crossed) : nullptr;
  mlir::Value ir;
  // `stored`: the argument's shape is the tensor's with its sizes exchanged.
  bool exchanged = foldedTranspose;
  if (tied) {
    ir = tied->value;
    exchanged = crossed != tied->transposed;
    if (name.text != tied->name &&
        none_of(report.ties, [&](const ImportReport::Tie &t) { return t.with == name.text; }))
      report.ties.push_back({tied->name, name.text});
  } else {
    ir = argument(name.text, tensor, value.type, foldedTranspose, plus);
    if (role == Role::Embedding && !is_contained(embeddings, byName.lookup(name.text)))
      embeddings.push_back(byName.lookup(name.text));
  }
  Value result = value;
  result.initializer = nullptr;
  result.known = nullptr;
  result.ir = ir;
  result.hidden = true;
  result.transposed = false;
  // The argument has the type that its first use wanted: the tensor's or, where it is widened first, f32.
  result.type = getElementTypeOrSelf(ir.getType()).isF32() ? ElemType::Float : tensor.type;
  // The argument holds what the model's file would: the graph adds what the exporter had folded in.
  if (plus != 0)
    return builder->cast(builder->add(result, builder->number(result, plus)), value.type);
  bool flip = exchanged != value.transposed;
  if (flip)
    std::swap(result.shape[0], result.shape[1]);
  // Where the caller wants the argument itself, it is told how to read it.
  if (flip && inOut)
    *inOut = !*inOut;
  return builder->cast(flip && !inOut ? builder->transpose(result, {1, 0}) : result, value.type);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// Elements by value where they are few; a blob beside the program where they are many.
static ElementsAttr elementsAttr(RankedTensorType type, const Tensor &tensor, StringRef bytes) {
  constexpr size_t maxInline = 1 << 20;
  if (tensor.type == ElemType::Bool) {
    SmallVector<bool> values;
    for (char byte : bytes)
      values.push_back(byte != 0);
    return DenseElementsAttr::get(type, ArrayRef<bool>(values));
  }
  if (bytes.size() <= maxInline)
    return DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(bytes.data(), bytes.size()));
  return DenseResourceElementsAttr::get(
      type, "onnx_constant",
      HeapAsmResourceBlob::allocateAndCopyWithAlign(ArrayRef<char>(bytes.data(), bytes.size()), 64));
}

mlir::Value Parameters::materialize(const Node &node, const Value &value) {
  const Tensor &tensor = *value.initializer;
  // What the model only hands out is none, unless the file says so.
  bool isRead = !node.opType.empty() || names.kindOf(value.name) == ParameterNames::Kind::Parameter;
  if (isRead && isParameter(value, Role::Other) && !tensor.dims.empty())
    return builder->materialize(get(node, value, Role::Other));
  Expected<StringRef> bytes = data.bytes(tensor);
  if (!bytes) {
    builder->fail(toString(bytes.takeError()));
    return builder->materialize(builder->scalar(ElemType::Int64, 0));
  }
  if (isFloat(tensor.type) && tensor.count() > 1 &&
      none_of(report.constants, [&](const auto &entry) { return entry.first == tensor.name; })) {
    report.constants.emplace_back(tensor.name.str(), "used by '" + node.name.str() + "' (" + node.opType.str() + ")");
    noteConstant(tensor, whyConstant(value.name, tensor));
  }
  Value plain;
  plain.type = tensor.type;
  plain.shape.assign(tensor.dims.begin(), tensor.dims.end());
  // Later errors about it name the tensor within the node.
  auto location = NameLoc::get(builder->builder.getStringAttr(tensor.name), builder->location);
  plain.ir =
      arith::ConstantOp::create(builder->builder, location, elementsAttr(builder->tensorType(plain), tensor, *bytes));
  plain = builder->cast(plain, value.type);
  return builder->materialize(value.transposed ? builder->transpose(plain, {1, 0}) : plain);
}

void Parameters::noteConstant(const Tensor &tensor, StringRef why) {
  constexpr int64_t large = 1 << 20;
  bool isNamed = !names.isMadeUp(tensor.name) || tensor.bytes() >= large;
  if (isNamed && names.kindOf(tensor.name) != ParameterNames::Kind::Buffer)
    doubtful.insert({&tensor, why});
}

void Parameters::reportConstants(Location location) const {
  constexpr size_t most = 8;
  if (doubtful.empty())
    return;
  InFlightDiagnostic warning = emitWarning(location) << "tensors that stay constants and are not trained: ";
  for (auto [index, entry] : enumerate(doubtful)) {
    if (index == most) {
      warning << " and " << doubtful.size() - most << " more, which --report lists";
      return;
    }
    auto [tensor, why] = entry;
    warning << (index ? ", '" : "'") << tensor->name << "' (" << shapeOf(*tensor) << (tensor->dims.empty() ? "" : " ")
            << str(tensor->type) << (why.empty() ? "" : ", ") << why << ")";
  }
}

Expected<tfm::SourceAttr> Parameters::source(const Argument &argument) {
  Expected<std::optional<DataRange>> range = data.range(*argument.tensor);
  if (!range)
    return range.takeError();
  if (!*range)
    return tfm::SourceAttr();
  return tfm::SourceAttr::get(builder->builder.getContext(), (*range)->file, (*range)->offset, (*range)->bytes,
                              builder->elementType(argument.tensor->type), argument.transposed, APFloat(argument.plus));
}

} // namespace drover::onnx
