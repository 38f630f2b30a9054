//===- ParameterNames.cpp - the model's own parameter names ---------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Exporters fold a transpose into a weight and call the result `val_109` or `onnx::MatMul_1117`.
// What is left of the name: the dynamo exporter writes, on each node, the scope of its module
// (`pkg.torch.onnx.name_scopes`) and the FX node with its placeholders (`pkg.torch.onnx.fx_node`),
// and on the graph what each placeholder is (`graph_signature`). TorchScript names the node by its
// scope: `/model/layers.0/self_attn/q_proj/MatMul`.
//
//===----------------------------------------------------------------------===//
#include "Parameters.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace drover::onnx {

/// The text between the next two quotes of `text`, which is advanced behind it.
static StringRef takeQuoted(StringRef &text) {
  text = text.substr(text.find_first_of("'\""));
  if (text.empty())
    return {};
  char quote = text.front();
  text = text.drop_front();
  size_t end = text.find(quote);
  StringRef inside = text.take_front(end);
  text = end == StringRef::npos ? StringRef() : text.drop_front(end + 1);
  return inside;
}

ParameterNames::ParameterNames(const Model &model) {
  // `p_model_norm_weight: PARAMETER target='model.norm.weight'`, one a line.
  auto readSignature = [&](StringRef text) {
    SmallVector<StringRef> lines;
    text.split(lines, '\n');
    for (StringRef line : lines) {
      auto [placeholder, rest] = line.trim().split(": ");
      bool parameter = rest.starts_with("PARAMETER"), buffer = rest.starts_with("BUFFER");
      if (!parameter && !buffer)
        continue;
      StringRef target = takeQuoted(rest);
      if (target.empty())
        continue;
      (parameter ? parameters : buffers).insert(target);
      if (parameter)
        targets[placeholder] = target.str();
    }
  };
  for (const Metadata *metadata : {&model.graph.metadata, &model.metadata})
    for (const Entry &entry : *metadata)
      if (entry.key.contains("graph_signature"))
        readSignature(entry.value);
}

ParameterNames::Kind ParameterNames::kindOf(StringRef name) const {
  if (parameters.contains(name))
    return Kind::Parameter;
  if (buffers.contains(name))
    return Kind::Buffer;
  // Without a signature a module path that ends like a parameter is one.
  StringRef leaf = name.rsplit('.').second;
  if (parameters.empty() && isOwn(name) && (leaf == "weight" || leaf == "bias" || leaf == "gamma" || leaf == "beta"))
    return Kind::Parameter;
  for (StringRef mark : {"inv_freq", "cos_cached", "sin_cached", "cos_cache", "sin_cache", "rotary_emb", "causal_mask",
                         "masked_bias", "attn.bias", "attention.bias"})
    if (name.ends_with(mark))
      return Kind::Buffer;
  return Kind::Unknown;
}

bool ParameterNames::isOwn(StringRef name) {
  if (!name.contains('.') || name.contains('/') || name.contains(':') || isDigit(name.front()))
    return false;
  return all_of(name, [](char c) { return isAlnum(c) || c == '.' || c == '_' || c == '-'; });
}

bool ParameterNames::isMadeUp(StringRef name) const {
  if (hasSignature())
    return !parameters.contains(name) && !buffers.contains(name);
  StringRef number = name;
  number.consume_front("val_");
  return name.contains('/') || name.contains("::") || all_of(number, isDigit);
}

/// `model.layers.0.self_attn.q_proj`, empty where the node does not say.
std::string ParameterNames::scopeOf(const Node &node) const {
  // ['', 'model', 'model.norm', 'mul_3']: the last but one is the module.
  if (StringRef scopes = lookup(node.metadata, "pkg.torch.onnx.name_scopes"); !scopes.empty()) {
    std::vector<StringRef> list;
    while (scopes.contains('\''))
      list.push_back(takeQuoted(scopes));
    return list.size() >= 2 ? list[list.size() - 2].str() : "";
  }
  StringRef name = node.name;
  if (!name.consume_front("/") || !name.contains('/'))
    return "";
  std::string scope = name.rsplit('/').first.str();
  std::replace(scope.begin(), scope.end(), '/', '.');
  return scope;
}

/// The parameter among the placeholders of the FX node that the operand in `role` can be.
std::string ParameterNames::fromMetadata(const Node &node, Role role) const {
  StringRef text = lookup(node.metadata, "pkg.torch.onnx.fx_node");
  std::string found;
  while (!text.empty()) {
    text = text.substr(text.find('%'));
    if (text.empty())
      break;
    text = text.drop_front();
    StringRef word = text.take_while([](char c) { return isAlnum(c) || c == '_'; });
    text = text.drop_front(word.size());
    auto target = targets.find(word);
    if (target == targets.end())
      continue;
    bool isBias = StringRef(target->second).ends_with("bias");
    if (isBias == (role == Role::Bias) && found.empty())
      found = target->second;
  }
  return found;
}

ParameterNames::Name ParameterNames::nameFor(const Node &node, StringRef name, Role role, bool shared) const {
  Name result;
  bool own = parameters.contains(name) || (parameters.empty() && isOwn(name));
  // What has no role has no name but its own.
  if (role == Role::Other && !own) {
    result.text = name.str();
    return result;
  }
  result.folded = !own;
  std::string scope = scopeOf(node), direct = fromMetadata(node, role);
  result.direct = !direct.empty();
  StringRef leaf = own ? name.rsplit('.').second : role == Role::Bias ? "bias" : "weight";
  std::string scoped = scope.empty() ? "" : scope + "." + leaf.str();
  if (!parameters.empty()) {
    // A tied table carries one name of several; its module says which one this use is.
    if (parameters.contains(scoped))
      result.text = scoped;
    else if (own)
      result.text = name.str();
    else
      result.text = direct.empty() ? scoped : direct;
  } else if (own && (!shared || scoped.empty() || name.rsplit('.').first == scope)) {
    result.text = name.str();
  } else {
    result.text = scoped;
  }
  if (result.text.empty())
    result.text = name.str();
  // The builder of onnxruntime-genai: model.layers.0.attn.q_proj.MatMul.weight, stored [in, out].
  if (size_t at = StringRef(result.text).find(".MatMul.weight"); at != StringRef::npos) {
    result.text = result.text.substr(0, at) + ".weight";
    result.folded = true;
    result.direct = true;
  }
  return result;
}

} // namespace drover::onnx
