//===- Config.cpp - typed access to a config.json ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Config.h"
#include "llvm/Support/FormatVariadic.h"

using namespace drover::huggingface;

const llvm::json::Value *Config::find(llvm::StringRef key) const {
  const llvm::json::Value *value = object.get(key);
  return value && value->kind() != llvm::json::Value::Null ? value : nullptr;
}

bool Config::has(llvm::StringRef key) const { return find(key); }

void Config::error(const llvm::Twine &message) {
  if (!hasError)
    mlir::emitError(loc) << message;
  hasError = true;
}

int64_t Config::size(llvm::StringRef key, std::optional<int64_t> fallback) {
  const llvm::json::Value *value = find(key);
  if (!value) {
    if (!fallback)
      error("config is missing '" + key + "', a positive integer");
    return fallback.value_or(1);
  }
  std::optional<int64_t> integer = value->getAsInteger();
  if (!integer || *integer <= 0 || *integer >= (int64_t(1) << 31)) {
    error("config expects '" + key + "' to be a positive integer below 2^31, not " +
          llvm::formatv("{0}", *value).str());
    return 1;
  }
  return *integer;
}

double Config::number(llvm::StringRef key, std::optional<double> fallback) {
  const llvm::json::Value *value = find(key);
  if (!value) {
    if (!fallback)
      error("config is missing '" + key + "', a number");
    return fallback.value_or(1);
  }
  std::optional<double> number = value->getAsNumber();
  if (!number) {
    error("config expects '" + key + "' to be a number, not " + llvm::formatv("{0}", *value).str());
    return 1;
  }
  return *number;
}

bool Config::flag(llvm::StringRef key, bool fallback) {
  const llvm::json::Value *value = find(key);
  if (!value)
    return fallback;
  std::optional<bool> flag = value->getAsBoolean();
  if (!flag)
    error("config expects '" + key + "' to be true or false, not " + llvm::formatv("{0}", *value).str());
  return flag.value_or(fallback);
}

std::string Config::text(llvm::StringRef key, std::optional<llvm::StringRef> fallback) {
  const llvm::json::Value *value = find(key);
  if (!value) {
    if (!fallback)
      error("config is missing '" + key + "', a string");
    return fallback.value_or("").str();
  }
  std::optional<llvm::StringRef> text = value->getAsString();
  if (!text)
    error("config expects '" + key + "' to be a string, not " + llvm::formatv("{0}", *value).str());
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
    error("config expects '" + key + "' to be a list of strings");
  return result;
}

const llvm::json::Object *Config::nested(llvm::StringRef key) {
  const llvm::json::Value *value = find(key);
  if (!value)
    return nullptr;
  const llvm::json::Object *result = value->getAsObject();
  if (!result)
    error("config expects '" + key + "' to be an object, not " + llvm::formatv("{0}", *value).str());
  return result;
}
