//===- Model.h - an ONNX file in memory -------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// The messages of onnx.proto as plain structs. Strings and the bytes of tensors point into the
// mapped file, so that a model of any size costs only its nodes. The fields are those of IR 13
// (metadata_props, function attributes with defaults, overloads, ..): names as in onnx.proto.
//
//===----------------------------------------------------------------------===//
#ifndef DROVER_IMPORT_ONNX_MODEL_H
#define DROVER_IMPORT_ONNX_MODEL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace drover::onnx {

/// TensorProto.DataType.
enum class ElemType : int32_t {
  Undefined = 0,
  Float = 1,
  UInt8 = 2,
  Int8 = 3,
  UInt16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Double = 11,
  UInt32 = 12,
  UInt64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  BFloat16 = 16
};

/// Bytes of one element as stored in raw_data; 0 for types that drover has no use for.
unsigned byteSize(ElemType type);
bool isFloat(ElemType type);
bool isUnsigned(ElemType type);
inline bool isInteger(ElemType type) { return byteSize(type) && !isFloat(type); }
/// "float16", "int64", ..: the names of the ONNX documentation.
std::string str(ElemType type);

struct Entry {
  llvm::StringRef key, value;
};
using Metadata = std::vector<Entry>;
/// The value of `key`, empty where absent.
llvm::StringRef lookup(const Metadata &metadata, llvm::StringRef key);

struct Tensor {
  llvm::StringRef name;
  llvm::SmallVector<int64_t, 4> dims;
  ElemType type = ElemType::Undefined;
  /// raw_data, or the packed bytes of float_data and double_data, which have the same layout.
  std::optional<llvm::StringRef> raw;
  /// int32_data, int64_data and uint64_data; also floats that were not packed, as their bits.
  std::vector<int64_t> integers;
  bool isExternal = false;
  Metadata externalData, metadata;

  /// Number of elements. The reader has checked that the product does not overflow.
  int64_t count() const;
  uint64_t bytes() const { return count() * byteSize(type); }
};

struct Graph;

struct Attribute {
  enum Type { Undefined, Float, Int, String, TensorType, GraphType, Floats, Ints, Strings, Tensors, Graphs };
  llvm::StringRef name, refName;
  int32_t type = Undefined;
  float f = 0;
  int64_t i = 0;
  llvm::StringRef s;
  std::shared_ptr<Tensor> t;
  std::shared_ptr<Graph> g;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<llvm::StringRef> strings;
};

struct Node {
  std::vector<llvm::StringRef> inputs, outputs;
  llvm::StringRef name, opType, domain, overload;
  std::vector<Attribute> attributes;
  Metadata metadata;

  const Attribute *attribute(llvm::StringRef attributeName) const;
};

struct Dim {
  /// At most one of them; both empty where the size is not known.
  std::optional<int64_t> value;
  llvm::StringRef param;
};

struct ValueInfo {
  llvm::StringRef name;
  enum Kind { None, TensorKind, Other } kind = None;
  ElemType type = ElemType::Undefined;
  /// Nothing where the rank is not known.
  std::optional<llvm::SmallVector<Dim, 4>> shape;
};

struct Graph {
  llvm::StringRef name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs, outputs, valueInfos;
  Metadata metadata;
};

struct OpsetImport {
  llvm::StringRef domain;
  int64_t version = 0;
};

struct Function {
  llvm::StringRef name, domain, overload;
  std::vector<llvm::StringRef> inputs, outputs;
  /// Attributes without a default, and those with one.
  std::vector<llvm::StringRef> attributes;
  std::vector<Attribute> defaults;
  std::vector<Node> nodes;
  std::vector<OpsetImport> opsets;
};

struct Model {
  int64_t irVersion = 0;
  llvm::StringRef producerName, producerVersion;
  std::vector<OpsetImport> opsets;
  Graph graph;
  Metadata metadata;
  std::vector<Function> functions;

  /// The file that the StringRefs point into, and its place.
  std::string path;
  std::shared_ptr<llvm::MemoryBuffer> buffer;

  /// The version of a domain ("ai.onnx" is ""); 0 where the file does not import it.
  int64_t opset(llvm::StringRef domain) const;
};

/// "ai.onnx" and "" are one domain.
llvm::StringRef normalizeDomain(llvm::StringRef domain);

/// Maps and decodes a file. The error names the file and says where decoding stopped.
llvm::Expected<Model> readModel(llvm::StringRef path);
/// Decodes bytes in memory (for tests; `buffer` is kept).
llvm::Expected<Model> readModel(std::shared_ptr<llvm::MemoryBuffer> buffer, llvm::StringRef path);

/// A range of bytes of a file that holds a tensor's elements, little-endian and row-major.
struct DataRange {
  /// Relative to the model's folder.
  std::string file;
  uint64_t offset = 0, bytes = 0;
};

/// Finds and reads the values of tensors; maps external files on first use.
class TensorData {
public:
  explicit TensorData(const Model &model) : model(model) {}

  /// The little-endian bytes, `tensor.bytes()` of them. Values that the file stores as varints are
  /// decoded into memory owned by this object.
  llvm::Expected<llvm::StringRef> bytes(const Tensor &tensor);
  /// Where the bytes are in a file; nothing where they are not in one piece or not plain.
  llvm::Expected<std::optional<DataRange>> range(const Tensor &tensor);

private:
  llvm::Expected<llvm::StringRef> externalBytes(const Tensor &tensor, DataRange *range);

  const Model &model;
  llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> files;
  llvm::StringMap<std::string> decoded;
};

} // namespace drover::onnx

#endif // DROVER_IMPORT_ONNX_MODEL_H
