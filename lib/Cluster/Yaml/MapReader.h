//===- MapReader.h - a mapping whose keys are known -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CLUSTER_YAML_MAPREADER_H
#define DROVER_LIB_CLUSTER_YAML_MAPREADER_H

#include "YamlTree.h"
#include "drover/Cluster/Quantity.h"
#include <initializer_list>

namespace drover::cluster {

/// Keeps the first error of a file.
class FileErrors {
public:
  explicit FileErrors(std::string path) : path(std::move(path)) {}
  void report(Place place, const std::string &message) {
    if (!first)
      first = errorAt(path, place, message);
  }
  void take(const std::string &message) {
    if (!first)
      first = schedule::Error{message};
  }
  bool any() const { return first.has_value(); }
  const schedule::Error &error() const { return *first; }
  const std::string &getPath() const { return path; }

private:
  std::string path;
  std::optional<schedule::Error> first;
};

/// The bounds of a value, in SI units.
struct Bounds {
  double least, most;
  bool aboveLeast = false; // the least itself is not accepted
};
constexpr Bounds kFraction = {0, 1, true};

/// Reads the values of one mapping; the first fault goes to `errors`, and values keep what they were.
class MapReader {
public:
  /// `what` names the mapping in errors: `a level`. Keys that are not among `keys` are an error.
  MapReader(FileErrors &errors, const YamlNode &node, const char *what, std::initializer_list<const char *> keys);

  const YamlNode *find(const char *key) const;
  /// Null, with an error, where the key is missing.
  const YamlNode *require(const char *key);

  void readText(const char *key, std::string &value, bool required = true);
  void readQuantity(const char *key, double &value, Quantity quantity, Bounds bounds, bool required = true);
  void readCount(const char *key, int64_t &value, int64_t least, int64_t most, bool required = true);
  void readFlag(const char *key, bool &value);
  /// One of the words `accepted`.
  void readChoice(const char *key, std::string &value, std::initializer_list<const char *> accepted);
  /// The items of a list that is there and not empty, else none.
  const std::vector<YamlNode> &readList(const char *key, bool required = true);

  Place placeOf(const char *key) const;
  const YamlNode &getNode() const { return node; }

private:
  const YamlNode *scalar(const char *key, bool required);

  FileErrors &errors;
  const YamlNode &node;
  const char *what;
};

/// A quantity of a scalar anywhere, such as in a list: `name` is what errors call it.
bool readQuantityAt(FileErrors &errors, const YamlNode &node, const std::string &name, double &value, Quantity quantity,
                    Bounds bounds);

} // namespace drover::cluster

#endif // DROVER_LIB_CLUSTER_YAML_MAPREADER_H
