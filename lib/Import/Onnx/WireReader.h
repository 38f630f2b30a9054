//===- WireReader.h - protobuf's wire format over mapped bytes --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Protobuf's own parser copies every bytes field, does not tell where in the file it was, and stops
// at 2 GB. An importer that keeps weights in their file needs the place, so the wire format
// (protobuf.dev/programming-guides/encoding) is read directly.
//
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_IMPORT_ONNX_WIREREADER_H
#define DROVER_LIB_IMPORT_ONNX_WIREREADER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Endian.h"
#include <cstdint>
#include <cstring>
#include <string>

namespace drover::onnx {

/// One message. After an error every read is empty and `next` is false; the first error is kept in
/// the state that all readers of a file share.
class WireReader {
public:
  struct State {
    llvm::StringRef file;
    std::string error;
    unsigned depth = 0;
  };
  enum WireType { Varint = 0, Fixed64 = 1, Bytes = 2, StartGroup = 3, EndGroup = 4, Fixed32 = 5 };

  WireReader(State &state, llvm::StringRef bytes) : state(state), bytes(bytes) {}

  /// Reads the next tag; false at the end or after an error.
  bool next() {
    if (failed() || bytes.empty())
      return false;
    uint64_t tag = readVarint();
    wire = static_cast<WireType>(tag & 7);
    number = static_cast<uint32_t>(tag >> 3);
    if (!failed() && (number == 0 || tag >> 32))
      fail("an invalid tag");
    return !failed();
  }
  uint32_t field() const { return number; }
  WireType wireType() const { return wire; }

  /// The value of the field just met, which must have the wire type that the schema says.
  int64_t varint() { return expect(Varint) ? static_cast<int64_t>(readVarint()) : 0; }
  llvm::StringRef string() { return expect(Bytes) ? readBytes() : llvm::StringRef(); }
  float fixed32() { return expect(Fixed32) ? readFixed<float>() : 0; }
  double fixed64() { return expect(Fixed64) ? readFixed<double>() : 0; }

  /// Repeated scalars come packed or one by one.
  template <typename Append> void varints(Append append) {
    if (wire != Bytes)
      return append(varint());
    WireReader packed(state, readBytes());
    while (!failed() && !packed.bytes.empty())
      append(static_cast<int64_t>(packed.readVarint()));
  }
  template <typename T, typename Append> void fixed(Append append) {
    if (wire != Bytes)
      return append(expect(sizeof(T) == 4 ? Fixed32 : Fixed64) ? readFixed<T>() : T());
    WireReader packed(state, readBytes());
    while (!failed() && !packed.bytes.empty())
      append(packed.template readFixed<T>());
  }

  /// Calls `read` with a reader of the message in this field. Subgraphs nest; a bound on the depth
  /// keeps a malicious file from exhausting the stack.
  template <typename Read> void message(Read read) {
    llvm::StringRef body = string();
    if (state.depth >= maxDepth)
      return fail("messages nested deeper than 100");
    ++state.depth;
    WireReader inner(state, body);
    read(inner);
    --state.depth;
  }

  /// The same of a field that is not repeated. Protobuf would merge several into one; what writes a file writes one.
  template <typename Read> void single(llvm::StringRef name, Read read) {
    uint64_t bit = uint64_t(1) << (number & 63);
    if (seen & bit)
      return fail(("a second '" + name + "' in one message").str());
    seen |= bit;
    message(read);
  }

  /// Skips the field just met.
  void skip() {
    switch (wire) {
    case Varint:
      readVarint();
      return;
    case Fixed64:
      readFixed<double>();
      return;
    case Bytes:
      readBytes();
      return;
    case Fixed32:
      readFixed<float>();
      return;
    default:
      fail("an invalid wire type");
    }
  }

  bool failed() const { return !state.error.empty(); }
  void fail(llvm::StringRef what) {
    if (!failed())
      state.error = (what + " at byte " + llvm::Twine(offset())).str();
    bytes = {};
  }

private:
  static constexpr unsigned maxDepth = 100;

  uint64_t offset() const { return bytes.data() ? bytes.data() - state.file.data() : state.file.size(); }

  bool expect(WireType type) {
    if (wire == type)
      return true;
    fail("a field of the wrong wire type");
    return false;
  }
  uint64_t readVarint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (bytes.empty()) {
        fail("a number cut off");
        return 0;
      }
      uint8_t byte = bytes.front();
      bytes = bytes.drop_front();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return value;
    }
    fail("a number of more than ten bytes");
    return 0;
  }
  llvm::StringRef readBytes() {
    uint64_t size = readVarint();
    if (size > bytes.size()) {
      fail("a field longer than what is left of its message");
      return {};
    }
    llvm::StringRef result = bytes.take_front(size);
    bytes = bytes.drop_front(size);
    return result;
  }
  template <typename T> T readFixed() {
    if (bytes.size() < sizeof(T)) {
      fail("a number cut off");
      return T();
    }
    T value = llvm::support::endian::read<T, llvm::endianness::little>(bytes.data());
    bytes = bytes.drop_front(sizeof(T));
    return value;
  }

  State &state;
  llvm::StringRef bytes;
  WireType wire = Varint;
  uint32_t number = 0;
  /// Fields that `single` has read, all with numbers below 64.
  uint64_t seen = 0;
};

} // namespace drover::onnx

#endif // DROVER_LIB_IMPORT_ONNX_WIREREADER_H
