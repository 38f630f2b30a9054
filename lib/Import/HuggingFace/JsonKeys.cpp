//===- JsonKeys.cpp - where the keys of a JSON text stand -----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "JsonKeys.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

using namespace llvm;
using namespace drover::huggingface;

namespace {
/// An object or a list that has begun.
struct Open {
  std::string path; // of its keys, with the separator; unused in lists
  StringSet<> keys;
};
} // namespace

/// The length of a string that begins with a quote, quotes included.
static size_t stringLength(StringRef text) {
  size_t i = 1;
  while (i < text.size() && text[i] != '"')
    i += text[i] == '\\' ? 2 : 1;
  return std::min(text.size(), i + 1);
}

static std::string unquote(StringRef quoted) {
  if (quoted.contains('\\')) {
    if (Expected<json::Value> value = json::parse(quoted))
      return value->getAsString().value_or("").str();
    else
      consumeError(value.takeError());
  }
  return quoted.drop_front().rtrim('"').str();
}

JsonKeys::JsonKeys(StringRef text) {
  constexpr size_t kDeepest = 64;
  std::vector<Open> open;
  std::string key; // the last one of the innermost object
  Place place{1, 1};
  size_t lineBegin = 0;
  for (size_t i = 0; i < text.size();) {
    char c = text[i];
    if (c == '"') {
      size_t length = stringLength(text.substr(i));
      bool isKey = text.substr(i + length).ltrim().starts_with(":");
      if (isKey && !open.empty()) {
        key = unquote(text.substr(i, length));
        place.column = i - lineBegin + 1;
        places.try_emplace(open.back().path + key, place);
        if (!open.back().keys.insert(key).second && !firstDuplicate)
          firstDuplicate = {key, place};
      }
      i += length;
      continue;
    }
    if (c == '{' || c == '[') {
      tooDeep = open.size() == kDeepest;
      if (tooDeep)
        return;
      open.push_back({open.empty() ? "" : open.back().path + key + "/", {}});
    } else if ((c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
    } else if (c == '\n') {
      ++place.line;
      lineBegin = i + 1;
    }
    ++i;
  }
}

std::optional<JsonKeys::Place> JsonKeys::find(StringRef path) const {
  auto found = places.find(path);
  return found == places.end() ? std::nullopt : std::optional(found->second);
}
