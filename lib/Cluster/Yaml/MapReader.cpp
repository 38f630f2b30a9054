//===- MapReader.cpp - a mapping whose keys are known ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "MapReader.h"
#include <algorithm>
#include <cmath>

using namespace drover;
using namespace drover::cluster;

namespace {
const char *nameOf(YamlNode::Kind kind) {
  constexpr const char *names[] = {"nothing", "a value", "a list", "a mapping"};
  return names[static_cast<size_t>(kind)];
}
} // namespace

MapReader::MapReader(FileErrors &errors, const YamlNode &node, const char *what,
                     std::initializer_list<const char *> keys)
    : errors(errors), node(node), what(what) {
  if (node.kind != YamlNode::Kind::Mapping) {
    errors.report(node.place, std::string(what) + " is " + nameOf(node.kind) + ": expected a mapping");
    return;
  }
  for (size_t i = 0; i < node.keys.size(); ++i) {
    if (std::any_of(keys.begin(), keys.end(), [&](const char *key) { return node.keys[i] == key; }))
      continue;
    std::string accepted;
    for (const char *key : keys)
      accepted += (accepted.empty() ? "" : ", ") + std::string(key);
    errors.report(node.keyPlaces[i], "unknown key '" + node.keys[i] + "' of " + what + ": expected one of " + accepted);
  }
}

const YamlNode *MapReader::find(const char *key) const {
  for (size_t i = 0; i < node.keys.size(); ++i)
    if (node.keys[i] == key)
      return &node.items[i];
  return nullptr;
}

const YamlNode *MapReader::require(const char *key) {
  const YamlNode *value = find(key);
  if (!value)
    errors.report(node.place, std::string(what) + " has no '" + key + "'");
  return value;
}

Place MapReader::placeOf(const char *key) const {
  const YamlNode *value = find(key);
  return value ? value->place : node.place;
}

const YamlNode *MapReader::scalar(const char *key, bool required) {
  const YamlNode *value = required ? require(key) : find(key);
  if (value && value->kind != YamlNode::Kind::Scalar) {
    errors.report(value->place, std::string("'") + key + "' is " + nameOf(value->kind) + ": expected one value");
    return nullptr;
  }
  return value;
}

void MapReader::readText(const char *key, std::string &value, bool required) {
  if (const YamlNode *found = scalar(key, required)) {
    if (found->text.empty())
      errors.report(found->place, std::string("'") + key + "' is empty: expected a name");
    value = found->text;
  }
}

bool cluster::readQuantityAt(FileErrors &errors, const YamlNode &node, const std::string &name, double &value,
                             Quantity quantity, Bounds bounds) {
  if (node.kind != YamlNode::Kind::Scalar) {
    errors.report(node.place, "'" + name + "' is " + nameOf(node.kind) + ": expected one value");
    return false;
  }
  schedule::Result<double> parsed = parseQuantity(node.text, quantity);
  if (!parsed) {
    errors.report(node.place, "'" + name + "' is " + parsed.error());
    return false;
  }
  if (*parsed < bounds.least || *parsed > bounds.most || (bounds.aboveLeast && *parsed == bounds.least)) {
    errors.report(node.place, "'" + name + "' is '" + node.text + "': expected " + (bounds.aboveLeast ? "above " : "") +
                                  printQuantity(bounds.least, quantity) + (bounds.aboveLeast ? " and up to " : " to ") +
                                  printQuantity(bounds.most, quantity));
    return false;
  }
  value = *parsed;
  return true;
}

void MapReader::readQuantity(const char *key, double &value, Quantity quantity, Bounds bounds, bool required) {
  if (const YamlNode *found = scalar(key, required))
    readQuantityAt(errors, *found, key, value, quantity, bounds);
}

void MapReader::readCount(const char *key, int64_t &value, int64_t least, int64_t most, bool required) {
  const YamlNode *found = scalar(key, required);
  double number = 0;
  if (!found || !readQuantityAt(errors, *found, key, number, Quantity::Number,
                                {static_cast<double>(least), static_cast<double>(most)}))
    return;
  if (number != std::floor(number))
    errors.report(found->place, std::string("'") + key + "' is '" + found->text + "': expected a whole number");
  value = static_cast<int64_t>(number);
}

void MapReader::readFlag(const char *key, bool &value) {
  const YamlNode *found = scalar(key, false);
  if (!found)
    return;
  if (found->text != "true" && found->text != "false")
    errors.report(found->place, std::string("'") + key + "' is '" + found->text + "': expected true or false");
  value = found->text == "true";
}

void MapReader::readChoice(const char *key, std::string &value, std::initializer_list<const char *> accepted) {
  const YamlNode *found = scalar(key, true);
  if (!found)
    return;
  value = found->text;
  std::string words;
  for (const char *word : accepted) {
    if (value == word)
      return;
    words += (words.empty() ? "" : ", ") + std::string(word);
  }
  errors.report(found->place, std::string("'") + key + "' is '" + value + "': expected one of " + words);
}

const std::vector<YamlNode> &MapReader::readList(const char *key, bool required) {
  static const std::vector<YamlNode> none;
  const YamlNode *found = required ? require(key) : find(key);
  if (!found)
    return none;
  if (found->kind != YamlNode::Kind::Sequence || found->items.empty()) {
    bool empty = found->kind == YamlNode::Kind::Sequence;
    errors.report(found->place, std::string("'") + key + "' is " + (empty ? "an empty list" : nameOf(found->kind)) +
                                    ": expected a list");
    return none;
  }
  return found->items;
}
