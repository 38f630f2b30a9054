//===- OptionParser.cpp - command line options of the executables ---------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/option_parser.h"
#include "drover/rt/text.h"
#include <algorithm>

namespace drover::rt {

void OptionParser::section(std::string title) {
  Option heading;
  heading.help = std::move(title);
  heading.isHeading = true;
  options.push_back(std::move(heading));
}

void OptionParser::custom(std::string name, std::string metavar, std::string help,
                          std::function<void(std::string_view)> set, bool repeatable) {
  Option option;
  option.name = std::move(name);
  option.metavar = std::move(metavar);
  option.help = std::move(help);
  option.set = std::move(set);
  option.repeatable = repeatable;
  options.push_back(std::move(option));
}

void OptionParser::text(std::string name, std::string *value, std::string metavar, std::string help) {
  custom(std::move(name), std::move(metavar), std::move(help), [value](std::string_view given) {
    if (given.empty())
      fail("expected a value that is not empty");
    *value = given;
  });
}

void OptionParser::integer(std::string name, int64_t *value, int64_t minimum, std::string metavar, std::string help,
                           int64_t maximum) {
  custom(std::move(name), std::move(metavar), std::move(help), [value, minimum, maximum](std::string_view given) {
    std::optional<int64_t> parsed = parseInteger(given);
    // Digits alone that are no number of 64 bits are too large a number.
    bool digits = !given.empty() && given.find_first_not_of("0123456789") == std::string_view::npos;
    if (parsed ? *parsed > maximum : digits)
      fail("expected an integer of at most ", maximum);
    if (!parsed || *parsed < minimum)
      fail("expected an integer of at least ", minimum);
    *value = *parsed;
  });
}

void OptionParser::positive(std::string name, double *value, std::string metavar, std::string help) {
  custom(std::move(name), std::move(metavar), std::move(help), [value](std::string_view given) {
    std::optional<double> parsed = parseNumber(given);
    if (!parsed || !(*parsed > 0))
      fail("expected a number above 0");
    *value = *parsed;
  });
}

void OptionParser::number(std::string name, double *value, double minimum, std::string metavar, std::string help) {
  custom(std::move(name), std::move(metavar), std::move(help), [value, minimum](std::string_view given) {
    std::optional<double> parsed = parseNumber(given);
    if (!parsed || *parsed < minimum)
      fail("expected a number of at least ", minimum);
    *value = *parsed;
  });
}

void OptionParser::flag(std::string name, bool *value, std::string help) {
  custom(std::move(name), "", std::move(help), [value](std::string_view) { *value = true; });
}

OptionParser::Option &OptionParser::find(const std::string &name) {
  std::vector<std::string> names;
  for (Option &option : options) {
    if (option.isHeading)
      continue;
    if (option.name == name)
      return option;
    names.push_back(option.name);
  }
  std::string nearest = nearestName(name, names), accepted;
  for (const std::string &candidate : names)
    accepted += " --" + candidate;
  fail("unknown option '--", name, "'", nearest.empty() ? "" : ", did you mean '--" + nearest + "'?", "; accepted are",
       accepted, " --help");
}

bool OptionParser::parse(const std::vector<std::string> &arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string &argument = arguments[i];
    if (argument == "--help" || argument == "-h")
      return false;
    if (argument.size() < 3 || argument.compare(0, 2, "--") != 0)
      fail("unexpected argument '", argument, "'; options are --NAME=VALUE, see --help");
    size_t equals = argument.find('=');
    std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    Option &option = find(name);
    if (option.given && !option.repeatable)
      fail("--", name, ": given twice");
    option.given = true;
    std::string value;
    if (option.metavar.empty()) {
      if (equals != std::string::npos)
        fail(argument, ": expected no value");
    } else if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < arguments.size() && arguments[i + 1].compare(0, 2, "--") != 0) {
      value = arguments[++i];
    } else {
      // At the end, or the next option stands where the value was forgotten.
      fail("--", name, ": expected a value, --", name, "=", option.metavar);
    }
    try {
      option.set(value);
    } catch (const Error &error) {
      fail("--", name, "=", value, ": ", error.what());
    }
  }
  return true;
}

bool OptionParser::given(std::string_view name) const {
  return std::any_of(options.begin(), options.end(),
                     [&](const Option &option) { return option.name == name && option.given; });
}

void OptionParser::require(std::string_view name, std::string_view needed) const {
  if (!given(name))
    return;
  for (const Option &option : options)
    if (option.name == needed && !option.given)
      fail("--", name, ": expected --", needed, "=", option.metavar, " with it");
}

std::string OptionParser::help() const {
  constexpr size_t column = 34;
  std::string text = "usage: " + usage + "\n\n" + summary + "\n";
  auto row = [&](const std::string &left, const std::string &help) {
    text += "  " + left +
            (left.size() + 3 > column ? "\n" + std::string(column, ' ') : std::string(column - left.size() - 2, ' '));
    for (char c : help)
      text += c == '\n' ? "\n" + std::string(column, ' ') : std::string(1, c);
    text += '\n';
  };
  for (const Option &option : options) {
    if (option.isHeading)
      text += "\n" + option.help + ":\n";
    else
      row("--" + option.name + (option.metavar.empty() ? "" : "=" + option.metavar), option.help);
  }
  row("--help", "print this and exit");
  return text;
}

} // namespace drover::rt
