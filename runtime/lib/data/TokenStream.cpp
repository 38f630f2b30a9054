//===- TokenStream.cpp - the tokens that training reads -------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/megatron_index.h"
#include "drover/rt/text.h"
#include "drover/rt/token_stream.h"
#include <algorithm>
#include <cstring>
#include <filesystem>

namespace drover::rt {

namespace fs = std::filesystem;

int64_t byteSize(TokenType type) {
  switch (type) {
  case TokenType::U8:
  case TokenType::I8:
    return 1;
  case TokenType::U16:
  case TokenType::I16:
    return 2;
  case TokenType::U32:
  case TokenType::I32:
    return 4;
  case TokenType::I64:
    return 8;
  }
  return 1;
}

template <typename T> static void widen(const uint8_t *source, int64_t count, int64_t *result) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, source + i * int64_t(sizeof(T)), sizeof(T));
    result[i] = int64_t(value);
  }
}

static void widen(TokenType type, const uint8_t *source, int64_t count, int64_t *result) {
  switch (type) {
  case TokenType::U8:
    return widen<uint8_t>(source, count, result);
  case TokenType::U16:
    return widen<uint16_t>(source, count, result);
  case TokenType::U32:
    return widen<uint32_t>(source, count, result);
  case TokenType::I8:
    return widen<int8_t>(source, count, result);
  case TokenType::I16:
    return widen<int16_t>(source, count, result);
  case TokenType::I32:
    return widen<int32_t>(source, count, result);
  case TokenType::I64:
    return widen<int64_t>(source, count, result);
  }
}

static bool isTokenFile(const std::string &path) {
  return endsWith(path, ".u16") || endsWith(path, ".u32") || endsWith(path, ".bin") || endsWith(path, ".idx");
}

TokenStream TokenStream::open(const std::string &path) {
  TokenStream stream;
  std::error_code ignored;
  size_t colon = path.find(':');
  if (fs::is_directory(path, ignored))
    stream.addFolder(path);
  else if (endsWith(path, ".bin") || endsWith(path, ".idx"))
    stream.addMegatron(path.substr(0, path.size() - 4));
  else if (!fs::exists(path, ignored) && fs::exists(path + ".idx", ignored))
    stream.addMegatron(path);
  else if (colon != std::string::npos && !fs::exists(path, ignored) && parseNumber(path.substr(0, colon)))
    fail("--data=", path, ": blending by weight is not supported, expected one path");
  else
    stream.addFile(path, endsWith(path, ".u16")   ? TokenType::U16
                         : endsWith(path, ".u32") ? TokenType::U32
                                                  : TokenType::U8);
  return stream;
}

void TokenStream::addSegment(size_t file, uint64_t offset, int64_t count, TokenType type) {
  if (count == 0)
    return;
  segments.push_back({total, count, file, offset, type});
  total += count;
}

void TokenStream::addFile(const std::string &path, TokenType type) {
  files.emplace_back(path);
  uint64_t size = files.back().size(), width = uint64_t(byteSize(type));
  if (size % width)
    fail(path, ": ", size, " bytes, expected a multiple of ", width);
  addSegment(files.size() - 1, 0, int64_t(size / width), type);
}

void TokenStream::addFolder(const std::string &path) {
  std::vector<std::string> names;
  std::error_code code;
  for (auto entry = fs::recursive_directory_iterator(path, code); !code && entry != fs::recursive_directory_iterator();
       entry.increment(code)) {
    bool hidden = entry->path().filename().string()[0] == '.';
    if (hidden && entry->is_directory())
      entry.disable_recursion_pending();
    else if (!hidden && entry->is_regular_file())
      names.push_back(entry->path().string());
  }
  if (code)
    fail(path, ": cannot list the folder: ", code.message());
  if (names.empty())
    fail(path, ": no file in this folder");
  std::sort(names.begin(), names.end());
  for (const std::string &name : names) {
    if (isTokenFile(name))
      fail(name, ": a token file in a folder of text, give the file itself");
    addFile(name, TokenType::U8);
  }
}

void TokenStream::addMegatron(const std::string &prefix) {
  files.emplace_back(prefix + ".bin");
  MegatronIndex index = readMegatronIndex(MappedFile(prefix + ".idx"), files.back().size());
  for (const MegatronIndex::Range &range : index.ranges)
    addSegment(files.size() - 1, range.offset, range.tokens, index.type);
}

void TokenStream::read(int64_t begin, int64_t count, int64_t *result) const {
  auto segment = std::upper_bound(segments.begin(), segments.end(), begin,
                                  [](int64_t place, const Segment &s) { return place < s.first; });
  for (--segment; count > 0; ++segment) {
    int64_t skip = begin - segment->first, part = std::min(count, segment->count - skip);
    const uint8_t *source = files[segment->file].data() + segment->offset + uint64_t(skip * byteSize(segment->type));
    widen(segment->type, source, part, result);
    begin += part;
    count -= part;
    result += part;
  }
}

void TokenStream::checkVocabulary(int64_t vocabulary) const {
  constexpr int64_t blockSize = 1 << 16;
  std::vector<int64_t> block(static_cast<size_t>(blockSize));
  for (const Segment &segment : segments) {
    int64_t width = byteSize(segment.type);
    if (segment.type == TokenType::U8 && vocabulary >= 256)
      continue;
    for (int64_t begin = 0; begin < segment.count; begin += blockSize) {
      int64_t count = std::min(blockSize, segment.count - begin);
      uint64_t offset = segment.offset + uint64_t(begin * width);
      widen(segment.type, files[segment.file].data() + offset, count, block.data());
      for (int64_t i = 0; i < count; ++i)
        if (block[i] < 0 || block[i] >= vocabulary)
          fail(files[segment.file].path(), ": token id ", block[i], " at byte ", offset + uint64_t(i * width),
               ", expected ids from 0 to ", vocabulary - 1);
    }
  }
}

} // namespace drover::rt
