//===- JsonKeys.h - where the keys of a JSON text stand ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_IMPORT_HUGGINGFACE_JSONKEYS_H
#define DROVER_LIB_IMPORT_HUGGINGFACE_JSONKEYS_H

#include "llvm/ADT/StringMap.h"
#include <optional>
#include <string>

namespace drover::huggingface {

/// What a parsed value no longer says: the places of keys, keys given twice, and how deep the text nests. In a text
/// that is no JSON the depth alone means something.
class JsonKeys {
public:
  struct Place {
    unsigned line = 0, column = 0; // from 1
  };
  struct Duplicate {
    std::string key;
    Place place;
  };

  explicit JsonKeys(llvm::StringRef text);

  /// The key of an object within objects is `outer/inner`.
  std::optional<Place> find(llvm::StringRef path) const;
  const std::optional<Duplicate> &duplicate() const { return firstDuplicate; }
  /// Deeper than any configuration. The parser recurses: a file of brackets must not exhaust the stack.
  bool nestsTooDeep() const { return tooDeep; }

private:
  llvm::StringMap<Place> places;
  std::optional<Duplicate> firstDuplicate;
  bool tooDeep = false;
};

} // namespace drover::huggingface

#endif // DROVER_LIB_IMPORT_HUGGINGFACE_JSONKEYS_H
