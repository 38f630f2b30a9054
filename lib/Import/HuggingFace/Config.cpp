//===- Config.cpp - typed access to a config.json ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Config.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace drover::huggingface;

std::string drover::huggingface::textOf(double value) {
  std::string result;
  llvm::raw_string_ostream(result) << llvm::format("%g", value);
  return result;
}

const llvm::json::Value *Config::find(llvm::StringRef key) const {
  const llvm::json::Value *value = object.get(key);
  return value && value->kind() != llvm::json::Value::Null ? value : nullptr;
}

bool Config::has(llvm::StringRef key) const { return find(key); }

mlir::Location Config::locOf(llvm::StringRef key) const {
  std::optional<JsonKeys::Place> place = keys.find(key);
  return place ? mlir::FileLineColLoc::get(loc.getContext(), loc.getFilename(), place->line, place->column) : loc;
}

void Config::error(llvm::StringRef key, const llvm::Twine &message) {
  if (!hasError)
    mlir::emitError(locOf(key)) << message;
  hasError = true;
}

int64_t Config::integer(llvm::StringRef key, int64_t minimum, llvm::StringRef kind, std::optional<int64_t> fallback) {
  const llvm::json::Value *value = find(key);
  if (!value) {
    if (!fallback)
      error(key, "config is missing '" + key + "', " + kind);
    return fallback.value_or(1);
  }
  std::optional<int64_t> integer = value->getAsInteger();
  if (!integer || *integer < minimum || *integer >= (int64_t(1) << 31)) {
    error(key, "config expects '" + key + "' to be " + kind + " below 2^31, not " + llvm::formatv("{0}", *value).str());
    return 1;
  }
  return *integer;
}

int64_t Config::size(llvm::StringRef key, std::optional<int64_t> fallback) {
  return integer(key, 1, "a positive integer", fallback);
}

int64_t Config::count(llvm::StringRef key, int64_t fallback) { return integer(key, 0, "an integer from 0", fallback); }

double Config::number(llvm::StringRef key, std::optional<double> fallback) {
  const llvm::json::Value *value = find(key);
  if (!value) {
    if (!fallback)
      error(key, "config is missing '" + key + "', a number");
    return fallback.value_or(1);
  }
  std::optional<double> number = value->getAsNumber();
  if (!number || !std::isfinite(*number)) {
    error(key, "config expects '" + key + "' to be a finite number, not " + llvm::formatv("{0}", *value).str());
    return 1;
  }
  return *number;
}

double Config::rate(llvm::StringRef key, double fallback) {
  double value = number(key, fallback);
  if (!(value >= 0 && value <= 1))
    error(key, "config expects '" + key + "' to be a rate from 0 to 1, not " + llvm::formatv("{0}", *find(key)).str());
  return value;
}

bool Config::flag(llvm::StringRef key, bool fallback) {
  const llvm::json::Value *value = find(key);
  if (!value)
    return fallback;
  std::optional<bool> flag = value->getAsBoolean();
  if (!flag)
    error(key, "config expects '" + key + "' to be true or false, not " + llvm::formatv("{0}", *value).str());
  return flag.value_or(fallback);
}

std::string Config::text(llvm::StringRef key, std::optional<llvm::StringRef> fallback) {
  const llvm::json::Value *value = find(key);
  if (!value) {
    if (!fallback)
      error(key, "config is missing '" + key + "', a string");
    return fallback.value_or("").str();
  }
  std::optional<llvm::StringRef> text = value->getAsString();
  if (!text)
    error(key, "config expects '" + key + "' to be a string, not " + llvm::formatv("{0}", *value).str());
  return text.value_or("").str();
}

std::vector<std::string> Config::texts(llvm::StringRef key) {
  const llvm::json::Value *value = find(key);
  if (!value)
    return {};
  std::vector<std::string> result;
  bool isList = value->getAsArray();
  if (isList)
    for (const llvm::json::Value &element : *value->getAsArray()) {
      std::optional<llvm::StringRef> text = element.getAsString();
      isList &= text.has_value();
      result.push_back(text.value_or("").str());
    }
  if (!isList)
    error(key, "config expects '" + key + "' to be a list of strings");
  return result;
}

const llvm::json::Object *Config::nested(llvm::StringRef key) {
  const llvm::json::Value *value = find(key);
  if (!value)
    return nullptr;
  const llvm::json::Object *result = value->getAsObject();
  if (!result)
    error(key, "config expects '" + key + "' to be an object, not " + llvm::formatv("{0}", *value).str());
  return result;
}
