//===- ReadDecoder.cpp - from config.json to a decoder ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Defaults are those of Hugging Face transformers' configuration classes, which leave out of the file
// what equals them.
#include "Decoder.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace mlir;
using namespace drover;
using namespace drover::huggingface;

namespace {

struct FamilyName {
  StringRef modelType, architecture;
};
constexpr FamilyName kFamilies[] = {
    {"gemma", "GemmaForCausalLM"}, {"gpt2", "GPT2LMHeadModel"},       {"gpt_neox", "GPTNeoXForCausalLM"},
    {"llama", "LlamaForCausalLM"}, {"mistral", "MistralForCausalLM"}, {"phi3", "Phi3ForCausalLM"},
    {"qwen2", "Qwen2ForCausalLM"}, {"qwen3", "Qwen3ForCausalLM"},
};

/// The model type, from model_type or, without it, from architectures; both must agree.
std::string readModelType(Config &config) {
  std::string type = config.has("model_type") ? config.text("model_type") : "";
  std::string supported;
  for (const FamilyName &family : kFamilies)
    supported += (supported.empty() ? "" : ", ") + family.modelType.str();
  std::vector<std::string> architectures = config.texts("architectures");
  std::string architecture = architectures.empty() ? "" : architectures.front();
  if (config.failed())
    return "";
  if (type.empty() && architecture.empty()) {
    config.error("model_type", "config is missing 'model_type', one of " + supported);
    return "";
  }
  for (const FamilyName &family : kFamilies) {
    if (type.empty() ? family.architecture != architecture : family.modelType != type)
      continue;
    if (!architecture.empty() && architecture != family.architecture)
      config.error("model_type", "config says model_type '" + family.modelType + "' but architecture '" + architecture +
                                     "'; a causal language model expects '" + family.architecture + "'");
    return family.modelType.str();
  }
  config.error(type.empty() ? "architectures" : "model_type", "config has an unsupported model '" +
                                                                  (type.empty() ? architecture : type) +
                                                                  "'; supported are " + supported);
  return "";
}

Activation readActivation(Config &config, StringRef key, StringRef fallback) {
  std::string name = config.text(key, fallback);
  std::optional<Activation> activation =
      llvm::StringSwitch<std::optional<Activation>>(name)
          .Cases({"silu", "swish"}, Activation::Silu)
          .Case("gelu", Activation::GeluErf)
          .Cases({"gelu_new", "gelu_pytorch_tanh", "gelu_fast"}, Activation::GeluTanh)
          .Default(std::nullopt);
  if (!activation)
    config.error(key, "config expects '" + key + "' to be silu, gelu, gelu_new, gelu_pytorch_tanh or gelu_fast, not '" +
                          name + "'");
  return activation.value_or(Activation::Silu);
}

/// Gemma's code takes the tanh form where the key says gelu. Versions of it before 5 read `hidden_activation` first.
Activation readGemmaActivation(Config &config) {
  std::string name = config.text("hidden_act", "gelu_pytorch_tanh");
  Activation activation = name == "gelu" ? Activation::GeluTanh : readActivation(config, "hidden_act", name);
  if (config.has("hidden_activation") && readActivation(config, "hidden_activation", name) != activation)
    config.error("hidden_activation", "config has 'hidden_activation' '" + config.text("hidden_activation") +
                                          "' but 'hidden_act' '" + name + "', which for Gemma is another function");
  return activation;
}

double readEpsilon(Config &config, StringRef key, double fallback) {
  double epsilon = config.number(key, fallback);
  if (!(epsilon >= 0 && epsilon < 1))
    config.error(key, "config expects a norm epsilon from 0 to below 1 in '" + key + "', not " + textOf(epsilon));
  return epsilon;
}

/// GPT-NeoX calls its head embed_out, from transformers 5.14 on lm_head as all others do. The file says
/// which version wrote it; checkpoints of either are read.
bool hasRenamedHead(Config &config) {
  SmallVector<StringRef> parts;
  std::string version = config.text("transformers_version", "");
  StringRef(version).split(parts, '.');
  unsigned major, minor;
  if (parts.size() < 2 || parts[0].getAsInteger(10, major) || parts[1].getAsInteger(10, minor))
    return true;
  return std::pair(major, minor) >= std::pair(5u, 14u);
}

/// The sizes that all families have, and that they fit together.
void checkHeads(Config &config, const Decoder &decoder, bool headSizeGiven, StringRef headsKey, StringRef layersKey) {
  if (config.failed())
    return;
  if (!headSizeGiven && decoder.hidden % decoder.heads)
    config.error(headsKey, "config expects the number of heads (" + Twine(decoder.heads) +
                               ") to divide the hidden size (" + Twine(decoder.hidden) +
                               ") where no head size is given");
  // A program is as long as its layers: beyond any model there is, the number is a mistake.
  constexpr int64_t maxLayers = 10000;
  if (decoder.layers > maxLayers)
    config.error(layersKey, "config expects at most " + Twine(maxLayers) + " layers, not " + Twine(decoder.layers));
  if (decoder.heads * decoder.headSize >= int64_t(1) << 31)
    config.error(config.has("head_dim") ? "head_dim" : headsKey,
                 "config expects heads times head size below 2^31, not " + Twine(decoder.heads) + " * " +
                     Twine(decoder.headSize));
  if (decoder.heads % decoder.kvHeads)
    config.error("num_key_value_heads", "config expects the number of key/value heads (" + Twine(decoder.kvHeads) +
                                            ") to divide the number of heads (" + Twine(decoder.heads) + ")");
}

/// Which layers have the window: what `layer_types` lists, else those from max_window_layers on.
void readLayerTypes(Config &config, Decoder &decoder, bool byLayer) {
  std::vector<std::string> types = config.texts("layer_types");
  if (!config.failed() && !types.empty() && static_cast<int64_t>(types.size()) != decoder.layers)
    return config.error("layer_types", "config expects 'layer_types' to have one entry a layer (" +
                                           Twine(decoder.layers) + "), not " + Twine(types.size()));
  bool sliding = false, full = false;
  for (const std::string &type : types) {
    if (type != "sliding_attention" && type != "full_attention")
      return config.error("layer_types",
                          "config expects 'layer_types' to hold full_attention or sliding_attention, not '" + type +
                              "'");
    (type == "sliding_attention" ? sliding : full) = true;
  }
  if (sliding && !decoder.window)
    return config.error("layer_types",
                        Twine("config has layers of sliding_attention but no window; expected is 'sliding_window'") +
                            (byLayer ? " with 'use_sliding_window' true" : ""));
  if (full && decoder.window && !byLayer)
    return config.error("layer_types",
                        "config has layers of full_attention, but 'sliding_window' holds for all layers of this model");
  if (!decoder.window || !byLayer)
    return;
  int64_t first = config.count("max_window_layers", 28);
  for (int64_t layer = 0; layer < decoder.layers; ++layer)
    decoder.windowed.push_back(types.empty() ? layer >= first : types[layer] == "sliding_attention");
}

void readLlamaFamily(Config &config, Decoder &decoder, StringRef type, MLIRContext *context) {
  bool gemma = type == "gemma";
  decoder.family = Decoder::Family::Llama;
  decoder.vocab = config.size("vocab_size");
  decoder.hidden = config.size("hidden_size");
  decoder.layers = config.size("num_hidden_layers");
  decoder.heads = config.size("num_attention_heads");
  // null says as many as queries; where nothing is said, some families have a number.
  int64_t usualKvHeads = type == "mistral" ? 8 : type == "qwen2" || type == "qwen3" ? 32 : gemma ? 16 : decoder.heads;
  decoder.kvHeads =
      config.size("num_key_value_heads", config.contains("num_key_value_heads") ? decoder.heads : usualKvHeads);
  decoder.intermediate = config.size("intermediate_size");
  bool headSizeGiven = config.has("head_dim") || gemma || type == "qwen3";
  int64_t defaultHead = gemma ? 256 : type == "qwen3" ? 128 : std::max<int64_t>(1, decoder.hidden / decoder.heads);
  decoder.headSize = config.size("head_dim", defaultHead);
  checkHeads(config, decoder, headSizeGiven, "num_attention_heads", "num_hidden_layers");
  decoder.normEps = readEpsilon(config, "rms_norm_eps", type == "phi3" ? 1e-5 : 1e-6);
  decoder.tied = config.flag("tie_word_embeddings", gemma);
  decoder.activation = gemma ? readGemmaActivation(config) : readActivation(config, "hidden_act", "silu");
  RopeKeys rope;
  rope.isPartial = type == "phi3";
  rope.scales = type != "phi3";
  readRope(config, decoder, context, rope);

  bool attentionBias = config.flag("attention_bias", false);
  decoder.qkvBias = type == "qwen2" || (type != "mistral" && type != "phi3" && attentionBias);
  decoder.outputBias = type != "qwen2" && type != "mistral" && type != "phi3" && attentionBias;
  decoder.mlpBias = type == "llama" && config.flag("mlp_bias", false);
  decoder.queryKeyNorm = type == "qwen3";
  decoder.packed = type == "phi3";
  if (gemma) {
    decoder.weightOffset = 1;
    decoder.embeddingScale = std::sqrt(static_cast<double>(decoder.hidden));
  }
  // A window is on by default only in Mistral; Qwen asks for it, from a layer on. null is none.
  bool qwen = type == "qwen2" || type == "qwen3";
  if (type == "mistral" || type == "phi3" || (qwen && config.flag("use_sliding_window", false))) {
    if (config.has("sliding_window"))
      decoder.window = config.size("sliding_window");
    else if (!config.contains("sliding_window") && type != "phi3")
      decoder.window = 4096;
  }
  readLayerTypes(config, decoder, qwen);
}

/// GPT-2 has its own names for what others call `usual`; Hugging Face takes either.
int64_t sizeOfEither(Config &config, StringRef own, StringRef usual, std::optional<int64_t> fallback = {}) {
  if (!config.has(usual))
    return config.size(own, fallback);
  int64_t size = config.size(usual);
  if (config.size(own, size) != size)
    config.error(usual, "config has '" + usual + "' " + Twine(size) + " but '" + own + "' " + Twine(config.size(own)) +
                            ", which name one size");
  return size;
}

void readGpt2(Config &config, Decoder &decoder) {
  decoder.family = Decoder::Family::Gpt2;
  decoder.vocab = config.size("vocab_size");
  decoder.hidden = sizeOfEither(config, "n_embd", "hidden_size");
  decoder.layers = sizeOfEither(config, "n_layer", "num_hidden_layers");
  decoder.heads = decoder.kvHeads = sizeOfEither(config, "n_head", "num_attention_heads");
  decoder.headSize = std::max<int64_t>(1, decoder.hidden / decoder.heads);
  checkHeads(config, decoder, false, "n_head", "n_layer");
  decoder.intermediate = config.size("n_inner", 4 * decoder.hidden);
  decoder.positions = sizeOfEither(config, "n_positions", "max_position_embeddings", 1024);
  decoder.normEps = readEpsilon(config, "layer_norm_epsilon", 1e-5);
  decoder.activation = readActivation(config, "activation_function", "gelu_new");
  decoder.tied = config.flag("tie_word_embeddings", true);
  decoder.scaleByLayer = config.flag("scale_attn_by_inverse_layer_idx", false);
  decoder.scaleWeights = config.flag("scale_attn_weights", true);
  if (config.flag("add_cross_attention", false))
    config.error("add_cross_attention", "config has add_cross_attention; supported are decoder-only models");
}

void readGptNeox(Config &config, Decoder &decoder, MLIRContext *context) {
  decoder.family = Decoder::Family::GptNeox;
  decoder.vocab = config.size("vocab_size");
  decoder.hidden = config.size("hidden_size");
  decoder.layers = config.size("num_hidden_layers");
  decoder.heads = decoder.kvHeads = config.size("num_attention_heads");
  decoder.headSize = std::max<int64_t>(1, decoder.hidden / decoder.heads);
  checkHeads(config, decoder, false, "num_attention_heads", "num_hidden_layers");
  if (config.size("head_dim", decoder.headSize) != decoder.headSize)
    config.error("head_dim", "config has 'head_dim' " + Twine(config.size("head_dim")) + ", where this model has " +
                                 Twine(decoder.headSize) + ", its hidden size over its heads");
  decoder.intermediate = config.size("intermediate_size");
  decoder.normEps = readEpsilon(config, "layer_norm_eps", 1e-5);
  decoder.activation = readActivation(config, "hidden_act", "gelu");
  decoder.tied = config.flag("tie_word_embeddings", false);
  decoder.headNames = {"embed_out.weight", "lm_head.weight"};
  if (hasRenamedHead(config))
    std::swap(decoder.headNames[0], decoder.headNames[1]);
  decoder.parallelResidual = config.flag("use_parallel_residual", true);
  decoder.attentionBias = config.flag("attention_bias", true);
  RopeKeys rope;
  rope.theta = "rotary_emb_base";
  rope.fraction = "rotary_pct";
  rope.fractionDefault = 0.25;
  rope.isPartial = true;
  readRope(config, decoder, context, rope);
}

/// What would make another function of the model.
void refuseOthers(Config &config) {
  if (config.has("quantization_config"))
    config.error("quantization_config",
                 "config has a quantization_config; supported are models in float32, float16 or bfloat16");
  if (config.flag("use_bidirectional_attention", false))
    config.error("use_bidirectional_attention",
                 "config has use_bidirectional_attention; supported is causal attention");
  if (!config.flag("is_causal", true))
    config.error("is_causal", "config has 'is_causal' false; supported is causal attention");
  for (StringRef key : {"num_local_experts", "num_experts", "n_routed_experts"})
    if (double experts = config.number(key, 0))
      config.error(key, "config has '" + key + "' " + textOf(experts) + "; supported are models with one MLP a layer");
}

/// Of what the program does not depend on: a wrong value is still a mistake in the file.
void checkOthers(Config &config) {
  for (StringRef key : {"max_position_embeddings", "n_ctx", "n_positions", "original_max_position_embeddings",
                        "pretraining_tp", "sliding_window"})
    if (config.has(key))
      config.size(key);
  config.count("max_window_layers", 0);
  for (StringRef key : {"use_cache", "use_sliding_window"})
    config.flag(key, false);
  constexpr llvm::StringLiteral types[] = {"float32", "float16", "bfloat16"};
  for (StringRef key : {"dtype", "torch_dtype"})
    if (std::string type = config.text(key, "float32"); !llvm::is_contained(types, type))
      config.error(key,
                   "config expects '" + key + "' to be " + llvm::join(ArrayRef(types), ", ") + ", not '" + type + "'");
}

/// Dropout is no part of the program. A model is trained without it, as it is evaluated.
void reportDropout(Config &config) {
  std::string found;
  for (StringRef key : {"attention_dropout", "attn_pdrop", "embd_pdrop", "hidden_dropout", "resid_pdrop"})
    if (double rate = config.rate(key, 0))
      found += (Twine(found.empty() ? "" : ", ") + key + " " + textOf(rate)).str();
  if (!found.empty() && !config.failed())
    emitWarning(config.locOf("")) << "config has dropout (" << found << "), without which drover trains";
}

} // namespace

Decoder drover::huggingface::readDecoder(Config &config, MLIRContext *context) {
  Decoder decoder;
  std::string type = readModelType(config);
  refuseOthers(config);
  checkOthers(config);
  decoder.initializerRange = config.number("initializer_range", 0.02);
  if (config.failed())
    return decoder;
  if (type == "gpt2")
    readGpt2(config, decoder);
  else if (type == "gpt_neox")
    readGptNeox(config, decoder, context);
  else
    readLlamaFamily(config, decoder, type, context);
  if (!(decoder.initializerRange >= 0))
    config.error("initializer_range",
                 "config expects an initializer_range that is not negative, not " + textOf(decoder.initializerRange));
  reportDropout(config);
  return decoder;
}
