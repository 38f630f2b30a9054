//===- ModelReader.cpp - from bytes to the structs of Model.h -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Field numbers are those of onnx.proto of ONNX 1.21 (IR 13).
//
//===----------------------------------------------------------------------===//
#include "WireReader.h"
#include "drover/Import/Onnx/Model.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace drover::onnx {
namespace {

Entry readEntry(WireReader &reader) {
  Entry entry;
  while (reader.next())
    switch (reader.field()) {
    case 1:
      entry.key = reader.string();
      break;
    case 2:
      entry.value = reader.string();
      break;
    default:
      reader.skip();
    }
  return entry;
}

void readEntries(WireReader &reader, Metadata &entries) {
  reader.message([&](WireReader &inner) { entries.push_back(readEntry(inner)); });
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// float_data and double_data: the bytes stay where they are when they are packed in one piece.
template <typename T, typename Bits> void readFloats(WireReader &reader, Tensor &tensor) {
  if (reader.wireType() == WireReader::Bytes && !tensor.raw && tensor.integers.empty()) {
    tensor.raw = reader.string();
    return;
  }
  reader.fixed<T>([&](T value) {
    Bits bits;
    std::memcpy(&bits, &value, sizeof(bits));
    tensor.integers.push_back(static_cast<int64_t>(bits));
  });
}

/// Rejects what no later code should have to think about.
void checkTensor(WireReader &reader, const Tensor &tensor) {
  // Zeros do not excuse absurd sizes beside them.
  int64_t product = 1;
  for (int64_t dim : tensor.dims) {
    if (dim < 0)
      return reader.fail(("a negative size in tensor '" + tensor.name + "'").str());
    if (__builtin_mul_overflow(product, std::max<int64_t>(dim, 1), &product) || product > (int64_t(1) << 50))
      return reader.fail(("more than 2^50 elements in tensor '" + tensor.name + "'").str());
  }
}

Tensor readTensor(WireReader &reader) {
  Tensor tensor;
  bool hasRaw = false;
  StringRef raw;
  while (reader.next())
    switch (reader.field()) {
    case 1:
      reader.varints([&](int64_t dim) { tensor.dims.push_back(dim); });
      break;
    case 2:
      tensor.type = static_cast<ElemType>(reader.varint());
      break;
    case 4:
      readFloats<float, uint32_t>(reader, tensor);
      break;
    case 5:  // int32_data
    case 7:  // int64_data
    case 11: // uint64_data
      reader.varints([&](int64_t value) { tensor.integers.push_back(value); });
      break;
    case 8:
      tensor.name = reader.string();
      break;
    case 9:
      raw = reader.string();
      hasRaw = true;
      break;
    case 10:
      readFloats<double, uint64_t>(reader, tensor);
      break;
    case 13:
      readEntries(reader, tensor.externalData);
      break;
    case 14:
      tensor.isExternal = reader.varint() == 1;
      break;
    case 16:
      readEntries(reader, tensor.metadata);
      break;
    default:
      reader.skip();
    }
  if (hasRaw)
    tensor.raw = raw;
  checkTensor(reader, tensor);
  return tensor;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

Dim readDim(WireReader &reader) {
  Dim dim;
  while (reader.next())
    switch (reader.field()) {
    case 1:
      dim.value = reader.varint();
      // Exporters write -1 where they mean that they do not know.
      if (*dim.value < -1)
        reader.fail("a size of " + std::to_string(*dim.value));
      if (*dim.value == -1)
        dim.value.reset();
      break;
    case 2:
      dim.param = reader.string();
      break;
    default:
      reader.skip();
    }
  return dim;
}

void readTensorType(WireReader &reader, ValueInfo &info) {
  while (reader.next())
    switch (reader.field()) {
    case 1:
      info.type = static_cast<ElemType>(reader.varint());
      break;
    case 2:
      reader.single("shape", [&](WireReader &shape) {
        info.shape.emplace();
        while (shape.next())
          if (shape.field() == 1)
            shape.message([&](WireReader &dim) { info.shape->push_back(readDim(dim)); });
          else
            shape.skip();
      });
      break;
    default:
      reader.skip();
    }
}

ValueInfo readValueInfo(WireReader &reader) {
  ValueInfo info;
  while (reader.next())
    switch (reader.field()) {
    case 1:
      info.name = reader.string();
      break;
    case 2:
      reader.single("type", [&](WireReader &type) {
        while (type.next())
          if (type.field() == 1) {
            info.kind = ValueInfo::TensorKind;
            type.single("tensor_type", [&](WireReader &tensor) { readTensorType(tensor, info); });
          } else {
            // 4 sequence, 5 map, 8 sparse tensor, 9 optional; 6 is a denotation.
            if (type.field() != 6)
              info.kind = ValueInfo::Other;
            type.skip();
          }
      });
      break;
    default:
      reader.skip();
    }
  return info;
}

//===----------------------------------------------------------------------===//
// Nodes, graphs, functions
//===----------------------------------------------------------------------===//

Graph readGraph(WireReader &reader);

Attribute readAttribute(WireReader &reader) {
  Attribute attribute;
  while (reader.next())
    switch (reader.field()) {
    case 1:
      attribute.name = reader.string();
      break;
    case 2:
      attribute.f = reader.fixed32();
      break;
    case 3:
      attribute.i = reader.varint();
      break;
    case 4:
      attribute.s = reader.string();
      break;
    case 5:
      reader.single("t", [&](WireReader &inner) { attribute.t = std::make_shared<Tensor>(readTensor(inner)); });
      break;
    case 6:
      reader.single("g", [&](WireReader &inner) { attribute.g = std::make_shared<Graph>(readGraph(inner)); });
      break;
    case 7:
      reader.fixed<float>([&](float value) { attribute.floats.push_back(value); });
      break;
    case 8:
      reader.varints([&](int64_t value) { attribute.ints.push_back(value); });
      break;
    case 9:
      attribute.strings.push_back(reader.string());
      break;
    case 20:
      attribute.type = static_cast<int32_t>(reader.varint());
      break;
    case 21:
      attribute.refName = reader.string();
      break;
    default:
      reader.skip();
    }
  return attribute;
}

Node readNode(WireReader &reader) {
  Node node;
  while (reader.next())
    switch (reader.field()) {
    case 1:
      node.inputs.push_back(reader.string());
      break;
    case 2:
      node.outputs.push_back(reader.string());
      break;
    case 3:
      node.name = reader.string();
      break;
    case 4:
      node.opType = reader.string();
      break;
    case 5:
      reader.message([&](WireReader &inner) { node.attributes.push_back(readAttribute(inner)); });
      break;
    case 7:
      node.domain = normalizeDomain(reader.string());
      break;
    case 8:
      node.overload = reader.string();
      break;
    case 9:
      readEntries(reader, node.metadata);
      break;
    default:
      reader.skip();
    }
  return node;
}

Graph readGraph(WireReader &reader) {
  Graph graph;
  auto values = [&](std::vector<ValueInfo> &list) {
    reader.message([&](WireReader &inner) { list.push_back(readValueInfo(inner)); });
  };
  while (reader.next())
    switch (reader.field()) {
    case 1:
      reader.message([&](WireReader &inner) { graph.nodes.push_back(readNode(inner)); });
      break;
    case 2:
      graph.name = reader.string();
      break;
    case 5:
      reader.message([&](WireReader &inner) { graph.initializers.push_back(readTensor(inner)); });
      break;
    case 11:
      values(graph.inputs);
      break;
    case 12:
      values(graph.outputs);
      break;
    case 13:
      values(graph.valueInfos);
      break;
    case 16:
      readEntries(reader, graph.metadata);
      break;
    default:
      reader.skip();
    }
  return graph;
}

OpsetImport readOpset(WireReader &reader) {
  OpsetImport opset;
  while (reader.next())
    switch (reader.field()) {
    case 1:
      opset.domain = normalizeDomain(reader.string());
      break;
    case 2:
      opset.version = reader.varint();
      break;
    default:
      reader.skip();
    }
  return opset;
}

Function readFunction(WireReader &reader) {
  Function function;
  while (reader.next())
    switch (reader.field()) {
    case 1:
      function.name = reader.string();
      break;
    case 4:
      function.inputs.push_back(reader.string());
      break;
    case 5:
      function.outputs.push_back(reader.string());
      break;
    case 6:
      function.attributes.push_back(reader.string());
      break;
    case 7:
      reader.message([&](WireReader &inner) { function.nodes.push_back(readNode(inner)); });
      break;
    case 9:
      reader.message([&](WireReader &inner) { function.opsets.push_back(readOpset(inner)); });
      break;
    case 10:
      function.domain = normalizeDomain(reader.string());
      break;
    case 11:
      reader.message([&](WireReader &inner) { function.defaults.push_back(readAttribute(inner)); });
      break;
    case 13:
      function.overload = reader.string();
      break;
    default:
      reader.skip();
    }
  return function;
}

void readModelMessage(WireReader &reader, Model &model, bool &hasGraph) {
  while (reader.next())
    switch (reader.field()) {
    case 1:
      model.irVersion = reader.varint();
      break;
    case 2:
      model.producerName = reader.string();
      break;
    case 3:
      model.producerVersion = reader.string();
      break;
    case 7:
      hasGraph = true;
      reader.single("graph", [&](WireReader &inner) { model.graph = readGraph(inner); });
      break;
    case 8:
      reader.message([&](WireReader &inner) { model.opsets.push_back(readOpset(inner)); });
      break;
    case 14:
      readEntries(reader, model.metadata);
      break;
    case 25:
      reader.message([&](WireReader &inner) { model.functions.push_back(readFunction(inner)); });
      break;
    default:
      reader.skip();
    }
}

} // namespace

Expected<Model> readModel(std::shared_ptr<MemoryBuffer> buffer, StringRef path) {
  Model model;
  model.path = path.str();
  model.buffer = std::move(buffer);
  WireReader::State state{model.buffer->getBuffer(), {}, 0};
  WireReader reader(state, state.file);
  bool hasGraph = false;
  readModelMessage(reader, model, hasGraph);
  if (!state.error.empty())
    return createStringError("not a valid ONNX file: " + state.error);
  if (!hasGraph || model.irVersion <= 0)
    return createStringError("not an ONNX model: it has no graph or no ir_version");
  if (model.irVersion < 3 || model.irVersion > 14)
    return createStringError("ONNX IR version " + Twine(model.irVersion) + " is not supported, 3 to 14 are");
  return model;
}

Expected<Model> readModel(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError("cannot read '" + path + "': " + buffer.getError().message());
  return readModel(std::shared_ptr<MemoryBuffer>(std::move(*buffer)), path);
}

} // namespace drover::onnx
