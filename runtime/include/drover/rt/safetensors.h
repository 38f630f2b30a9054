//===- safetensors.h - reading and writing safetensors files ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The format: a little-endian u64 header size; a JSON object that gives each tensor's dtype, shape and byte range in
// the buffer that follows; the buffer, covered by the ranges without holes or overlaps.
#ifndef DROVER_RT_SAFETENSORS_H
#define DROVER_RT_SAFETENSORS_H

#include "drover/rt/dtype.h"
#include "drover/rt/mapped_file.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace drover::rt {

struct StoredTensor {
  std::string dtype; // as in the file: F32, BF16, ..
  std::vector<int64_t> shape;
  const uint8_t *data;
  uint64_t bytes;
};

/// The type of a file's dtype, where the runtime computes with it.
std::optional<DType> storedDType(const std::string &dtype);

/// A mapped safetensors file. The constructor throws Error at the first rule of the format that the file breaks.
class SafetensorsFile {
public:
  explicit SafetensorsFile(const std::string &path);

  const std::map<std::string, StoredTensor> &tensors() const { return entries; }
  const std::string &path() const { return file.path(); }

private:
  MappedFile file;
  std::map<std::string, StoredTensor> entries;
};

/// Tensors of one safetensors file, or of the shards that an index.json names.
class TensorFiles {
public:
  explicit TensorFiles(const std::string &path);

  const std::map<std::string, StoredTensor> &tensors() const { return entries; }
  const std::string &path() const { return name; }

private:
  void openIndex();

  std::string name;
  std::vector<SafetensorsFile> files;
  std::map<std::string, StoredTensor> entries;
};

struct TensorToStore {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  const void *data;
};

/// Writes one file, atomically. Throws Error.
void writeSafetensors(const std::string &path, std::vector<TensorToStore> tensors);

/// Writes a file where `path` ends in .safetensors (isTensorFile), else a folder of shards of at most `shardBytes` (but
/// for a larger tensor) with model.safetensors.index.json, which is written last.
bool isTensorFile(const std::string &path);
void writeTensors(const std::string &path, std::vector<TensorToStore> tensors, uint64_t shardBytes = 5000000000);

} // namespace drover::rt

#endif // DROVER_RT_SAFETENSORS_H
