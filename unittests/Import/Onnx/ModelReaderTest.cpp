//===- ModelReaderTest.cpp - the wire format, tensors, external data ------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Import/Onnx/Model.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace drover::onnx;
using namespace llvm;

namespace {

/// Writes protobuf messages, independently of the reader.
struct Message {
  std::string bytes;

  Message &varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      bytes += static_cast<char>(value | 0x80);
    bytes += static_cast<char>(value);
    return *this;
  }
  Message &number(unsigned field, uint64_t value) { return varint(field << 3).varint(value); }
  Message &string(unsigned field, StringRef value) {
    varint(field << 3 | 2).varint(value.size());
    bytes += value;
    return *this;
  }
  Message &message(unsigned field, const Message &value) { return string(field, value.bytes); }
  Message &fixed32(unsigned field, float value) {
    varint(field << 3 | 5);
    bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
    return *this;
  }
};

Message modelWith(const Message &graph, uint64_t irVersion = 10) {
  return Message().number(1, irVersion).message(7, graph);
}

Expected<Model> read(const Message &message) {
  return readModel(std::shared_ptr<MemoryBuffer>(MemoryBuffer::getMemBufferCopy(message.bytes)), "model.onnx");
}

std::string errorOf(const Message &message) {
  Expected<Model> model = read(message);
  return model ? "" : toString(model.takeError());
}

TEST(ModelReaderTest, ReadsTheFieldsThatOldReadersLose) {
  Message entry = Message().string(1, "key").string(2, "value");
  Message node = Message().string(4, "F").string(8, "other").message(9, entry).string(7, "ai.onnx");
  Message attribute = Message().string(1, "by").fixed32(2, 2.5f).number(20, 1);
  Message function = Message().string(1, "F").string(10, "local").message(11, attribute).string(13, "other");
  Expected<Model> model = read(modelWith(Message().message(1, node).message(16, entry)).message(25, function));
  ASSERT_TRUE(!!model) << toString(model.takeError());
  EXPECT_EQ(model->graph.nodes[0].overload, "other");
  EXPECT_EQ(model->graph.nodes[0].domain, "") << "ai.onnx is the default domain";
  EXPECT_EQ(lookup(model->graph.nodes[0].metadata, "key"), "value");
  EXPECT_EQ(lookup(model->graph.metadata, "key"), "value");
  ASSERT_EQ(model->functions.size(), 1u);
  EXPECT_EQ(model->functions[0].overload, "other");
  EXPECT_EQ(model->functions[0].defaults[0].f, 2.5f);
}

TEST(ModelReaderTest, UnknownFieldsAreSkipped) {
  Message graph = Message().string(2, "g").number(1000, 7).string(1001, "x").fixed32(1002, 1);
  Expected<Model> model = read(modelWith(graph));
  ASSERT_TRUE(!!model) << toString(model.takeError());
  EXPECT_EQ(model->graph.name, "g");
}

TEST(ModelReaderTest, RepeatedNumbersMayBePackedOrNot) {
  Message packed = Message().string(1, Message().varint(2).varint(3).bytes);
  Message single = Message().number(1, 2).number(1, 3);
  for (Message *dims : {&packed, &single}) {
    Message tensor = *dims;
    tensor.number(2, 1).string(8, "w").string(9, std::string(24, '\1'));
    Expected<Model> model = read(modelWith(Message().message(5, tensor)));
    ASSERT_TRUE(!!model) << toString(model.takeError());
    const Tensor &read = model->graph.initializers[0];
    EXPECT_EQ(ArrayRef<int64_t>(read.dims), ArrayRef<int64_t>({2, 3}));
    TensorData data(*model);
    Expected<std::optional<DataRange>> range = data.range(read);
    ASSERT_TRUE(!!range && *range);
    EXPECT_EQ(model->buffer->getBuffer().substr((*range)->offset, (*range)->bytes), std::string(24, '\1'));
  }
}

TEST(ModelReaderTest, MalformedMessagesNameThePlace) {
  Message cut = modelWith(Message().string(2, "graph"));
  cut.bytes.resize(cut.bytes.size() - 2);
  EXPECT_EQ(errorOf(cut), "not a valid ONNX file: a field longer than what is left of its message at byte 4");
  EXPECT_EQ(errorOf(modelWith(Message().number(1, 5))),
            "not a valid ONNX file: a field of the wrong wire type at byte 5");
  EXPECT_EQ(errorOf(Message().varint(0).varint(0)), "not a valid ONNX file: an invalid tag at byte 1");
  EXPECT_EQ(errorOf(Message().number(1, 10)), "not an ONNX model: it has no graph or no ir_version");
  EXPECT_EQ(errorOf(modelWith(Message(), 99)), "ONNX IR version 99 is not supported, 3 to 14 are");
  Message endless;
  endless.bytes = std::string("\x08") + std::string(11, '\xff');
  EXPECT_EQ(errorOf(endless), "not a valid ONNX file: a number of more than ten bytes at byte 11");
}

TEST(ModelReaderTest, WhatIsNotRepeatedStandsOnce) {
  // A file behind itself.
  Message model = modelWith(Message().string(2, "g"));
  Message doubled;
  doubled.bytes = model.bytes + model.bytes;
  EXPECT_EQ(errorOf(doubled), "not a valid ONNX file: a second 'graph' in one message at byte 10");
  Message dims = Message().message(1, Message().number(1, 4)), tensor = Message().number(1, 1).message(2, dims);
  Message type = Message().message(1, tensor), attribute = Message().string(1, "value");
  auto ofInput = [&](const Message &info) { return errorOf(modelWith(Message().message(11, info))); };
  auto ofAttribute = [&](const Message &value) {
    return errorOf(modelWith(Message().message(1, Message().message(5, value))));
  };
  EXPECT_EQ(ofInput(Message().string(1, "x").message(2, type)), "");
  EXPECT_NE(ofInput(Message().message(2, type).message(2, type)).find("a second 'type'"), std::string::npos);
  EXPECT_NE(
      ofInput(Message().message(2, Message().message(1, tensor).message(1, tensor))).find("a second 'tensor_type'"),
      std::string::npos);
  EXPECT_NE(
      ofInput(Message().message(2, Message().message(1, Message(tensor).message(2, dims)))).find("a second 'shape'"),
      std::string::npos);
  EXPECT_NE(ofAttribute(Message(attribute).message(5, Message()).message(5, Message())).find("a second 't'"),
            std::string::npos);
  EXPECT_NE(ofAttribute(Message(attribute).message(6, Message()).message(6, Message())).find("a second 'g'"),
            std::string::npos);
}

TEST(ModelReaderTest, AbsurdSizesAreRefused) {
  Message tensor = Message().string(8, "w").number(2, 1).number(1, 1ull << 40).number(1, 1ull << 40);
  EXPECT_NE(errorOf(modelWith(Message().message(5, tensor))).find("more than 2^50 elements in tensor 'w'"),
            std::string::npos);
  Message negative = Message().string(8, "w").number(2, 1).number(1, ~0ull);
  EXPECT_NE(errorOf(modelWith(Message().message(5, negative))).find("a negative size in tensor 'w'"),
            std::string::npos);
}

TEST(ModelReaderTest, NestingIsBounded) {
  // Graphs within attributes within nodes.
  Message graph;
  for (int i = 0; i < 200; ++i)
    graph = Message().message(1, Message().message(5, Message().message(6, graph)));
  EXPECT_NE(errorOf(modelWith(graph)).find("messages nested deeper than 100"), std::string::npos);
}

TEST(ModelReaderTest, DataMustFitTheShape) {
  Message tensor = Message().string(8, "w").number(2, 1).number(1, 4).string(9, "12345678");
  Expected<Model> model = read(modelWith(Message().message(5, tensor)));
  ASSERT_TRUE(!!model) << toString(model.takeError());
  TensorData data(*model);
  Expected<StringRef> bytes = data.bytes(model->graph.initializers[0]);
  ASSERT_FALSE(!!bytes);
  EXPECT_EQ(toString(bytes.takeError()), "tensor 'w' has 8 bytes of data, its shape and type need 16");
}

TEST(ModelReaderTest, ATensorWithoutDataHasNoPlaceInTheFile) {
  Message tensor = Message().string(8, "w").number(2, 1).number(1, 64);
  Expected<Model> model = read(modelWith(Message().message(5, tensor)));
  ASSERT_TRUE(!!model) << toString(model.takeError());
  TensorData data(*model);
  Expected<std::optional<DataRange>> range = data.range(model->graph.initializers[0]);
  ASSERT_FALSE(!!range) << "values that are nowhere are not values that are not plain bytes";
  EXPECT_EQ(toString(range.takeError()), "tensor 'w' has 0 bytes of data, its shape and type need 256");
}

} // namespace
