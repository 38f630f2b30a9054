//===- Npy.cpp - NumPy array files ----------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/npy.h"
#include "drover/rt/atomic_file.h"
#include "drover/rt/error.h"
#include "drover/rt/text.h"
#include <cctype>
#include <cmath>

namespace drover::rt {

namespace {
/// Reads the header: a Python dictionary literal with the keys descr, fortran_order and shape.
class HeaderParser {
public:
  HeaderParser(std::string_view text, const std::string &path) : text(text), path(path) {}

  [[noreturn]] void failed(const std::string &expected) const {
    fail(path, ": bad .npy header at character ", place, ": expected ", expected);
  }
  bool accept(char c) {
    skipSpace();
    if (place >= text.size() || text[place] != c)
      return false;
    ++place;
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      failed(std::string("'") + c + "'");
  }
  std::string quoted() {
    skipSpace();
    if (place >= text.size() || (text[place] != '\'' && text[place] != '"'))
      failed("a string");
    size_t end = text.find(text[place], place + 1);
    if (end == std::string_view::npos)
      failed("the end of a string");
    std::string result(text.substr(place + 1, end - place - 1));
    place = end + 1;
    return result;
  }
  std::string word() {
    skipSpace();
    size_t begin = place;
    while (place < text.size() && std::isalnum(static_cast<unsigned char>(text[place])))
      ++place;
    return std::string(text.substr(begin, place - begin));
  }
  bool atEnd() {
    skipSpace();
    return place == text.size();
  }

private:
  void skipSpace() {
    while (place < text.size() && std::isspace(static_cast<unsigned char>(text[place])))
      ++place;
  }

  std::string_view text;
  const std::string &path;
  size_t place = 0;
};
} // namespace

NpyFile::NpyFile(const std::string &path) : file(path) {
  const uint8_t *bytes = file.data();
  if (file.size() < 10 || std::memcmp(bytes, "\x93NUMPY", 6) != 0)
    fail(path, ": no .npy file (it does not begin with \\x93NUMPY)");
  int major = bytes[6];
  if (major < 1 || major > 3)
    fail(path, ": .npy format ", major, ", expected 1 to 3");
  uint64_t begin = major == 1 ? 10 : 12, length = bytes[8] | uint64_t(bytes[9]) << 8;
  if (major > 1) {
    if (file.size() < begin)
      fail(path, ": cut off within the header");
    length |= uint64_t(bytes[10]) << 16 | uint64_t(bytes[11]) << 24;
  }
  if (length > file.size() - begin)
    fail(path, ": header of ", length, " bytes in a file of ", file.size());
  dataOffset = begin + length;
  parseHeader({reinterpret_cast<const char *>(bytes) + begin, length});
  if (file.size() - dataOffset != uint64_t(count) * uint64_t(width))
    fail(path, ": ", file.size() - dataOffset, " bytes of data, shape ", formatShape(sizes), " needs ", count * width);
}

void NpyFile::parseHeader(std::string_view header) {
  HeaderParser parser(header, file.path());
  std::string descr;
  bool hasShape = false, hasOrder = false;
  parser.expect('{');
  while (!parser.accept('}')) {
    std::string key = parser.quoted();
    parser.expect(':');
    if (key == "descr") {
      descr = parser.quoted();
    } else if (key == "fortran_order") {
      if (parser.word() != "False")
        fail(file.path(), ": Fortran order, expected C order");
      hasOrder = true;
    } else if (key == "shape" && !hasShape) {
      hasShape = true;
      parser.expect('(');
      while (!parser.accept(')')) {
        std::optional<int64_t> size = parseInteger(parser.word());
        if (!size || __builtin_mul_overflow(count, *size, &count) || count > INT64_MAX / 16)
          parser.failed("a size that memory can hold");
        sizes.push_back(*size);
        if (!parser.accept(',')) {
          parser.expect(')');
          break;
        }
      }
    } else {
      parser.failed("one of the keys descr, fortran_order and shape, not '" + key + "'");
    }
    if (!parser.accept(',')) {
      parser.expect('}');
      break;
    }
  }
  if (descr.empty() || !hasShape || !hasOrder || !parser.atEnd())
    parser.failed("descr, fortran_order and shape");
  bool fits = descr.size() == 3 && (descr[0] == '<' || descr[0] == '|');
  if (fits) {
    kind = descr[1];
    width = descr[2] - '0';
    fits = kind == 'b'   ? width == 1
           : kind == 'f' ? width == 2 || width == 4 || width == 8
                         : (kind == 'i' || kind == 'u') && (width == 1 || width == 2 || width == 4 || width == 8);
  }
  if (!fits)
    fail(file.path(), ": element type '", descr, "', expected little-endian bool, int or float");
}

template <typename T> static T load(const uint8_t *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

static double loadFloat(const uint8_t *bytes, int width) {
  if (width == 2)
    return double(halfToFloat(load<uint16_t>(bytes)));
  return width == 4 ? double(load<float>(bytes)) : load<double>(bytes);
}

/// False where the value is a u64 beyond i64.
static bool loadInteger(const uint8_t *bytes, char kind, int width, int64_t &value) {
  bool isSigned = kind == 'i';
  switch (width) {
  case 1:
    value = isSigned ? load<int8_t>(bytes) : bytes[0];
    return true;
  case 2:
    value = isSigned ? load<int16_t>(bytes) : load<uint16_t>(bytes);
    return true;
  case 4:
    value = isSigned ? load<int32_t>(bytes) : int64_t(load<uint32_t>(bytes));
    return true;
  default:
    value = load<int64_t>(bytes);
    return isSigned || value >= 0;
  }
}

static bool storeInteger(int64_t value, DType type, void *result, int64_t i) {
  switch (type) {
  case DROVER_I64:
    static_cast<int64_t *>(result)[i] = value;
    return true;
  case DROVER_I32:
    static_cast<int32_t *>(result)[i] = int32_t(value);
    return value == int32_t(value);
  case DROVER_I8:
    static_cast<int8_t *>(result)[i] = int8_t(value);
    return value == int8_t(value);
  default:
    static_cast<uint8_t *>(result)[i] = uint8_t(value);
    return value == 0 || value == 1;
  }
}

/// A NaN stays one in every float type.
static bool storeFloat(double value, DType type, void *result, int64_t i) {
  bool inRange = std::isnan(value) || std::isinf(value) || std::abs(value) <= 3.4028234663852886e38;
  float single = inRange ? float(value) : 0;
  switch (type) {
  case DROVER_F64:
    static_cast<double *>(result)[i] = value;
    return true;
  case DROVER_F32:
    static_cast<float *>(result)[i] = single;
    return inRange && (double(single) == value || std::isnan(value));
  case DROVER_BF16: {
    uint16_t bits = floatToBfloat(single);
    static_cast<uint16_t *>(result)[i] = bits;
    return inRange && (double(bfloatToFloat(bits)) == value || std::isnan(value));
  }
  default:
    return false;
  }
}

void NpyFile::read(DType type, void *result) const {
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t *bytes = file.data() + dataOffset + uint64_t(i) * uint64_t(width);
    bool fits;
    if (kind == 'f') {
      double value = loadFloat(bytes, width);
      if (isFloat(type))
        fits = storeFloat(value, type, result, i);
      else
        fits = std::abs(value) < 0x1p62 && value == double(int64_t(value)) &&
               storeInteger(int64_t(value), type, result, i);
    } else {
      int64_t value = 0;
      fits = loadInteger(bytes, kind, width, value);
      if (isFloat(type))
        fits = fits && std::abs(double(value)) < 0x1p62 && int64_t(double(value)) == value &&
               storeFloat(double(value), type, result, i);
      else
        fits = fits && storeInteger(value, type, result, i);
    }
    if (!fits)
      fail(file.path(), ": element ", i, " has a value that ", dtypeName(type), " does not hold exactly");
  }
}

void writeNpy(const std::string &path, DType type, const std::vector<int64_t> &shape, const void *data) {
  static constexpr const char *descriptions[] = {"<f4", "<f4", "<f2", "<f8", "<i8", "<i4", "|i1", "|b1"};
  std::string header = std::string("{'descr': '") + descriptions[type] + "', 'fortran_order': False, 'shape': (";
  int64_t count = 1;
  for (int64_t size : shape) {
    header += std::to_string(size) + ",";
    count *= size;
  }
  header += "), }";
  header.append(63 - (10 + header.size()) % 64, ' '); // the data begins at a multiple of 64 bytes
  header += '\n';
  const uint8_t length[2] = {uint8_t(header.size()), uint8_t(header.size() >> 8)};
  AtomicFile file(path);
  file.write(std::string_view("\x93NUMPY\x01\x00", 8));
  file.write(length, 2);
  file.write(header);
  if (type == DROVER_BF16) {
    std::vector<float> values(static_cast<size_t>(count));
    toFloat(data, type, count, values.data());
    file.write(values.data(), values.size() * 4);
  } else {
    file.write(data, uint64_t(count * byteSize(type)));
  }
  file.commit();
}

} // namespace drover::rt
