//===- Npy.cpp - NumPy's array files ----------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Support/Npy.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace drover;
using namespace llvm;

static constexpr StringLiteral kMagic("\x93NUMPY");

static Error malformed(StringRef path, const Twine &what) {
  return createStringError(inconvertibleErrorCode(), path + ": not a readable .npy file: " + what);
}

/// The text after `'key':` in the header's dictionary.
static StringRef valueOf(StringRef header, StringRef key) {
  size_t at = header.find(("'" + key + "'").str());
  if (at == StringRef::npos)
    return {};
  return header.drop_front(at + key.size() + 2).ltrim().drop_while([](char c) { return c == ':'; }).ltrim();
}

/// (2, 3) or (5,) or ().
static bool parseShape(StringRef text, SmallVectorImpl<int64_t> &shape) {
  if (!text.consume_front("("))
    return false;
  while (!(text = text.ltrim(" ,")).consume_front(")")) {
    uint64_t size;
    if (text.consumeInteger(10, size) || size > INT64_MAX)
      return false;
    shape.push_back(static_cast<int64_t>(size));
  }
  return true;
}

namespace {
/// How a file stores elements: an own kind, or an unsigned integer of `unsignedBytes` in a wider one.
struct Stored {
  ElementKind kind;
  unsigned unsignedBytes = 0;
};
} // namespace

static std::optional<Stored> storedKind(StringRef descr) {
  return StringSwitch<std::optional<Stored>>(descr)
      .Case("|b1", Stored{ElementKind::I1})
      .Case("|i1", Stored{ElementKind::I8})
      .Case("<i2", Stored{ElementKind::I16})
      .Case("<i4", Stored{ElementKind::I32})
      .Case("<i8", Stored{ElementKind::I64})
      .Case("|u1", Stored{ElementKind::I16, 1})
      .Case("<u2", Stored{ElementKind::I32, 2})
      .Case("<u4", Stored{ElementKind::I64, 4})
      .Case("<u8", Stored{ElementKind::I64, 8})
      .Case("<f2", Stored{ElementKind::F16})
      .Case("<f4", Stored{ElementKind::F32})
      .Case("<f8", Stored{ElementKind::F64})
      .Default(std::nullopt);
}

Expected<Tensor> drover::readNpy(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError(buffer.getError(), path + ": " + buffer.getError().message());
  StringRef data = (*buffer)->getBuffer();
  if (!data.consume_front(kMagic) || data.size() < 6)
    return malformed(path, "no magic number");
  unsigned lengthBytes = data[0] == 1 ? 2 : 4;
  uint64_t length =
      lengthBytes == 2 ? support::endian::read16le(data.data() + 2) : support::endian::read32le(data.data() + 2);
  data = data.drop_front(2 + lengthBytes);
  if (length > data.size())
    return malformed(path, "the header is cut off");
  StringRef header = data.take_front(length);
  data = data.drop_front(length);

  StringRef descr = valueOf(header, "descr");
  descr = descr.consume_front("'") ? descr.take_until([](char c) { return c == '\''; }) : StringRef();
  std::optional<Stored> stored = storedKind(descr);
  if (!stored)
    return malformed(path, "element type '" + descr + "', expected little-endian bool, int, uint or float");
  SmallVector<int64_t> shape;
  if (!parseShape(valueOf(header, "shape"), shape))
    return malformed(path, "no shape in the header");
  if (!valueOf(header, "fortran_order").starts_with("False") && shape.size() > 1)
    return malformed(path, "expected C order");
  unsigned width = stored->unsignedBytes ? stored->unsignedBytes : byteWidth(stored->kind);
  int64_t count = countElements(shape, INT64_MAX / 16);
  if (count < 0 || static_cast<uint64_t>(count) * width > data.size())
    return malformed(path, "expected " + Twine(count) + " elements, has " + Twine(data.size()) + " bytes");

  Tensor tensor(stored->kind, shape);
  if (!stored->unsignedBytes) {
    decode(ArrayRef(data.data(), data.size()), tensor);
    return tensor;
  }
  for (int64_t i = 0; i < count; ++i) {
    uint64_t value = 0;
    for (unsigned byte = 0; byte < width; ++byte)
      value |= static_cast<uint64_t>(static_cast<unsigned char>(data[i * width + byte])) << (8 * byte);
    if (value > INT64_MAX)
      return malformed(path, "element " + Twine(i) + " exceeds a signed 64-bit integer");
    tensor.ints[i] = static_cast<int64_t>(value);
  }
  return tensor;
}

static StringRef descrOf(ElementKind kind) {
  switch (kind) {
  case ElementKind::I1:
    return "|b1";
  case ElementKind::I8:
    return "|i1";
  case ElementKind::I16:
    return "<i2";
  case ElementKind::I32:
    return "<i4";
  case ElementKind::I64:
    return "<i8";
  case ElementKind::F16:
    return "<f2";
  case ElementKind::BF16:
  case ElementKind::F32:
    return "<f4";
  case ElementKind::F64:
    return "<f8";
  }
  llvm_unreachable("every kind is handled");
}

Error drover::writeNpy(StringRef path, const Tensor &tensor) {
  std::string header;
  raw_string_ostream text(header);
  text << "{'descr': '" << descrOf(tensor.kind) << "', 'fortran_order': False, 'shape': (";
  for (int64_t size : tensor.shape)
    text << size << ",";
  text << "), }";
  // The elements start at a multiple of 64 bytes (NEP 1).
  header.append(63 - (kMagic.size() + 4 + header.size()) % 64, ' ');
  header += '\n';

  std::error_code error;
  raw_fd_ostream file(path, error);
  if (error)
    return createStringError(error, path + ": " + error.message());
  char length[2];
  support::endian::write16le(length, header.size());
  file << kMagic << '\x01' << '\0' << StringRef(length, 2) << header;
  if (tensor.kind == ElementKind::BF16) {
    Tensor wide = tensor;
    wide.kind = ElementKind::F32;
    std::vector<char> bytes = encode(wide);
    file.write(bytes.data(), bytes.size());
  } else {
    std::vector<char> bytes = encode(tensor);
    file.write(bytes.data(), bytes.size());
  }
  file.close();
  if (file.has_error()) {
    error = file.error();
    file.clear_error();
    return createStringError(error, path + ": " + error.message());
  }
  return Error::success();
}
