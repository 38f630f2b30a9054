//===- Config.h - typed access to a config.json -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_IMPORT_HUGGINGFACE_CONFIG_H
#define DROVER_LIB_IMPORT_HUGGINGFACE_CONFIG_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <vector>

namespace drover::huggingface {

/// A configuration file. Getters record the first error and go on with a harmless value, so that a
/// reader states what it wants in one sequence and asks for failure once.
class Config {
public:
  Config(llvm::json::Object object, mlir::Location loc) : object(std::move(object)), loc(loc) {}

  bool has(llvm::StringRef key) const;
  /// A positive integer below 2^31; missing is an error unless `fallback` is given.
  int64_t size(llvm::StringRef key, std::optional<int64_t> fallback = {});
  /// A number; missing is an error unless `fallback` is given. null counts as missing.
  double number(llvm::StringRef key, std::optional<double> fallback = {});
  bool flag(llvm::StringRef key, bool fallback);
  std::string text(llvm::StringRef key, std::optional<llvm::StringRef> fallback = {});
  /// A list of strings; empty where it is missing.
  std::vector<std::string> texts(llvm::StringRef key);
  /// A nested object, or null.
  const llvm::json::Object *nested(llvm::StringRef key);

  /// Reports at the file; the first report counts, later ones are dropped.
  void error(const llvm::Twine &message);
  /// An error that has been reported already.
  void fail() { hasError = true; }
  bool failed() const { return hasError; }
  mlir::Location getLoc() const { return loc; }

private:
  const llvm::json::Value *find(llvm::StringRef key) const;

  llvm::json::Object object;
  mlir::Location loc;
  bool hasError = false;
};

} // namespace drover::huggingface

#endif // DROVER_LIB_IMPORT_HUGGINGFACE_CONFIG_H
