//===- ImportOptions.cpp - the texts of options, the report -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Import/Onnx/Import.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace drover::onnx {

Error ImportOptions::addDim(StringRef text) {
  auto [name, value] = text.split('=');
  int64_t number;
  if (name.empty() || value.getAsInteger(10, number) || number < 0)
    return createStringError("--dim=" + text + ": expected NAME=VALUE with a number that is not negative");
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
  if (!inputs.try_emplace(name.str(), input).second)
    return createStringError("--input=" + text + ": '" + name + "' is given twice");
  return Error::success();
}

//===----------------------------------------------------------------------===//
// The report
//===----------------------------------------------------------------------===//

void ImportReport::print(raw_ostream &os) const {
  if (irVersion)
    os << "ONNX IR " << irVersion << ", opset " << opsets << ", from " << producer << ", " << nodes << " nodes\n";
  if (!symbols.empty())
    os << "symbolic sizes: " << join(symbols, ", ") << '\n';
  os << parameters.size() << " parameters\n";
  for (const Parameter &parameter : parameters) {
    os << "  " << parameter.name << " : " << parameter.shape;
    if (!parameter.initializer.empty() && parameter.initializer != parameter.name)
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
