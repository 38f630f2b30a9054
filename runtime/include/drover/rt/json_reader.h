//===- json_reader.h - JSON values that know where they stand ---*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A thin reader over nlohmann::json whose every failure is an Error that names the document and the path within.
#ifndef DROVER_RT_JSON_READER_H
#define DROVER_RT_JSON_READER_H

#include "drover/rt/error.h"
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace drover::rt {

class JsonReader {
public:
  JsonReader(const nlohmann::json &value, std::string path) : value(value), path(std::move(path)) {}

  [[noreturn]] void failed(const std::string &expected) const { fail(path, ": expected ", expected); }

  bool isObject() const { return value.is_object(); }
  const nlohmann::json &raw() const { return value; }
  bool has(const char *key) const { return value.is_object() && value.contains(key); }
  JsonReader at(const char *key) const {
    if (!has(key))
      fail(path, ": no '", key, "'");
    return {value[key], path + "." + key};
  }

  std::string text() const {
    if (!value.is_string())
      failed("a string");
    return value.get<std::string>();
  }
  bool boolean() const {
    if (!value.is_boolean())
      failed("true or false");
    return value.get<bool>();
  }
  double number() const {
    if (!value.is_number())
      failed("a number");
    return value.get<double>();
  }
  int64_t integer(int64_t minimum = 0, int64_t maximum = std::numeric_limits<int64_t>::max()) const {
    bool fits = value.is_number_unsigned() ? value.get<uint64_t>() <= uint64_t(std::numeric_limits<int64_t>::max())
                                           : value.is_number_integer();
    if (!fits || value.get<int64_t>() < minimum || value.get<int64_t>() > maximum)
      failed(concat("an integer from ", minimum, " to ", maximum));
    return value.get<int64_t>();
  }

  std::string textOr(const char *key, const std::string &absent) const { return has(key) ? at(key).text() : absent; }
  int64_t integerOr(const char *key, int64_t absent) const { return has(key) ? at(key).integer() : absent; }

  std::vector<JsonReader> elements() const {
    if (!value.is_array())
      failed("a list");
    std::vector<JsonReader> result;
    for (size_t i = 0; i < value.size(); ++i)
      result.emplace_back(value[i], path + "[" + std::to_string(i) + "]");
    return result;
  }
  std::vector<int64_t> integers() const {
    std::vector<int64_t> result;
    for (const JsonReader &element : elements())
      result.push_back(element.integer());
    return result;
  }
  std::vector<std::pair<std::string, JsonReader>> members() const {
    if (!value.is_object())
      failed("an object");
    std::vector<std::pair<std::string, JsonReader>> result;
    for (auto &[key, member] : value.items())
      result.emplace_back(key, JsonReader(member, path + "." + key));
    return result;
  }

private:
  const nlohmann::json &value;
  std::string path;
};

} // namespace drover::rt

#endif // DROVER_RT_JSON_READER_H
