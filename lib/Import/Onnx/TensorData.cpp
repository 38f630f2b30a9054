//===- TensorData.cpp - where the values of a tensor are ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Import/Onnx/Model.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace drover::onnx {

/// A path that stays within the model's folder, lexically.
static bool escapes(StringRef location) {
  if (location.empty() || sys::path::is_absolute(location) || location.contains('\\') || location.contains('\0'))
    return true;
  return any_of(make_range(sys::path::begin(location), sys::path::end(location)),
                [](StringRef part) { return part == ".."; });
}

static Expected<uint64_t> number(const Tensor &tensor, StringRef key, uint64_t otherwise) {
  StringRef text = lookup(tensor.externalData, key);
  uint64_t value = otherwise;
  if (!text.empty() && text.getAsInteger(10, value))
    return createStringError("tensor '" + tensor.name + "' has external data with " + key + " '" + text +
                             "', expected a number");
  return value;
}

Expected<StringRef> TensorData::externalBytes(const Tensor &tensor, DataRange *range) {
  StringRef location = lookup(tensor.externalData, "location");
  if (escapes(location))
    return createStringError("tensor '" + tensor.name + "' has external data at '" + location +
                             "', expected a path within the model's folder");
  Expected<uint64_t> offset = number(tensor, "offset", 0);
  if (!offset)
    return offset.takeError();
  Expected<uint64_t> length = number(tensor, "length", tensor.bytes());
  if (!length)
    return length.takeError();
  if (*length != tensor.bytes())
    return createStringError("tensor '" + tensor.name + "' has external data of " + Twine(*length) +
                             " bytes, its shape and type need " + Twine(tensor.bytes()));
  std::unique_ptr<MemoryBuffer> &file = files[location];
  if (!file) {
    SmallString<128> path(sys::path::parent_path(model.path));
    sys::path::append(path, location);
    if (!sys::fs::is_regular_file(path))
      return createStringError("tensor '" + tensor.name + "' has external data in '" + location +
                               "', which is not a file in the model's folder");
    ErrorOr<std::unique_ptr<MemoryBuffer>> opened =
        MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!opened)
      return createStringError("cannot read external data '" + location + "': " + opened.getError().message());
    file = std::move(*opened);
  }
  if (*offset > file->getBufferSize() || *length > file->getBufferSize() - *offset)
    return createStringError("tensor '" + tensor.name + "' has external data at byte " + Twine(*offset) + " of '" +
                             location + "', which has only " + Twine(file->getBufferSize()) + " bytes");
  if (range)
    *range = {location.str(), *offset, *length};
  return file->getBuffer().substr(*offset, *length);
}

/// Values stored as varints (int32_data holds every small type, and the bits of float16).
static std::string encode(const Tensor &tensor) {
  unsigned size = byteSize(tensor.type);
  std::string bytes(tensor.integers.size() * size, '\0');
  for (auto [index, value] : enumerate(tensor.integers)) {
    uint64_t little = support::endian::byte_swap<uint64_t>(static_cast<uint64_t>(value), endianness::little);
    std::memcpy(bytes.data() + index * size, &little, size);
  }
  return bytes;
}

Expected<StringRef> TensorData::bytes(const Tensor &tensor) {
  if (!byteSize(tensor.type))
    return createStringError("tensor '" + tensor.name + "' has elements of " + str(tensor.type) +
                             ", which is not supported");
  if (tensor.isExternal)
    return externalBytes(tensor, nullptr);
  StringRef result;
  if (tensor.raw) {
    result = *tensor.raw;
  } else if (!tensor.integers.empty()) {
    // The key is the address: names may be empty.
    std::string &copy = decoded[std::to_string(reinterpret_cast<uintptr_t>(&tensor))];
    if (copy.empty())
      copy = encode(tensor);
    result = copy;
  }
  if (result.size() != tensor.bytes())
    return createStringError("tensor '" + tensor.name + "' has " + Twine(result.size()) +
                             " bytes of data, its shape and type need " + Twine(tensor.bytes()));
  return result;
}

Expected<std::optional<DataRange>> TensorData::range(const Tensor &tensor) {
  DataRange result;
  if (tensor.isExternal) {
    Expected<StringRef> data = externalBytes(tensor, &result);
    if (!data)
      return data.takeError();
    return result;
  }
  // Of values that lie in no file too: a tensor without data is an error here, not where it is first read.
  if (Expected<StringRef> data = bytes(tensor); !data)
    return data.takeError();
  if (!tensor.raw)
    return std::nullopt;
  result.file = sys::path::filename(model.path).str();
  result.offset = tensor.raw->data() - model.buffer->getBufferStart();
  result.bytes = tensor.raw->size();
  return result;
}

} // namespace drover::onnx
