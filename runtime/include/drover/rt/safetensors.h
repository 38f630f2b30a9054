//===- safetensors.h - reading and writing safetensors files ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The format: a little-endian u64 header size; a JSON object that gives each tensor's dtype, shape and byte range in
// the buffer that follows; the buffer, covered by the ranges without holes or overlaps.
#ifndef DROVER_RT_SAFETENSORS_H
#define DROVER_RT_SAFETENSORS_H

#include "drover/rt/atomic_file.h"
#include "drover/rt/dtype.h"
#include "drover/rt/mapped_file.h"
#include <map>
#include <memory>
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

struct TensorSpec {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
};

struct TensorToStore : TensorSpec {
  TensorToStore(std::string name, DType dtype, std::vector<int64_t> shape, const void *data)
      : TensorSpec{std::move(name), dtype, std::move(shape)}, data(data) {}
  const void *data;
};

/// True where `path` ends in .safetensors: it is one file then, else a folder of shards.
bool isTensorFile(const std::string &path);

/// Writes tensors in any order, one at a time, so that never all need be in memory: into a file, or into a folder of
/// shards of at most `shardBytes` (but for a larger tensor) with model.safetensors.index.json. Nothing is visible
/// before commit(), which writes the index last. Throws Error.
class TensorWriter {
public:
  static constexpr uint64_t defaultShardBytes = 5000000000;

  TensorWriter(const std::string &path, std::vector<TensorSpec> tensors, uint64_t shardBytes = defaultShardBytes);

  /// Each tensor once.
  void write(const std::string &name, const void *data);
  void commit();

private:
  struct Place {
    AtomicFile *file;
    uint64_t offset, bytes;
  };

  void openFile(const std::string &path, std::vector<TensorSpec> tensors);

  std::vector<std::unique_ptr<AtomicFile>> files;
  std::map<std::string, Place> places;
  std::string indexPath, indexText;
};

/// Writes all at once.
void writeTensors(const std::string &path, const std::vector<TensorToStore> &tensors,
                  uint64_t shardBytes = TensorWriter::defaultShardBytes);
void writeSafetensors(const std::string &path, const std::vector<TensorToStore> &tensors);

} // namespace drover::rt

#endif // DROVER_RT_SAFETENSORS_H
