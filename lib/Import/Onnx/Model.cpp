//===- Model.cpp - small queries on the structs of Model.h ----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Import/Onnx/Model.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace drover::onnx {

unsigned byteSize(ElemType type) {
  switch (type) {
  case ElemType::UInt8:
  case ElemType::Int8:
  case ElemType::Bool:
    return 1;
  case ElemType::UInt16:
  case ElemType::Int16:
  case ElemType::Float16:
  case ElemType::BFloat16:
    return 2;
  case ElemType::Float:
  case ElemType::Int32:
  case ElemType::UInt32:
    return 4;
  case ElemType::Int64:
  case ElemType::UInt64:
  case ElemType::Double:
    return 8;
  default:
    return 0;
  }
}

bool isFloat(ElemType type) {
  return type == ElemType::Float || type == ElemType::Double || type == ElemType::Float16 || type == ElemType::BFloat16;
}

bool isUnsigned(ElemType type) {
  return type == ElemType::UInt8 || type == ElemType::UInt16 || type == ElemType::UInt32 || type == ElemType::UInt64 ||
         type == ElemType::Bool;
}

std::string str(ElemType type) {
  static constexpr StringLiteral names[] = {
      "undefined", "float32",    "uint8",      "int8",       "uint16",       "int16",      "int32",
      "int64",     "string",     "bool",       "float16",    "float64",      "uint32",     "uint64",
      "complex64", "complex128", "bfloat16",   "float8e4m3", "float8e4m3fn", "float8e5m2", "float8e5m2fnuz",
      "uint4",     "int4",       "float4e2m1", "float8e8m0", "uint2",        "int2"};
  auto index = static_cast<size_t>(type);
  return index < std::size(names) ? names[index].str() : "type " + std::to_string(static_cast<int32_t>(type));
}

StringRef lookup(const Metadata &metadata, StringRef key) {
  for (const Entry &entry : metadata)
    if (entry.key == key)
      return entry.value;
  return {};
}

int64_t Tensor::count() const {
  int64_t product = 1;
  for (int64_t dim : dims)
    product *= dim;
  return product;
}

const Attribute *Node::attribute(StringRef attributeName) const {
  auto found = find_if(attributes, [&](const Attribute &attribute) { return attribute.name == attributeName; });
  return found == attributes.end() ? nullptr : &*found;
}

StringRef normalizeDomain(StringRef domain) { return domain == "ai.onnx" ? StringRef() : domain; }

int64_t Model::opset(StringRef domain) const {
  for (const OpsetImport &opset : opsets)
    if (opset.domain == domain)
      return opset.version;
  return 0;
}

} // namespace drover::onnx
