//===- SafetensorsWriter.cpp - writing safetensors files ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/atomic_file.h"
#include "drover/rt/error.h"
#include "drover/rt/safetensors.h"
#include "drover/rt/text.h"
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace drover::rt {

using Json = nlohmann::ordered_json;

static uint64_t bytesOf(const TensorSpec &tensor) {
  uint64_t bytes = uint64_t(byteSize(tensor.dtype));
  for (int64_t size : tensor.shape)
    bytes *= uint64_t(size);
  return bytes;
}

/// Wide elements first, so that each tensor is aligned for its type; by name within a width.
static void sortForFile(std::vector<TensorSpec> &tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorSpec &a, const TensorSpec &b) {
    return std::pair(-byteSize(a.dtype), std::string_view(a.name)) <
           std::pair(-byteSize(b.dtype), std::string_view(b.name));
  });
}

static std::vector<std::vector<TensorSpec>> splitIntoShards(const std::vector<TensorSpec> &tensors,
                                                            uint64_t shardBytes) {
  std::vector<std::vector<TensorSpec>> shards(1);
  uint64_t used = 0;
  for (const TensorSpec &tensor : tensors) {
    uint64_t bytes = bytesOf(tensor);
    if (!shards.back().empty() && used + bytes > shardBytes) {
      shards.emplace_back();
      used = 0;
    }
    shards.back().push_back(tensor);
    used += bytes;
  }
  return shards;
}

bool isTensorFile(const std::string &path) { return endsWith(path, ".safetensors"); }

TensorWriter::TensorWriter(const std::string &path, std::vector<TensorSpec> tensors, uint64_t shardBytes) {
  if (isTensorFile(path)) {
    openFile(path, std::move(tensors));
    return;
  }
  makeFolder(path);
  std::sort(tensors.begin(), tensors.end(), [](const TensorSpec &a, const TensorSpec &b) { return a.name < b.name; });
  auto shards = splitIntoShards(tensors, shardBytes);
  Json map = Json::object();
  uint64_t total = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    char name[64];
    std::snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    openFile(path + "/" + name, shards[i]);
    for (const TensorSpec &tensor : shards[i]) {
      map[tensor.name] = name;
      total += bytesOf(tensor);
    }
  }
  Json index;
  index["metadata"] = {{"total_size", total}};
  index["weight_map"] = std::move(map);
  indexPath = path + "/model.safetensors.index.json";
  indexText = index.dump(2) + "\n";
}

void TensorWriter::openFile(const std::string &path, std::vector<TensorSpec> tensors) {
  static constexpr const char *names[] = {"F32", "BF16", "F16", "F64", "I64", "I32", "I8", "BOOL"};
  sortForFile(tensors);
  Json header;
  header["__metadata__"] = {{"format", "pt"}}; // what Hugging Face's loaders ask for
  uint64_t place = 0;
  for (const TensorSpec &tensor : tensors) {
    uint64_t end = place + bytesOf(tensor);
    header[tensor.name] = {{"dtype", names[tensor.dtype]}, {"shape", tensor.shape}, {"data_offsets", {place, end}}};
    place = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  uint64_t headerBytes = text.size();
  files.push_back(std::make_unique<AtomicFile>(path));
  files.back()->write(&headerBytes, 8);
  files.back()->write(text);
  place = 8 + headerBytes;
  for (const TensorSpec &tensor : tensors) {
    places[tensor.name] = {files.back().get(), place, bytesOf(tensor)};
    place += bytesOf(tensor);
  }
}

void TensorWriter::write(const std::string &name, const void *data) {
  const Place &place = places.at(name);
  place.file->writeAt(place.offset, data, place.bytes);
}

void TensorWriter::commit() {
  for (std::unique_ptr<AtomicFile> &file : files)
    file->commit();
  if (indexPath.empty())
    return;
  AtomicFile index(indexPath);
  index.write(indexText);
  index.commit();
}

void writeTensors(const std::string &path, const std::vector<TensorToStore> &tensors, uint64_t shardBytes) {
  TensorWriter writer(path, {tensors.begin(), tensors.end()}, shardBytes);
  for (const TensorToStore &tensor : tensors)
    writer.write(tensor.name, tensor.data);
  writer.commit();
}

void writeSafetensors(const std::string &path, const std::vector<TensorToStore> &tensors) {
  if (!isTensorFile(path))
    fail(path, ": expected a name that ends in .safetensors");
  writeTensors(path, tensors);
}

} // namespace drover::rt
