//===- ImportOptions.cpp - option texts, .npy files, the report -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Importer.h"
#include "llvm/Support/Endian.h"

using namespace llvm;

namespace drover::onnx {

Error ImportOptions::addDim(StringRef text) {
  auto [name, value] = text.split('=');
  int64_t number;
  if (name.empty() || value.getAsInteger(10, number) || number < 1)
    return createStringError("--dim=" + text + ": expected NAME=VALUE with a positive number");
  auto [place, inserted] = dims.try_emplace(name.str(), number);
  if (!inserted && place->second != number)
    return createStringError("--dim=" + text + ": '" + name + "' is already " + Twine(place->second));
  return Error::success();
}

Error ImportOptions::addInput(StringRef text) {
  auto [name, value] = text.split('=');
  ConstantInput input;
  if (value == "ones")
    input.kind = ConstantInput::Kind::Ones;
  else if (value == "zeros")
    input.kind = ConstantInput::Kind::Zeros;
  else if (value == "arange")
    input.kind = ConstantInput::Kind::Arange;
  else if (value.ends_with(".npy"))
    input = {ConstantInput::Kind::File, value.str()};
  else
    return createStringError("--input=" + text + ": expected NAME=ones, zeros, arange or a .npy file");
  if (name.empty())
    return createStringError("--input=" + text + ": expected the name of an input before '='");
  inputs[name.str()] = input;
  return Error::success();
}

//===----------------------------------------------------------------------===//
// .npy
//===----------------------------------------------------------------------===//

/// The value of a key in the header, a Python dictionary in one line.
static StringRef headerValue(StringRef header, StringRef key) {
  size_t at = header.find(("'" + key + "':").str());
  return at == StringRef::npos ? StringRef() : header.drop_front(at + key.size() + 3).ltrim();
}

Expected<std::unique_ptr<Tensor>> readNpy(StringRef path, std::vector<std::unique_ptr<MemoryBuffer>> &buffers) {
  auto malformed = [&](const Twine &what) { return createStringError("'" + path + "': " + what); };
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return malformed(buffer.getError().message());
  StringRef bytes = (*buffer)->getBuffer();
  // Magic, version, length of the header (numpy.lib.format).
  if (!bytes.starts_with("\x93NUMPY") || bytes.size() < 12)
    return malformed("not a .npy file");
  bool wide = bytes[6] > 1;
  uint64_t length = wide ? support::endian::read32le(bytes.data() + 8) : support::endian::read16le(bytes.data() + 8);
  uint64_t start = wide ? 12 : 10;
  if (length > bytes.size() - start)
    return malformed("the header is cut off");
  StringRef header = bytes.substr(start, length);
  auto tensor = std::make_unique<Tensor>();
  StringRef descr = headerValue(header, "descr").ltrim('\'').take_until([](char c) { return c == '\''; });
  tensor->type = StringSwitch<ElemType>(descr)
                     .Case("<f4", ElemType::Float)
                     .Case("<f8", ElemType::Double)
                     .Case("<f2", ElemType::Float16)
                     .Case("<i8", ElemType::Int64)
                     .Case("<i4", ElemType::Int32)
                     .Cases({"|i1", "<i1"}, ElemType::Int8)
                     .Cases({"|u1", "<u1"}, ElemType::UInt8)
                     .Case("|b1", ElemType::Bool)
                     .Default(ElemType::Undefined);
  if (!byteSize(tensor->type))
    return malformed("elements of type '" + descr + "' are not supported, little-endian numbers are");
  if (headerValue(header, "fortran_order").starts_with("True"))
    return malformed("column-major arrays are not supported");
  StringRef shape = headerValue(header, "shape").drop_front().take_until([](char c) { return c == ')'; });
  SmallVector<StringRef> sizes;
  shape.split(sizes, ',', -1, /*KeepEmpty=*/false);
  int64_t count = 1;
  for (StringRef text : sizes) {
    int64_t size;
    if (text.trim().empty())
      continue;
    if (text.trim().getAsInteger(10, size) || size < 0 || MulOverflow(count, size, count))
      return malformed("the shape '" + shape + "' is not valid");
    tensor->dims.push_back(size);
  }
  StringRef body = bytes.drop_front(start + length);
  if (static_cast<uint64_t>(count) > body.size() || tensor->bytes() > body.size())
    return malformed("has " + Twine(body.size()) + " bytes of data, its shape needs " + Twine(tensor->bytes()));
  tensor->raw = body.take_front(tensor->bytes());
  buffers.push_back(std::move(*buffer));
  return tensor;
}

//===----------------------------------------------------------------------===//
// The report
//===----------------------------------------------------------------------===//

void ImportReport::print(raw_ostream &os) const {
  os << "ONNX IR " << irVersion << ", opset " << opsets << ", from " << producer << ", " << nodes << " nodes\n";
  if (!symbols.empty())
    os << "symbolic sizes: " << join(symbols, ", ") << '\n';
  os << parameters.size() << " parameters\n";
  for (const Parameter &parameter : parameters) {
    os << "  " << parameter.name << " : " << parameter.shape;
    if (parameter.initializer != parameter.name)
      os << " from '" << parameter.initializer << '\'';
    if (!parameter.note.empty())
      os << " (" << parameter.note << ')';
    os << '\n';
  }
  for (const Tie &tie : ties)
    os << "tied: " << tie.with << " is " << tie.name << " (--no-tie splits them)\n";
  for (const auto &[name, use] : constants)
    os << "constant: '" << name << "', " << use << '\n';
  for (const std::string &remark : remarks)
    os << "remark: " << remark << '\n';
}

} // namespace drover::onnx
