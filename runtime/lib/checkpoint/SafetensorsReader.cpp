//===- SafetensorsReader.cpp - reading safetensors files ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/json_reader.h"
#include "drover/rt/safetensors.h"
#include "drover/rt/text.h"
#include <algorithm>
#include <set>

namespace drover::rt {

static constexpr uint64_t maxHeaderBytes = 100000000;

/// Bits of an element of each dtype of the format; 0 where there is no such dtype.
static uint64_t storedBits(const std::string &dtype) {
  static const std::map<std::string, uint64_t> bits = {
      {"BOOL", 8},    {"U8", 8},      {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F4", 4},
      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"I16", 16}, {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},
      {"U32", 32},    {"F32", 32},    {"I64", 64}, {"U64", 64},    {"F64", 64},    {"C64", 64}};
  auto entry = bits.find(dtype);
  return entry == bits.end() ? 0 : entry->second;
}

std::optional<DType> storedDType(const std::string &dtype) {
  static const std::map<std::string, DType> types = {{"F32", DROVER_F32}, {"BF16", DROVER_BF16}, {"F16", DROVER_F16},
                                                     {"F64", DROVER_F64}, {"I64", DROVER_I64},   {"I32", DROVER_I32},
                                                     {"I8", DROVER_I8},   {"BOOL", DROVER_I1}};
  auto entry = types.find(dtype);
  return entry == types.end() ? std::nullopt : std::optional(entry->second);
}

/// Parses a header or an index, refusing duplicate keys and depth beyond `maxDepth` as soon as they are read, so that
/// a hostile file costs no memory.
static nlohmann::json parseStrictly(const std::string &path, const char *begin, const char *end, int maxDepth) {
  std::vector<std::set<std::string>> keys;
  auto callback = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json &value) {
    using Event = nlohmann::json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) && depth >= maxDepth)
      fail(path, ": JSON nested deeper than ", maxDepth, " levels");
    if (event == Event::object_start)
      keys.emplace_back();
    else if (event == Event::object_end)
      keys.pop_back();
    else if (event == Event::key && !keys.back().insert(value.get<std::string>()).second)
      fail(path, ": duplicate key '", value.get<std::string>(), "'");
    return true;
  };
  try {
    return nlohmann::json::parse(begin, end, callback);
  } catch (const nlohmann::json::exception &error) {
    fail(path, ": invalid JSON: ", error.what());
  }
}

static std::pair<uint64_t, uint64_t> readOffsets(const JsonReader &json) {
  std::vector<int64_t> offsets = json.integers();
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    json.failed("[begin, end]");
  return {uint64_t(offsets[0]), uint64_t(offsets[1])};
}

static StoredTensor readEntry(const JsonReader &json, const uint8_t *buffer, uint64_t bufferBytes) {
  StoredTensor tensor;
  for (const auto &[key, member] : json.members())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      member.failed("only dtype, shape and data_offsets");
  tensor.dtype = json.at("dtype").text();
  tensor.shape = json.at("shape").integers();
  uint64_t bits = storedBits(tensor.dtype);
  if (!bits)
    json.at("dtype").failed("a dtype of the format, not '" + tensor.dtype + "'");
  for (int64_t size : tensor.shape)
    if (__builtin_mul_overflow(bits, uint64_t(size), &bits))
      json.at("shape").failed("a shape that 64 bits can count, not " + formatShape(tensor.shape));
  auto [begin, end] = readOffsets(json.at("data_offsets"));
  if (end > bufferBytes)
    json.at("data_offsets").failed(concat("an end of at most ", bufferBytes, ", not ", end));
  if (bits % 8 || bits / 8 != end - begin)
    json.at("data_offsets")
        .failed(concat(bits / 8, " bytes for ", tensor.dtype, " of shape ", formatShape(tensor.shape), ", not ",
                       end - begin));
  tensor.data = buffer + begin;
  tensor.bytes = end - begin;
  return tensor;
}

/// The ranges must follow each other and end where the buffer does.
static void checkCovered(const std::string &path, const std::map<std::string, StoredTensor> &entries,
                         const uint8_t *buffer, uint64_t bufferBytes) {
  std::vector<const std::pair<const std::string, StoredTensor> *> order;
  for (const auto &entry : entries)
    order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const auto *a, const auto *b) {
    return std::pair(a->second.data, a->second.bytes) < std::pair(b->second.data, b->second.bytes);
  });
  uint64_t place = 0;
  for (const auto *entry : order) {
    uint64_t begin = uint64_t(entry->second.data - buffer);
    if (begin != place)
      fail(path, ": tensor '", entry->first, "' begins at byte ", begin, " of the buffer, ",
           begin < place ? "inside of the one before" : "after a hole", ", expected ", place);
    place += entry->second.bytes;
  }
  if (place != bufferBytes)
    fail(path, ": the tensors end at byte ", place, " of the buffer, the file at ", bufferBytes);
}

SafetensorsFile::SafetensorsFile(const std::string &path) : file(path) {
  if (file.size() < 8)
    fail(path, ": ", file.size(), " bytes, a safetensors file has at least 8");
  uint64_t headerBytes;
  std::memcpy(&headerBytes, file.data(), 8);
  if (headerBytes > maxHeaderBytes)
    fail(path, ": header of ", headerBytes, " bytes, at most ", maxHeaderBytes, " are allowed");
  if (headerBytes > file.size() - 8)
    fail(path, ": header of ", headerBytes, " bytes in a file of ", file.size());
  const char *header = reinterpret_cast<const char *>(file.data()) + 8;
  if (headerBytes < 2 || header[0] != '{')
    fail(path, ": the header does not begin with '{'");
  nlohmann::json document = parseStrictly(path, header, header + headerBytes, 3);
  const uint8_t *buffer = file.data() + 8 + headerBytes;
  uint64_t bufferBytes = file.size() - 8 - headerBytes;
  for (const auto &[name, entry] : JsonReader(document, path).members()) {
    if (name == "__metadata__") {
      for (const auto &[key, text] : entry.members())
        text.text();
      continue;
    }
    entries.emplace(name, readEntry(entry, buffer, bufferBytes));
  }
  checkCovered(path, entries, buffer, bufferBytes);
}

TensorFiles::TensorFiles(const std::string &path) : name(path) {
  if (endsWith(path, ".json")) {
    openIndex();
    return;
  }
  files.emplace_back(path);
  entries = files.back().tensors();
}

void TensorFiles::openIndex() {
  MappedFile file(name);
  const char *begin = reinterpret_cast<const char *>(file.data());
  nlohmann::json document = parseStrictly(name, begin, begin + file.size(), 8);
  size_t slash = name.rfind('/');
  std::string folder = slash == std::string::npos ? "" : name.substr(0, slash + 1);
  std::map<std::string, size_t> opened;
  for (const auto &[tensor, entry] : JsonReader(document, name).at("weight_map").members()) {
    std::string shard = entry.text();
    if (shard.empty() || shard[0] == '/' || shard.find("..") != std::string::npos)
      entry.failed("a file beside the index, not '" + shard + "'");
    auto [place, isNew] = opened.emplace(shard, files.size());
    if (isNew)
      files.emplace_back(folder + shard);
    const auto &tensors = files[place->second].tensors();
    auto stored = tensors.find(tensor);
    if (stored == tensors.end())
      fail(name, ": tensor '", tensor, "' is not in ", folder, shard);
    entries.emplace(tensor, stored->second);
  }
}

} // namespace drover::rt
