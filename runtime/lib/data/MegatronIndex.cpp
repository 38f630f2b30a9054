//===- MegatronIndex.cpp - the index of a Megatron token file -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/megatron_index.h"
#include <cstring>

namespace drover::rt {

static constexpr uint64_t headerBytes = 34;

template <typename T> static T load(const uint8_t *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

static TokenType typeOf(const MappedFile &file, int code) {
  switch (code) {
  case 1:
    return TokenType::U8;
  case 2:
    return TokenType::I8;
  case 3:
    return TokenType::I16;
  case 4:
    return TokenType::I32;
  case 5:
    return TokenType::I64;
  case 8:
    return TokenType::U16;
  default:
    fail(file.path(), ": element type code ", code, ", expected an integer type (1 to 5 or 8)");
  }
}

MegatronIndex readMegatronIndex(const MappedFile &file, uint64_t binBytes) {
  const uint8_t *bytes = file.data();
  if (file.size() < headerBytes)
    fail(file.path(), ": ", file.size(), " bytes, a Megatron index has at least ", headerBytes);
  if (std::memcmp(bytes, "MMIDIDX\0\0", 9) != 0)
    fail(file.path(), ": no Megatron index (it does not begin with MMIDIDX)");
  if (uint64_t version = load<uint64_t>(bytes + 9); version != 1)
    fail(file.path(), ": index version ", version, ", expected 1");
  MegatronIndex index;
  index.type = typeOf(file, bytes[17]);
  uint64_t sequences = load<uint64_t>(bytes + 18), documents = load<uint64_t>(bytes + 26);
  // 12 bytes a sequence and 8 a document; bounded by the file first, so that the sum cannot wrap.
  uint64_t room = file.size() - headerBytes;
  if (sequences > room / 12 || documents > (room - sequences * 12) / 8)
    fail(file.path(), ": ", sequences, " sequences and ", documents, " documents do not fit into ", file.size(),
         " bytes");
  const uint8_t *lengths = bytes + headerBytes, *offsets = lengths + 4 * sequences;
  uint64_t width = uint64_t(byteSize(index.type));
  for (uint64_t i = 0; i < sequences; ++i) {
    int32_t length = load<int32_t>(lengths + 4 * i);
    int64_t offset = load<int64_t>(offsets + 8 * i);
    if (length < 0 || offset < 0 || uint64_t(offset) > binBytes ||
        uint64_t(length) > (binBytes - uint64_t(offset)) / width)
      fail(file.path(), ": sequence ", i, " has ", length, " tokens at byte ", offset, ", beyond the ", binBytes,
           " bytes of the .bin file");
    if (length == 0)
      continue;
    MegatronIndex::Range *last = index.ranges.empty() ? nullptr : &index.ranges.back();
    if (last && last->offset + uint64_t(last->tokens) * width == uint64_t(offset))
      last->tokens += length;
    else
      index.ranges.push_back({uint64_t(offset), length});
  }
  return index;
}

} // namespace drover::rt
