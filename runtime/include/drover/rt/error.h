//===- error.h - how the runtime reports failures ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Inside the runtime a failure is an exception of type Error whose text is the whole diagnostic; main prints it
// and exits. Nothing is thrown across the C ABI: code that compiled bodies call ends the rank instead.
#ifndef DROVER_RT_ERROR_H
#define DROVER_RT_ERROR_H

#include <sstream>
#include <stdexcept>
#include <string>

namespace drover::rt {

class Error : public std::runtime_error {
public:
  explicit Error(const std::string &message) : std::runtime_error(message) {}
};

/// Another rank has failed, and this one ends for that: the other's error is the reason.
class EndedElsewhere : public Error {
public:
  using Error::Error;
};

/// Joins the parts into one string, as an ostream prints them.
template <typename... Parts> std::string concat(const Parts &...parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

template <typename... Parts> [[noreturn]] void fail(const Parts &...parts) { throw Error(concat(parts...)); }

} // namespace drover::rt

#endif // DROVER_RT_ERROR_H
