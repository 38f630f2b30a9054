//===- Config.h - typed access to a config.json -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_IMPORT_HUGGINGFACE_CONFIG_H
#define DROVER_LIB_IMPORT_HUGGINGFACE_CONFIG_H

#include "JsonKeys.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <vector>

namespace drover::huggingface {

/// As people write it.
std::string textOf(double value);

/// A configuration file. Getters record the first error and go on with a harmless value, so that a
/// reader states what it wants in one sequence and asks for failure once.
class Config {
public:
  /// `loc` is the file.
  Config(llvm::json::Object object, JsonKeys keys, mlir::FileLineColLoc loc)
      : object(std::move(object)), keys(std::move(keys)), loc(loc) {}

  bool has(llvm::StringRef key) const;
  /// Present, also as null.
  bool contains(llvm::StringRef key) const { return object.get(key); }
  /// A positive integer below 2^31; missing is an error unless `fallback` is given.
  int64_t size(llvm::StringRef key, std::optional<int64_t> fallback = {});
  /// The same of an integer that may be 0.
  int64_t count(llvm::StringRef key, int64_t fallback);
  /// A finite number; missing is an error unless `fallback` is given. null counts as missing.
  double number(llvm::StringRef key, std::optional<double> fallback = {});
  /// A number from 0 to 1.
  double rate(llvm::StringRef key, double fallback);
  bool flag(llvm::StringRef key, bool fallback);
  std::string text(llvm::StringRef key, std::optional<llvm::StringRef> fallback = {});
  /// A list of strings; empty where it is missing.
  std::vector<std::string> texts(llvm::StringRef key);
  /// A nested object, or null.
  const llvm::json::Object *nested(llvm::StringRef key);

  /// Reports at the key, or at the file where the key is not in it; the first report counts, later ones are dropped.
  void error(llvm::StringRef key, const llvm::Twine &message);
  /// An error that has been reported already.
  void fail() { hasError = true; }
  bool failed() const { return hasError; }
  /// Where a key stands, `outer/inner` within nested objects; else the file.
  mlir::Location locOf(llvm::StringRef key) const;

private:
  const llvm::json::Value *find(llvm::StringRef key) const;
  int64_t integer(llvm::StringRef key, int64_t minimum, llvm::StringRef kind, std::optional<int64_t> fallback);

  llvm::json::Object object;
  JsonKeys keys;
  mlir::FileLineColLoc loc;
  bool hasError = false;
};

} // namespace drover::huggingface

#endif // DROVER_LIB_IMPORT_HUGGINGFACE_CONFIG_H
