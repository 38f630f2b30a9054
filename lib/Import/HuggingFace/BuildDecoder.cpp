//===- BuildDecoder.cpp - the tfm program of a decoder ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Decoder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <cmath>

using namespace mlir;
using namespace drover;
using namespace drover::huggingface;

namespace {

/// Emits the operations of one model. Parameters become arguments at their first use.
class DecoderBuilder {
public:
  DecoderBuilder(const Decoder &decoder, Location loc)
      : decoder(decoder), loc(loc), builder(loc.getContext()), module(ModuleOp::create(loc)) {}

  OwningOpRef<ModuleOp> build();

private:
  Type f32() { return builder.getF32Type(); }
  RankedTensorType hiddenType(int64_t width) {
    return RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic, width}, f32());
  }
  /// ()[s0, s1] -> (s0, s1, sizes..): batch, sequence and what follows.
  AffineMap shapeMap(ArrayRef<int64_t> sizes) {
    SmallVector<AffineExpr> exprs{builder.getAffineSymbolExpr(0), builder.getAffineSymbolExpr(1)};
    for (int64_t size : sizes)
      exprs.push_back(builder.getAffineConstantExpr(size));
    return AffineMap::get(0, 2, exprs, builder.getContext());
  }

  Value parameter(const Twine &name, ArrayRef<int64_t> shape);
  Value linear(Value input, const Twine &name, int64_t in, int64_t out, bool bias, bool inOut = false);
  Value rmsNorm(Value input, const Twine &name, int64_t size);
  Value layerNorm(Value input, const Twine &name);
  Value rope(Value input);
  Value attention(Value query, Value key, Value value, int64_t layer);
  Value slice(Value input, int64_t offset, int64_t size);
  Value headNorm(Value input, const Twine &name, int64_t heads);
  Value activate(Value input);
  Value add(Value a, Value b) { return arith::AddFOp::create(builder, loc, a, b); }
  Value embedding(const Twine &name);
  Value head(Value input);

  Value llama();
  Value gpt2();
  Value gptNeox();
  Value llamaLayer(Value x, int64_t layer);
  Value gpt2Layer(Value x, int64_t layer);
  Value gptNeoxLayer(Value x, int64_t layer);

  const Decoder &decoder;
  Location loc;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
  Block *block = nullptr;
  /// Of the arguments so far; a function's own list would be copied for each.
  std::vector<NamedAttrList> attributes;
  Value ids, positions, table;
};

Value DecoderBuilder::parameter(const Twine &name, ArrayRef<int64_t> shape) {
  attributes.emplace_back().set(tfm::TfmDialect::kParameterAttr, builder.getStringAttr(name));
  return block->addArgument(RankedTensorType::get(shape, f32()), loc);
}

Value DecoderBuilder::linear(Value input, const Twine &name, int64_t in, int64_t out, bool bias, bool inOut) {
  Value weight = inOut ? parameter(name + ".weight", {in, out}) : parameter(name + ".weight", {out, in});
  Value result = tfm::LinearOp::create(builder, loc, hiddenType(out), input, weight, inOut);
  if (!bias)
    return result;
  return tfm::BiasAddOp::create(builder, loc, result.getType(), result, parameter(name + ".bias", {out}));
}

Value DecoderBuilder::rmsNorm(Value input, const Twine &name, int64_t size) {
  return tfm::RmsNormOp::create(builder, loc, input.getType(), input, parameter(name + ".weight", {size}),
                                APFloat(decoder.normEps), APFloat(decoder.weightOffset));
}

Value DecoderBuilder::layerNorm(Value input, const Twine &name) {
  Value weight = parameter(name + ".weight", {decoder.hidden}), bias = parameter(name + ".bias", {decoder.hidden});
  return tfm::LayerNormOp::create(builder, loc, input.getType(), input, weight, bias, APFloat(decoder.normEps));
}

Value DecoderBuilder::rope(Value input) {
  return tfm::RopeOp::create(builder, loc, input.getType(), input, positions, decoder.headSize, decoder.rotarySize,
                             APFloat(decoder.theta), decoder.scaling, DenseF32ArrayAttr(), APFloat(1.0),
                             /*interleaved=*/false, /*inverse=*/false);
}

Value DecoderBuilder::attention(Value query, Value key, Value value, int64_t layer) {
  double scale = decoder.scaleWeights ? 1.0 / std::sqrt(static_cast<double>(decoder.headSize)) : 1.0;
  if (decoder.scaleByLayer)
    scale /= static_cast<double>(layer + 1);
  IntegerAttr window;
  if (decoder.window && (decoder.windowed.empty() || decoder.windowed[layer]))
    window = builder.getI64IntegerAttr(*decoder.window);
  auto lse = RankedTensorType::get({ShapedType::kDynamic, decoder.heads, ShapedType::kDynamic}, f32());
  auto op = tfm::AttentionOp::create(builder, loc, hiddenType(decoder.heads * decoder.headSize), lse, query, key, value,
                                     Value(), Value(), Value(), Value(), decoder.heads, decoder.kvHeads, APFloat(scale),
                                     tfm::CausalKind::TopLeft, window, FloatAttr(), DenseF32ArrayAttr());
  return op.getResult();
}

Value DecoderBuilder::slice(Value input, int64_t offset, int64_t size) {
  return tfm::SliceOp::create(builder, loc, hiddenType(size), input, ArrayRef<int64_t>{0, 0, offset},
                              ArrayRef<int64_t>{1, 1, 1}, AffineMapAttr(), AffineMapAttr::get(shapeMap({size})));
}

/// RMSNorm over each head: the heads become a dimension for its sake.
Value DecoderBuilder::headNorm(Value input, const Twine &name, int64_t heads) {
  auto split = RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic, heads, decoder.headSize}, f32());
  Value value =
      tfm::ReshapeOp::create(builder, loc, split, input, AffineMapAttr::get(shapeMap({heads, decoder.headSize})));
  value = rmsNorm(value, name, decoder.headSize);
  return tfm::ReshapeOp::create(builder, loc, input.getType(), value,
                                AffineMapAttr::get(shapeMap({heads * decoder.headSize})));
}

Value DecoderBuilder::activate(Value input) {
  if (decoder.activation == Activation::Silu)
    return tfm::SiluOp::create(builder, loc, input.getType(), input);
  return tfm::GeluOp::create(builder, loc, input.getType(), input,
                             decoder.activation == Activation::GeluErf ? tfm::GeluKind::Erf : tfm::GeluKind::Tanh);
}

/// The rows of the token table, which a tied head reads again.
Value DecoderBuilder::embedding(const Twine &name) {
  table = parameter(name, {decoder.vocab, decoder.hidden});
  return tfm::EmbeddingOp::create(builder, loc, hiddenType(decoder.hidden), ids, table, /*offset=*/Value());
}

Value DecoderBuilder::head(Value input) {
  ArrayRef<StringRef> aliases = decoder.headNames;
  Value weight = table;
  if (!decoder.tied) {
    weight = parameter(aliases.front(), {decoder.vocab, decoder.hidden});
    aliases = aliases.drop_front();
  }
  if (!aliases.empty())
    attributes[cast<BlockArgument>(weight).getArgNumber()].set(tfm::TfmDialect::kAliasesAttr,
                                                               builder.getStrArrayAttr(aliases));
  return tfm::LinearOp::create(builder, loc, hiddenType(decoder.vocab), input, weight, false);
}

//===----------------------------------------------------------------------===//
// llama, mistral, qwen2, qwen3, phi3, gemma
//===----------------------------------------------------------------------===//

Value DecoderBuilder::llamaLayer(Value x, int64_t layer) {
  std::string base = "model.layers." + std::to_string(layer);
  int64_t queryWidth = decoder.heads * decoder.headSize, keyWidth = decoder.kvHeads * decoder.headSize;
  Value normed = rmsNorm(x, base + ".input_layernorm", decoder.hidden);
  Value query, key, value;
  if (decoder.packed) {
    Value all = linear(normed, base + ".self_attn.qkv_proj", decoder.hidden, queryWidth + 2 * keyWidth, false);
    query = slice(all, 0, queryWidth);
    key = slice(all, queryWidth, keyWidth);
    value = slice(all, queryWidth + keyWidth, keyWidth);
  } else {
    query = linear(normed, base + ".self_attn.q_proj", decoder.hidden, queryWidth, decoder.qkvBias);
    key = linear(normed, base + ".self_attn.k_proj", decoder.hidden, keyWidth, decoder.qkvBias);
    value = linear(normed, base + ".self_attn.v_proj", decoder.hidden, keyWidth, decoder.qkvBias);
  }
  if (decoder.queryKeyNorm) {
    query = headNorm(query, base + ".self_attn.q_norm", decoder.heads);
    key = headNorm(key, base + ".self_attn.k_norm", decoder.kvHeads);
  }
  Value attended = attention(rope(query), rope(key), value, layer);
  Value hidden = add(x, linear(attended, base + ".self_attn.o_proj", queryWidth, decoder.hidden, decoder.outputBias));

  normed = rmsNorm(hidden, base + ".post_attention_layernorm", decoder.hidden);
  Value gate, up;
  if (decoder.packed) {
    Value both = linear(normed, base + ".mlp.gate_up_proj", decoder.hidden, 2 * decoder.intermediate, false);
    gate = slice(both, 0, decoder.intermediate);
    up = slice(both, decoder.intermediate, decoder.intermediate);
  } else {
    gate = linear(normed, base + ".mlp.gate_proj", decoder.hidden, decoder.intermediate, decoder.mlpBias);
    up = linear(normed, base + ".mlp.up_proj", decoder.hidden, decoder.intermediate, decoder.mlpBias);
  }
  Value inner = decoder.activation == Activation::Silu
                    ? Value(tfm::SwigluOp::create(builder, loc, gate.getType(), gate, up))
                    : Value(arith::MulFOp::create(builder, loc, activate(gate), up));
  return add(hidden, linear(inner, base + ".mlp.down_proj", decoder.intermediate, decoder.hidden, decoder.mlpBias));
}

Value DecoderBuilder::llama() {
  Value x = embedding("model.embed_tokens.weight");
  if (decoder.embeddingScale != 1) {
    Value scale = tfm::FillOp::create(builder, loc, x.getType(), builder.getF32FloatAttr(decoder.embeddingScale),
                                      AffineMapAttr::get(shapeMap({decoder.hidden})));
    x = arith::MulFOp::create(builder, loc, x, scale);
  }
  for (int64_t layer = 0; layer < decoder.layers; ++layer)
    x = llamaLayer(x, layer);
  return head(rmsNorm(x, "model.norm", decoder.hidden));
}

//===----------------------------------------------------------------------===//
// gpt2
//===----------------------------------------------------------------------===//

Value DecoderBuilder::gpt2Layer(Value x, int64_t layer) {
  std::string base = "transformer.h." + std::to_string(layer);
  int64_t width = decoder.hidden;
  Value all = linear(layerNorm(x, base + ".ln_1"), base + ".attn.c_attn", width, 3 * width, true, /*inOut=*/true);
  Value attended = attention(slice(all, 0, width), slice(all, width, width), slice(all, 2 * width, width), layer);
  Value hidden = add(x, linear(attended, base + ".attn.c_proj", width, width, true, true));
  Value inner = linear(layerNorm(hidden, base + ".ln_2"), base + ".mlp.c_fc", width, decoder.intermediate, true, true);
  return add(hidden, linear(activate(inner), base + ".mlp.c_proj", decoder.intermediate, width, true, true));
}

Value DecoderBuilder::gpt2() {
  Value x = embedding("transformer.wte.weight");
  Value positionTable = parameter("transformer.wpe.weight", {decoder.positions, decoder.hidden});
  auto rowType = RankedTensorType::get({1, ShapedType::kDynamic, decoder.hidden}, f32());
  Value rows = tfm::EmbeddingOp::create(builder, loc, rowType, positions, positionTable, /*offset=*/Value());
  x = add(x, tfm::BroadcastOp::create(builder, loc, x.getType(), rows, AffineMapAttr::get(shapeMap({decoder.hidden}))));
  for (int64_t layer = 0; layer < decoder.layers; ++layer)
    x = gpt2Layer(x, layer);
  return head(layerNorm(x, "transformer.ln_f"));
}

//===----------------------------------------------------------------------===//
// gpt_neox
//===----------------------------------------------------------------------===//

Value DecoderBuilder::gptNeoxLayer(Value x, int64_t layer) {
  std::string base = "gpt_neox.layers." + std::to_string(layer);
  int64_t heads = decoder.heads, size = decoder.headSize, width = decoder.hidden;
  Value normed = layerNorm(x, base + ".input_layernorm");
  Value all = linear(normed, base + ".attention.query_key_value", width, 3 * width, decoder.attentionBias);
  // Packed head by head: [heads, 3 * head size].
  auto packedType = RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic, heads, 3 * size}, f32());
  auto partType = RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic, heads, size}, f32());
  Value packed = tfm::ReshapeOp::create(builder, loc, packedType, all, AffineMapAttr::get(shapeMap({heads, 3 * size})));
  auto part = [&](int64_t index) -> Value {
    Value value = tfm::SliceOp::create(builder, loc, partType, packed, ArrayRef<int64_t>{0, 0, 0, index * size},
                                       ArrayRef<int64_t>{1, 1, 1, 1}, AffineMapAttr(),
                                       AffineMapAttr::get(shapeMap({heads, size})));
    return tfm::ReshapeOp::create(builder, loc, hiddenType(width), value, AffineMapAttr::get(shapeMap({width})));
  };
  Value query = rope(part(0)), key = rope(part(1));
  Value attended =
      linear(attention(query, key, part(2), layer), base + ".attention.dense", width, width, decoder.attentionBias);
  Value inputOfMlp = decoder.parallelResidual ? x : add(attended, x);
  Value inner = linear(layerNorm(inputOfMlp, base + ".post_attention_layernorm"), base + ".mlp.dense_h_to_4h", width,
                       decoder.intermediate, true);
  Value mlp = linear(activate(inner), base + ".mlp.dense_4h_to_h", decoder.intermediate, width, true);
  return decoder.parallelResidual ? add(add(mlp, attended), x) : add(mlp, inputOfMlp);
}

Value DecoderBuilder::gptNeox() {
  Value x = embedding("gpt_neox.embed_in.weight");
  for (int64_t layer = 0; layer < decoder.layers; ++layer)
    x = gptNeoxLayer(x, layer);
  return head(layerNorm(x, "gpt_neox.final_layer_norm"));
}

OwningOpRef<ModuleOp> DecoderBuilder::build() {
  MLIRContext *context = builder.getContext();
  module->getOperation()->setAttr(tfm::TfmDialect::kSymbolsAttr,
                                  builder.getStrArrayAttr({"batch_size", "sequence_length"}));
  module->getOperation()->setAttr(tfm::TfmDialect::kInitializerRangeAttr,
                                  builder.getF64FloatAttr(decoder.initializerRange));
  auto idsType = RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic}, builder.getI64Type());
  builder.setInsertionPointToEnd(module->getBody());
  auto function =
      func::FuncOp::create(builder, loc, "model", FunctionType::get(context, idsType, hiddenType(decoder.vocab)));
  attributes.emplace_back().set(tfm::TfmDialect::kInputAttr, builder.getStringAttr("input_ids"));
  attributes.back().set(tfm::TfmDialect::kShapeAttr, AffineMapAttr::get(shapeMap({})));
  function.setResultAttr(0, tfm::TfmDialect::kOutputAttr, builder.getStringAttr("logits"));
  block = function.addEntryBlock();
  builder.setInsertionPointToStart(block);
  ids = block->getArgument(0);
  positions =
      tfm::IotaOp::create(builder, loc, idsType, /*axis=*/1, /*start=*/0, /*step=*/1, AffineMapAttr::get(shapeMap({})));
  Value logits = decoder.family == Decoder::Family::Llama  ? llama()
                 : decoder.family == Decoder::Family::Gpt2 ? gpt2()
                                                           : gptNeox();
  func::ReturnOp::create(builder, loc, logits);
  function.setType(FunctionType::get(context, block->getArgumentTypes(), logits.getType()));
  std::vector<DictionaryAttr> dictionaries;
  for (const NamedAttrList &list : attributes)
    dictionaries.push_back(list.getDictionary(context));
  function.setAllArgAttrs(dictionaries);
  return std::move(module);
}

} // namespace

OwningOpRef<ModuleOp> drover::huggingface::buildDecoder(const Decoder &decoder, Location loc) {
  return DecoderBuilder(decoder, loc).build();
}
