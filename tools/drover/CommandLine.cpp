//===- CommandLine.cpp - what a subcommand was told -----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CommandLine.h"
#include "Subcommands.h"
#include "drover/Pipelines/ImportModel.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Option/OptTable.h"
#include "llvm/Option/Option.h"

using namespace llvm;
using namespace llvm::opt;

namespace drover::tool {
namespace {

#define OPTTABLE_STR_TABLE_CODE
#include "Options.inc"
#undef OPTTABLE_STR_TABLE_CODE

#define OPTTABLE_PREFIXES_TABLE_CODE
#include "Options.inc"
#undef OPTTABLE_PREFIXES_TABLE_CODE

/// Options.td's flags.
enum OptionFlag : unsigned { Repeatable = 1 << 4 };

constexpr OptTable::Info kOptions[] = {
#define OPTION(...) LLVM_CONSTRUCT_OPT_INFO(__VA_ARGS__),
#include "Options.inc"
#undef OPTION
};

class OptionTable : public GenericOptTable {
public:
  OptionTable() : GenericOptTable(OptionStrTable, OptionPrefixesTable, kOptions) {}
};

const OptionTable &optionTable() {
  static const OptionTable table;
  return table;
}

/// The name as a user writes it before a value: `--task`.
StringRef nameOf(Option option) { return option.getPrefixedName().rtrim('='); }

/// `option=value`, or `-o value`.
std::string asGiven(Option option, StringRef value) {
  StringRef joint = option.getKind() == Option::JoinedClass ? "=" : " ";
  return (nameOf(option) + joint + value).str();
}

Error expectedValue(Option option) {
  return createStringError(nameOf(option) + ": expected " +
                           asGiven(option, optionTable().getOptionMetaVar(option.getID())));
}

Error unknownOption(const Subcommand &command, StringRef argument) {
  StringRef name = argument.split('=').first;
  Visibility visibility(command.visibility);
  std::string nearest, hint;
  if (name != argument && optionTable().findExact(name, nearest, visibility))
    return createStringError(argument + ": expected " + name + " without a value");
  // A switch of another command that this one has with a value.
  for (const OptTable::Info &info : kOptions)
    if (Option option = optionTable().getOption(info.ID); option.isValid() &&
                                                          option.getPrefixedName() == (argument + "=").str() &&
                                                          option.hasVisibilityFlag(command.visibility))
      return expectedValue(option);
  if (optionTable().findNearest(argument, nearest, visibility) <= std::max<size_t>(1, name.size() / 3))
    hint = ("; did you mean " + StringRef(nearest).split('=').first + "?").str();
  return createStringError(argument + ": unknown option" + hint + "; 'drover " + command.name +
                           " --help' lists what is accepted");
}

/// Given as `--tp 2`, not `--tp=2`.
bool standsApart(const Arg &argument) {
  const Arg *given = argument.getAlias() ? argument.getAlias() : &argument;
  return given->getOption().getKind() == Option::SeparateClass;
}

/// Whoever forgets a value gives the next option in its place. A value that is not a number and begins so stands behind
/// `=`.
bool isOption(StringRef value) {
  double number;
  return value.size() > 1 && value.starts_with("-") && value.getAsDouble(number);
}

Error checkOption(const OptionTable &table, const Arg &argument) {
  Option option = argument.getOption().getUnaliasedOption();
  if (option.getKind() == Option::FlagClass)
    return Error::success();
  StringRef value = argument.getValue();
  bool isForgotten = standsApart(argument) && isOption(value);
  if (!value.empty() && !isForgotten)
    return Error::success();
  return createStringError(nameOf(option) + ": expected " + asGiven(option, table.getOptionMetaVar(option.getID())) +
                           (isForgotten ? ", not '" + value + "'" : ""));
}

/// A forgotten value takes MODEL, too.
std::string whereModelWent(const InputArgList &arguments) {
  for (const Arg *argument : arguments) {
    Option option = argument->getOption().getUnaliasedOption();
    StringRef value = option.getKind() == Option::InputClass || option.getKind() == Option::FlagClass
                          ? StringRef()
                          : StringRef(argument->getValue());
    if (!value.empty() && standsApart(*argument) && modelKindOf(value) != ModelKind::Unknown)
      return ("; '" + value + "' is the value of " + nameOf(option) + " here").str();
  }
  return "";
}

/// One value an option, except where several add up.
Error checkTwice(const InputArgList &arguments) {
  DenseMap<unsigned, const Arg *> seen;
  for (const Arg *argument : arguments) {
    Option option = argument->getOption().getUnaliasedOption();
    if (option.getKind() != Option::JoinedClass && option.getKind() != Option::SeparateClass)
      continue;
    if (option.hasFlag(Repeatable))
      continue;
    auto [first, isFirst] = seen.try_emplace(option.getID(), argument);
    if (isFirst)
      continue;
    return createStringError(nameOf(option) + ": given twice, as '" + first->second->getValue() + "' and '" +
                             argument->getValue() + "'; expected one");
  }
  return Error::success();
}

} // namespace

Expected<CommandLine> CommandLine::parse(const Subcommand &command, ArrayRef<const char *> arguments) {
  const OptionTable &table = optionTable();
  unsigned missingIndex = 0, missingCount = 0;
  InputArgList parsed = table.ParseArgs(arguments, missingIndex, missingCount, Visibility(command.visibility));
  // Whoever asks for help gets it, whatever else is wrong.
  if (parsed.hasArg(OPT_help))
    return CommandLine(std::move(parsed));
  if (const Arg *unknown = parsed.getLastArgNoClaim(OPT_UNKNOWN))
    return unknownOption(command, unknown->getAsString(parsed));
  if (missingCount)
    for (const OptTable::Info &info : kOptions)
      if (table.getOptionPrefixedName(info.ID) == parsed.getArgString(missingIndex))
        return expectedValue(table.getOption(info.ID).getUnaliasedOption());
  for (const Arg *argument : parsed)
    if (Error error = checkOption(table, *argument))
      return error;
  if (Error error = checkTwice(parsed))
    return error;
  std::vector<std::string> models = parsed.getAllArgValues(OPT_INPUT);
  if (!command.takesModel) {
    if (!models.empty())
      return createStringError("expected options only, not '" + join(models, "' and '") + "'");
    return CommandLine(std::move(parsed));
  }
  if (models.empty())
    return createStringError("expected MODEL: an .onnx file, a Hugging Face config.json or an .mlir file" +
                             whereModelWent(parsed));
  if (models.size() > 1)
    return createStringError("expected one MODEL, not '" + join(models, "' and '") + "'");
  return CommandLine(std::move(parsed));
}

void CommandLine::printHelp(const Subcommand &command, raw_ostream &os) {
  std::string usage = ("drover " + command.name + (command.takesModel ? " MODEL" : "") + " [options]").str();
  optionTable().printHelp(os, usage.c_str(), command.summary, /*ShowHidden=*/false, /*ShowAllAliases=*/false,
                          Visibility(command.visibility));
  if (command.notes)
    os << '\n' << command.notes();
}

StringRef CommandLine::model() const { return arguments.getLastArgValue(OPT_INPUT); }

std::string CommandLine::text(OptionId option, StringRef otherwise) const {
  return arguments.getLastArgValue(option, otherwise).str();
}

static Error readOne(StringRef given, StringRef text, int64_t minimum, StringRef plural, int64_t &value) {
  if (to_integer(text, value, 10) && value >= minimum)
    return Error::success();
  // Digits alone that are no number of 64 bits are too large a number.
  if (!text.empty() && all_of(text, isDigit) && !to_integer(text, value, 10))
    return createStringError(given + ": expected " + plural + " below 2^63");
  return createStringError(given + ": expected " + plural + " of " + Twine(minimum) + " or more");
}

Error CommandLine::readInteger(OptionId option, int64_t minimum, int64_t &value) const {
  const Arg *argument = arguments.getLastArg(option);
  if (!argument)
    return Error::success();
  StringRef text = argument->getValue();
  return readOne(asGiven(optionTable().getOption(option), text), text, minimum, "an integer", value);
}

Error CommandLine::readIntegers(OptionId option, int64_t minimum, std::vector<int64_t> &values) const {
  const Arg *argument = arguments.getLastArg(option);
  if (!argument)
    return Error::success();
  values.clear();
  std::string given = asGiven(optionTable().getOption(option), argument->getValue());
  for (StringRef text : split(argument->getValue(), ',')) {
    if (Error error = readOne(given, text, minimum, "integers, separated by commas,", values.emplace_back()))
      return error;
  }
  return Error::success();
}

} // namespace drover::tool
