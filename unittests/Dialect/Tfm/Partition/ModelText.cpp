//===- ModelText.cpp - small transformers as text ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ModelText.h"
#include <sstream>
#include <vector>

namespace {

class Writer {
public:
  explicit Writer(const ModelShape &shape) : shape(shape) {}

  std::string write() {
    std::string ids = input("input_ids", tensor({shape.batch, shape.length}, "i64"));
    if (shape.positionInput)
      positions = input("position_ids", tensor({shape.batch, shape.length}, "i64"));
    if (shape.keyMask)
      keyMask = input("attention_mask", tensor({shape.batch, shape.length}, "i64"));
    if (shape.floatMask)
      floatMask = input("bias", tensor({1, 1, shape.length, shape.length}, "f32"));
    std::string table = parameter("embed.weight", {shape.vocabulary, shape.hidden()});
    std::string x = op("tfm.embedding " + ids + ", " + table,
                       {tensor({shape.batch, shape.length}, "i64"), tensor({shape.vocabulary, shape.hidden()})},
                       rows(shape.hidden()));
    if (!shape.positionInput)
      positions = plain("tfm.iota {axis = 1 : i64} : " + tensor({1, shape.length}, "i64"));
    if (shape.scaledEmbedding) {
      std::string scale = plain("arith.constant dense<3.0> : " + rows(shape.hidden()));
      x = plain("arith.mulf " + x + ", " + scale + " : " + rows(shape.hidden()));
    }
    if (shape.positionTable)
      x = addPositions(x);
    for (int64_t layer = 0; layer < shape.layers; ++layer)
      x = writeLayer(x, "layers." + std::to_string(layer) + ".");
    x = norm(x, "norm", shape.hidden(), {shape.batch, shape.length});
    std::string head = shape.tied ? table : parameter("head.weight", {shape.vocabulary, shape.hidden()});
    x = op("tfm.linear " + x + ", " + head, {rows(shape.hidden()), tensor({shape.vocabulary, shape.hidden()})},
           rows(shape.vocabulary));
    std::ostringstream text;
    text << "func.func @model(";
    for (size_t i = 0; i < arguments.size(); ++i)
      text << (i ? ", " : "") << arguments[i];
    text << ") -> (" << rows(shape.vocabulary) << " {tfm.output = \"logits\"}) {\n"
         << body.str() << "  return " << x << " : " << rows(shape.vocabulary) << "\n}\n";
    return text.str();
  }

private:
  std::string tensor(std::vector<int64_t> sizes, std::string type = "") const {
    std::string text = "tensor<";
    for (int64_t size : sizes)
      text += std::to_string(size) + "x";
    return text + (type.empty() ? shape.type : type) + ">";
  }
  std::string rows(int64_t size) const { return tensor({shape.batch, shape.length, size}); }

  std::string input(const std::string &name, const std::string &type) {
    arguments.push_back("%" + name + ": " + type + " {tfm.input = \"" + name + "\"}");
    return "%" + name;
  }
  std::string parameter(const std::string &name, std::vector<int64_t> sizes) {
    std::string value = "%p" + std::to_string(next++);
    arguments.push_back(value + ": " + tensor(std::move(sizes)) + " {tfm.parameter = \"" + name + "\"}");
    return value;
  }
  std::string plain(const std::string &text) {
    std::string value = "%v" + std::to_string(next++);
    body << "  " << value << " = " << text << "\n";
    return value;
  }
  std::string op(const std::string &text, const std::vector<std::string> &operands, const std::string &result) {
    std::string types;
    for (const std::string &type : operands)
      types += (types.empty() ? "" : ", ") + type;
    return plain(text + " : (" + types + ") -> " + result);
  }

  std::string norm(const std::string &x, const std::string &name, int64_t size, std::vector<int64_t> outer) {
    outer.push_back(size);
    std::string full = tensor(outer), vector = tensor({size});
    std::string weight = parameter(name + ".weight", {size});
    if (!shape.layerNorm)
      return op("tfm.rms_norm " + x + ", " + weight + " {eps = 1.0e-5 : f64}", {full, vector}, full);
    std::string bias = parameter(name + ".bias", {size});
    return op("tfm.layer_norm " + x + " weight " + weight + " bias " + bias + " {eps = 1.0e-5 : f64}",
              {full, vector, vector}, full);
  }

  std::string linear(const std::string &x, const std::string &name, int64_t in, int64_t out, bool inOut = false) {
    std::vector<int64_t> sizes = inOut ? std::vector<int64_t>{in, out} : std::vector<int64_t>{out, in};
    std::string weight = parameter(name + ".weight", sizes);
    std::string y =
        op("tfm.linear " + x + ", " + weight + (inOut ? " in_out" : ""), {rows(in), tensor(sizes)}, rows(out));
    if (!shape.bias)
      return y;
    std::string bias = parameter(name + ".bias", {out});
    return op("tfm.bias_add " + y + ", " + bias, {rows(out), tensor({out})}, rows(out));
  }

  std::string part(const std::string &x, int64_t offset, int64_t size, int64_t whole) {
    return plain("tfm.slice " + x + " {offsets = array<i64: 0, 0, " + std::to_string(offset) +
                 ">, strides = array<i64: 1, 1, 1>} : " + rows(whole) + " -> " + rows(size));
  }

  std::string addPositions(const std::string &x) {
    int64_t places = shape.length + 4;
    std::string table = parameter("positions.weight", {places, shape.hidden()});
    std::string outer = shape.positionInput ? "" : "1";
    int64_t batch = shape.positionInput ? shape.batch : 1;
    std::string row = tensor({batch, shape.length, shape.hidden()});
    std::string y = op("tfm.embedding " + positions + ", " + table,
                       {tensor({batch, shape.length}, "i64"), tensor({places, shape.hidden()})}, row);
    if (!shape.positionInput)
      y = plain("tfm.broadcast " + y + " : " + row + " -> " + rows(shape.hidden()));
    return plain("arith.addf " + x + ", " + y + " : " + rows(shape.hidden()));
  }

  std::string rope(const std::string &x, int64_t heads) {
    std::string size = std::to_string(shape.headSize);
    int64_t batch = shape.positionInput ? shape.batch : 1;
    return op("tfm.rope " + x + ", " + positions + " {head_size = " + size + " : i64, rotary_dim = " + size +
                  " : i64, theta = 1.0e4 : f64}",
              {rows(heads * shape.headSize), tensor({batch, shape.length}, "i64")}, rows(heads * shape.headSize));
  }

  std::string headNorm(const std::string &x, const std::string &name, int64_t heads) {
    std::string split = tensor({shape.batch, shape.length, heads, shape.headSize});
    std::string y = plain("tfm.reshape " + x + " : " + rows(heads * shape.headSize) + " -> " + split);
    y = norm(y, name, shape.headSize, {shape.batch, shape.length, heads});
    return plain("tfm.reshape " + y + " : " + split + " -> " + rows(heads * shape.headSize));
  }

  std::string attention(const std::string &x, const std::string &name) {
    int64_t queries = shape.heads * shape.headSize, keys = shape.kvHeads * shape.headSize;
    std::string q, k, v;
    if (shape.fusedQkv) {
      std::string fused = linear(x, name + "qkv", shape.hidden(), queries + 2 * keys, /*inOut=*/true);
      q = part(fused, 0, queries, queries + 2 * keys);
      k = part(fused, queries, keys, queries + 2 * keys);
      v = part(fused, queries + keys, keys, queries + 2 * keys);
    } else {
      q = linear(x, name + "q", shape.hidden(), queries);
      k = linear(x, name + "k", shape.hidden(), keys);
      v = linear(x, name + "v", shape.hidden(), keys);
    }
    if (shape.qkNorm) {
      q = headNorm(q, name + "q_norm", shape.heads);
      k = headNorm(k, name + "k_norm", shape.kvHeads);
    }
    if (!shape.positionTable) {
      q = rope(q, shape.heads);
      k = rope(k, shape.kvHeads);
    }
    std::string text = "tfm.attention " + q + ", " + k + ", " + v;
    std::vector<std::string> types{rows(queries), rows(keys), rows(keys)};
    if (!floatMask.empty()) {
      text += " mask " + floatMask;
      types.push_back(tensor({1, 1, shape.length, shape.length}, "f32"));
    }
    if (!keyMask.empty()) {
      text += " key_mask " + keyMask;
      types.push_back(tensor({shape.batch, shape.length}, "i64"));
    }
    text += " causal top_left {num_heads = " + std::to_string(shape.heads) +
            " : i64, num_kv_heads = " + std::to_string(shape.kvHeads) + " : i64, scale = 0.5 : f64}";
    std::string value = "%v" + std::to_string(next++);
    body << "  " << value << ":2 = " << text << " : (";
    for (size_t i = 0; i < types.size(); ++i)
      body << (i ? ", " : "") << types[i];
    body << ") -> (" << rows(queries) << ", " << tensor({shape.batch, shape.heads, shape.length}, "f32") << ")\n";
    return linear(value + "#0", name + "o", queries, shape.hidden());
  }

  std::string mlp(const std::string &x, const std::string &name) {
    std::string width = rows(shape.width), y;
    if (shape.activation == ModelShape::Activation::Swiglu) {
      std::string gate, up;
      if (shape.fusedGateUp) {
        std::string fused = linear(x, name + "gate_up", shape.hidden(), 2 * shape.width);
        gate = part(fused, 0, shape.width, 2 * shape.width);
        up = part(fused, shape.width, shape.width, 2 * shape.width);
      } else {
        gate = linear(x, name + "gate", shape.hidden(), shape.width);
        up = linear(x, name + "up", shape.hidden(), shape.width);
      }
      y = op("tfm.swiglu " + gate + ", " + up, {width, width}, width);
    } else {
      y = linear(x, name + "up", shape.hidden(), shape.width);
      if (shape.activation == ModelShape::Activation::Gelu) {
        y = op("tfm.gelu " + y + " {kind = 1 : i32}", {width}, width);
      } else {
        // exp(x) + 1: not zero at zero, so that padding has to be masked.
        std::string one = plain("arith.constant dense<1.0> : " + width);
        y = plain("math.exp " + y + " : " + width);
        y = plain("arith.addf " + y + ", " + one + " : " + width);
      }
    }
    return linear(y, name + "down", shape.width, shape.hidden());
  }

  std::string writeLayer(const std::string &x, const std::string &name) {
    std::string full = rows(shape.hidden());
    std::string n = norm(x, name + "norm1", shape.hidden(), {shape.batch, shape.length});
    std::string a = attention(n, name);
    if (shape.parallel) {
      std::string m = mlp(n, name);
      std::string sum = plain("arith.addf " + a + ", " + m + " : " + full);
      return plain("arith.addf " + x + ", " + sum + " : " + full);
    }
    std::string y = plain("arith.addf " + x + ", " + a + " : " + full);
    n = norm(y, name + "norm2", shape.hidden(), {shape.batch, shape.length});
    return plain("arith.addf " + y + ", " + mlp(n, name) + " : " + full);
  }

  const ModelShape &shape;
  std::ostringstream body;
  std::vector<std::string> arguments;
  std::string positions, keyMask, floatMask;
  int next = 0;
};

} // namespace

std::string modelText(const ModelShape &shape) { return Writer(shape).write(); }
