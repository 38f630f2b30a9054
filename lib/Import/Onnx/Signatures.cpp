//===- Signatures.cpp - what the standard lets a node have ----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Handlers read the inputs and attributes that they know; a node with others would silently mean something else.
// com.microsoft is left out: its operators gained attributes within one version of the domain.
//
//===----------------------------------------------------------------------===//
#include "Operators.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>

using namespace llvm;

namespace drover::onnx {
namespace {

constexpr unsigned any = std::numeric_limits<unsigned>::max();

struct Signature {
  StringLiteral opType;
  unsigned required, inputs; // the first ones, of which none may be left out; at most
  unsigned outputs;          // at most
  StringLiteral attributes;  // by blanks
};

/// ai.onnx, of all its versions from 11 to 28 together, in the order of names. A test holds the table against the
/// schemas of the onnx package.
constexpr Signature signatures[] = {
    {"Abs", 1, 1, 1, ""},
    {"Add", 2, 2, 1, ""},
    {"And", 2, 2, 1, ""},
    {"ArgMax", 1, 1, 1, "axis keepdims select_last_index"},
    {"ArgMin", 1, 1, 1, "axis keepdims select_last_index"},
    {"Attention", 3, 7, 4,
     "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size scale softcap "
     "softmax_precision"},
    {"BitwiseAnd", 2, 2, 1, ""},
    {"BitwiseNot", 1, 1, 1, ""},
    {"BitwiseOr", 2, 2, 1, ""},
    {"BitwiseXor", 2, 2, 1, ""},
    {"Cast", 1, 1, 1, "round_mode saturate to"},
    {"CastLike", 2, 2, 1, "round_mode saturate"},
    {"Ceil", 1, 1, 1, ""},
    {"Clip", 1, 3, 1, ""},
    {"Concat", 1, any, 1, "axis"},
    {"Constant", 0, 0, 1,
     "sparse_value value value_float value_floats value_int value_ints value_string value_strings"},
    {"ConstantOfShape", 1, 1, 1, "value"},
    {"Cos", 1, 1, 1, ""},
    {"CumSum", 2, 2, 1, "exclusive reverse"},
    {"Div", 2, 2, 1, ""},
    {"Dropout", 1, 3, 2, "ratio seed"},
    {"Equal", 2, 2, 1, ""},
    {"Erf", 1, 1, 1, ""},
    {"Exp", 1, 1, 1, ""},
    {"Expand", 2, 2, 1, ""},
    {"Flatten", 1, 1, 1, "axis"},
    {"Floor", 1, 1, 1, ""},
    {"Gather", 2, 2, 1, "axis"},
    {"GatherElements", 2, 2, 1, "axis"},
    {"GatherND", 2, 2, 1, "batch_dims"},
    {"Gelu", 1, 1, 1, "approximate"},
    {"Gemm", 2, 3, 1, "alpha beta transA transB"},
    {"Greater", 2, 2, 1, ""},
    {"GreaterOrEqual", 2, 2, 1, ""},
    {"HardSigmoid", 1, 1, 1, "alpha beta"},
    {"Identity", 1, 1, 1, ""},
    {"IsInf", 1, 1, 1, "detect_negative detect_positive"},
    {"IsNaN", 1, 1, 1, ""},
    {"LayerNormalization", 2, 3, 3, "axis epsilon stash_type"},
    {"LeakyRelu", 1, 1, 1, "alpha"},
    {"Less", 2, 2, 1, ""},
    {"LessOrEqual", 2, 2, 1, ""},
    {"Log", 1, 1, 1, ""},
    {"LogSoftmax", 1, 1, 1, "axis"},
    {"MatMul", 2, 2, 1, ""},
    {"Max", 1, any, 1, ""},
    {"Mean", 1, any, 1, ""},
    {"Min", 1, any, 1, ""},
    {"Mod", 2, 2, 1, "fmod"},
    {"Mul", 2, 2, 1, ""},
    {"Neg", 1, 1, 1, ""},
    {"NegativeLogLikelihoodLoss", 2, 3, 1, "ignore_index reduction"},
    {"Not", 1, 1, 1, ""},
    {"Or", 2, 2, 1, ""},
    {"Pad", 2, 4, 1, "mode"},
    {"Pow", 2, 2, 1, ""},
    {"RMSNormalization", 2, 2, 1, "axis epsilon stash_type"},
    {"Range", 3, 3, 1, "stash_type"},
    {"Reciprocal", 1, 1, 1, ""},
    {"ReduceL1", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"ReduceL2", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"ReduceMax", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"ReduceMean", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"ReduceMin", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"ReduceProd", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"ReduceSum", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"ReduceSumSquare", 1, 2, 1, "axes keepdims noop_with_empty_axes"},
    {"Relu", 1, 1, 1, ""},
    {"Reshape", 2, 2, 1, "allowzero"},
    {"RotaryEmbedding", 3, 4, 1, "interleaved num_heads rotary_embedding_dim"},
    {"Round", 1, 1, 1, ""},
    {"ScatterND", 3, 3, 1, "reduction"},
    {"Shape", 1, 1, 1, "end start"},
    {"Sigmoid", 1, 1, 1, ""},
    {"Sign", 1, 1, 1, ""},
    {"Sin", 1, 1, 1, ""},
    {"Size", 1, 1, 1, ""},
    {"Slice", 3, 5, 1, ""},
    {"Softmax", 1, 1, 1, "axis"},
    {"SoftmaxCrossEntropyLoss", 2, 3, 2, "ignore_index reduction"},
    {"Softplus", 1, 1, 1, ""},
    {"Split", 1, 2, any, "axis num_outputs split"},
    {"Sqrt", 1, 1, 1, ""},
    {"Squeeze", 1, 2, 1, "axes"},
    {"Sub", 2, 2, 1, ""},
    {"Sum", 1, any, 1, ""},
    {"SwiGLU", 2, 2, 1, "alpha"},
    {"Swish", 1, 1, 1, "alpha"},
    {"Tanh", 1, 1, 1, ""},
    {"Tile", 2, 2, 1, ""},
    {"Transpose", 1, 1, 1, "perm"},
    {"Trilu", 1, 2, 1, "upper"},
    {"Unsqueeze", 1, 2, 1, "axes"},
    {"Where", 3, 3, 1, ""},
    {"Xor", 2, 2, 1, ""},
};

} // namespace

std::string checkSignature(const Node &node) {
  const Signature *found = lower_bound(
      signatures, node.opType, [](const Signature &signature, StringRef name) { return signature.opType < name; });
  if (!node.domain.empty() || found == std::end(signatures) || found->opType != node.opType)
    return "";
  for (unsigned index = 0; index < found->required; ++index)
    if (index >= node.inputs.size() || node.inputs[index].empty())
      return ("input " + Twine(index) + " is missing, expected at least " + Twine(found->required)).str();
  if (node.inputs.size() > found->inputs)
    return ("expected at most " + Twine(found->inputs) + " inputs, not " + Twine(node.inputs.size())).str();
  if (node.outputs.size() > found->outputs)
    return ("expected at most " + Twine(found->outputs) + " outputs, not " + Twine(node.outputs.size())).str();
  SmallVector<StringRef> known;
  found->attributes.split(known, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (const Attribute &attribute : node.attributes)
    if (!is_contained(known, attribute.name))
      return ("unknown attribute '" + attribute.name + "', known " +
              (known.empty() ? std::string("is none") : "are " + join(known, ", ")))
          .str();
  return "";
}

} // namespace drover::onnx
