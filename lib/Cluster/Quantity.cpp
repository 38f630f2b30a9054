//===- Quantity.cpp - numbers with units ----------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cluster/Quantity.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace drover;
using namespace drover::cluster;

namespace {
struct Unit {
  const char *name;
  Quantity quantity;
  double factor;
  bool printed; // decimal, and the usual one of its size
};
// Of each quantity in ascending order of what is printed.
constexpr Unit kUnits[] = {{"ns", Quantity::Seconds, 1e-9, true},
                           {"us", Quantity::Seconds, 1e-6, true},
                           {"ms", Quantity::Seconds, 1e-3, true},
                           {"s", Quantity::Seconds, 1, true},
                           {"min", Quantity::Seconds, 60, false},
                           {"h", Quantity::Seconds, 3600, false},
                           {"d", Quantity::Seconds, 86400, false},
                           {"B", Quantity::Bytes, 1, true},
                           {"KB", Quantity::Bytes, 1e3, true},
                           {"MB", Quantity::Bytes, 1e6, true},
                           {"GB", Quantity::Bytes, 1e9, true},
                           {"TB", Quantity::Bytes, 1e12, true},
                           {"KiB", Quantity::Bytes, 1024., false},
                           {"MiB", Quantity::Bytes, 1048576., false},
                           {"GiB", Quantity::Bytes, 1073741824., false},
                           {"TiB", Quantity::Bytes, 1099511627776., false},
                           {"B/s", Quantity::BytesPerSecond, 1, true},
                           {"KB/s", Quantity::BytesPerSecond, 1e3, true},
                           {"MB/s", Quantity::BytesPerSecond, 1e6, true},
                           {"GB/s", Quantity::BytesPerSecond, 1e9, true},
                           {"TB/s", Quantity::BytesPerSecond, 1e12, true},
                           {"Mb/s", Quantity::BytesPerSecond, 1e6 / 8, false},
                           {"Gb/s", Quantity::BytesPerSecond, 1e9 / 8, false},
                           {"Tb/s", Quantity::BytesPerSecond, 1e12 / 8, false},
                           {"GFLOP/s", Quantity::FlopsPerSecond, 1e9, true},
                           {"TFLOP/s", Quantity::FlopsPerSecond, 1e12, true},
                           {"PFLOP/s", Quantity::FlopsPerSecond, 1e15, true},
                           {"W", Quantity::Watts, 1, true}};

const char *exampleOf(Quantity quantity) {
  switch (quantity) {
  case Quantity::Number:
    return "a number without a unit";
  case Quantity::Seconds:
    return "a time such as '5 us' or '10 min'";
  case Quantity::Bytes:
    return "bytes such as '80 GB' or '80 GiB'";
  case Quantity::BytesPerSecond:
    return "bytes a second such as '50 GB/s' or '400 Gb/s'";
  case Quantity::FlopsPerSecond:
    return "a rate such as '989 TFLOP/s'";
  case Quantity::Watts:
    return "a power such as '700 W'";
  }
  return "";
}
} // namespace

schedule::Result<double> cluster::parseQuantity(const std::string &text, Quantity quantity) {
  auto fault = [&] { return schedule::Error{"'" + text + "': expected " + exampleOf(quantity)}; };
  // strtod also takes hexadecimal numbers, infinities and leading spaces.
  size_t digits = text.find_first_not_of("0123456789.eE+-");
  if (text.empty() || digits == 0)
    return fault();
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  size_t length = end - text.c_str();
  if (length == 0 || length > digits || !std::isfinite(value))
    return fault();
  std::string unit = text.substr(length);
  if (!unit.empty() && unit[0] == ' ')
    unit.erase(0, 1);
  if (quantity == Quantity::Number)
    return unit.empty() ? schedule::Result<double>(value) : fault();
  for (const Unit &candidate : kUnits)
    if (candidate.quantity == quantity && unit == candidate.name)
      return value * candidate.factor;
  return fault();
}

std::string cluster::printQuantity(double value, Quantity quantity) {
  const Unit *chosen = nullptr;
  for (const Unit &unit : kUnits)
    if (unit.quantity == quantity && unit.printed && (!chosen || std::fabs(value) >= unit.factor))
      chosen = &unit;
  char text[64];
  std::snprintf(text, sizeof(text), "%.12g%s%s", chosen ? value / chosen->factor : value, chosen ? " " : "",
                chosen ? chosen->name : "");
  return text;
}
