//===- option_parser.h - command line options of the executables -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_OPTION_PARSER_H
#define DROVER_RT_OPTION_PARSER_H

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace drover::rt {

/// A table of options, from which parsing, help and error messages follow. Options are `--name=VALUE` or
/// `--name VALUE`, flags `--name`.
class OptionParser {
public:
  OptionParser(std::string usage, std::string summary) : usage(std::move(usage)), summary(std::move(summary)) {}

  /// The heading of the options that follow in the help.
  void section(std::string title);

  void text(std::string name, std::string *value, std::string metavar, std::string help);
  void integer(std::string name, int64_t *value, int64_t minimum, std::string metavar, std::string help,
               int64_t maximum = std::numeric_limits<int64_t>::max());
  /// A number above 0.
  void positive(std::string name, double *value, std::string metavar, std::string help);
  void number(std::string name, double *value, double minimum, std::string metavar, std::string help);
  void flag(std::string name, bool *value, std::string help);
  /// `set` throws an Error that says what is wrong with the value; the option is named in front of it.
  void custom(std::string name, std::string metavar, std::string help, std::function<void(std::string_view)> set,
              bool repeatable = false);

  /// Throws Error at the first argument that is no option, or has a bad value. Returns false where help was asked.
  bool parse(const std::vector<std::string> &arguments);

  bool given(std::string_view name) const;
  /// Throws Error where `name` is given without `needed`, which alone gives it an effect.
  void require(std::string_view name, std::string_view needed) const;
  std::string help() const;

private:
  struct Option {
    std::string name, metavar, help;
    std::function<void(std::string_view)> set;
    bool repeatable = false;
    bool isHeading = false;
    bool given = false;
  };

  Option &find(const std::string &name);

  std::string usage, summary;
  std::vector<Option> options;
};

} // namespace drover::rt

#endif // DROVER_RT_OPTION_PARSER_H
