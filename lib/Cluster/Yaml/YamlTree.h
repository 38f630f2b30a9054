//===- YamlTree.h - a YAML document with places -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CLUSTER_YAML_YAMLTREE_H
#define DROVER_LIB_CLUSTER_YAML_YAMLTREE_H

#include "drover/Schedule/Types.h"
#include <vector>

namespace drover::cluster {

/// Counted from 1.
struct Place {
  unsigned line = 1, column = 1;
};

/// One node of a document. LLVM's parser yields nodes once and in order; a tree lets a reader ask by key.
struct YamlNode {
  enum class Kind : uint8_t { Null, Scalar, Sequence, Mapping };
  Kind kind = Kind::Null;
  Place place;
  std::string text;            // of a scalar
  std::vector<YamlNode> items; // of a sequence, or the values of a mapping
  std::vector<std::string> keys;
  std::vector<Place> keyPlaces;
};

/// `FILE:LINE:COL: error: message`.
schedule::Error errorAt(const std::string &path, Place place, const std::string &message);

/// Parses a text of one document. Anchors, aliases and tags are refused.
schedule::Result<YamlNode> parseYaml(const std::string &text, const std::string &path);

} // namespace drover::cluster

#endif // DROVER_LIB_CLUSTER_YAML_YAMLTREE_H
