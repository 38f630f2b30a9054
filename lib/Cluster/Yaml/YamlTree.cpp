//===- YamlTree.cpp - a YAML document with places -------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "YamlTree.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

using namespace drover;
using namespace drover::cluster;

namespace {
/// Cluster files are three levels deep; the parser recurses.
constexpr int kDeepest = 16;

class TreeBuilder {
public:
  TreeBuilder(const std::string &text, const std::string &path) : text(text), path(path) {}

  schedule::Result<YamlNode> run() {
    sources.setDiagHandler(&TreeBuilder::keepFirst, this);
    llvm::yaml::Stream stream(text, sources, /*ShowColors=*/false);
    YamlNode top;
    llvm::yaml::document_iterator document = stream.begin();
    if (document != stream.end()) {
      if (llvm::yaml::Node *root = document->getRoot())
        top = build(*root, 0);
      // What follows a document is only looked at where the document itself is in order.
      if (!error && !stream.failed() && ++document != stream.end())
        fail(endOf(top), "expected one document in a file");
    }
    if (error)
      return *error;
    if (stream.failed())
      return errorAt(path, {}, "is not YAML");
    return top;
  }

private:
  static void keepFirst(const llvm::SMDiagnostic &diagnostic, void *self) {
    auto &builder = *static_cast<TreeBuilder *>(self);
    std::string message = diagnostic.getMessage().str();
    if (!message.empty())
      message[0] = llvm::toLower(message[0]);
    llvm::StringRef trimmed = llvm::StringRef(message).rtrim(".!");
    builder.fail({static_cast<unsigned>(std::max(1, diagnostic.getLineNo())),
                  static_cast<unsigned>(std::max(0, diagnostic.getColumnNo()) + 1)},
                 trimmed.str());
  }

  void fail(Place place, const std::string &message) {
    if (!error)
      error = errorAt(path, place, message);
  }

  Place placeOf(const llvm::yaml::Node &node) {
    const char *start = node.getSourceRange().Start.getPointer();
    llvm::StringRef buffer = sources.getMemoryBuffer(sources.getMainFileID())->getBuffer();
    const char *begin = buffer.begin();
    // After a fault of the scanner nodes lie nowhere; the fault itself has been kept with its place.
    if (start < begin || start > buffer.end())
      return {};
    // The parser has flow collections and aliases start at the token after the one that opens them.
    char opening = llvm::isa<llvm::yaml::MappingNode>(node)    ? '{'
                   : llvm::isa<llvm::yaml::SequenceNode>(node) ? '['
                                                               : '*';
    const char *back = start;
    if (llvm::isa<llvm::yaml::AliasNode>(node)) {
      while (back > begin && *back != opening)
        --back;
    } else if (!llvm::isa<llvm::yaml::ScalarNode>(node)) {
      while (back > begin && llvm::isSpace(back[-1]))
        --back;
      back -= back > begin;
    }
    auto [line, column] = sources.getLineAndColumn(llvm::SMLoc::getFromPointer(*back == opening ? back : start));
    return {line, column};
  }

  static Place endOf(const YamlNode &node) { return node.items.empty() ? node.place : endOf(node.items.back()); }

  YamlNode build(llvm::yaml::Node &node, int depth) {
    YamlNode tree;
    tree.place = placeOf(node);
    llvm::StringRef tag = node.getRawTag();
    if (depth == kDeepest)
      fail(tree.place, "is nested more than " + std::to_string(kDeepest) + " levels deep");
    else if (!node.getAnchor().empty() || llvm::isa<llvm::yaml::AliasNode>(node) || !tag.empty())
      fail(tree.place, "anchors, aliases and tags are not part of a cluster file: expected a plain value");
    if (error)
      return tree;
    if (auto *mapping = llvm::dyn_cast<llvm::yaml::MappingNode>(&node)) {
      tree.kind = YamlNode::Kind::Mapping;
      for (llvm::yaml::KeyValueNode &entry : *mapping)
        if (!addEntry(tree, entry, depth))
          break;
    } else if (auto *sequence = llvm::dyn_cast<llvm::yaml::SequenceNode>(&node)) {
      tree.kind = YamlNode::Kind::Sequence;
      for (llvm::yaml::Node &item : *sequence) {
        tree.items.push_back(build(item, depth + 1));
        if (error)
          break;
      }
    } else if (auto *scalar = llvm::dyn_cast<llvm::yaml::ScalarNode>(&node)) {
      llvm::SmallString<64> storage;
      tree.kind = YamlNode::Kind::Scalar;
      tree.text = scalar->getValue(storage).str();
    } else if (auto *block = llvm::dyn_cast<llvm::yaml::BlockScalarNode>(&node)) {
      tree.kind = YamlNode::Kind::Scalar;
      tree.text = block->getValue().str();
    }
    return tree;
  }

  bool addEntry(YamlNode &tree, llvm::yaml::KeyValueNode &entry, int depth) {
    llvm::yaml::Node *key = entry.getKey();
    auto *name = key ? llvm::dyn_cast<llvm::yaml::ScalarNode>(key) : nullptr;
    if (!name) {
      fail(key ? placeOf(*key) : tree.place, "expected a key");
      return false;
    }
    llvm::SmallString<64> storage;
    std::string spelling = name->getValue(storage).str();
    for (const std::string &seen : tree.keys)
      if (seen == spelling)
        fail(placeOf(*key), "the key '" + spelling + "' is given twice");
    llvm::yaml::Node *value = error ? nullptr : entry.getValue();
    if (!value)
      return false;
    tree.keys.push_back(spelling);
    tree.keyPlaces.push_back(placeOf(*key));
    tree.items.push_back(build(*value, depth + 1));
    return !error;
  }

  const std::string &text, &path;
  llvm::SourceMgr sources;
  std::optional<schedule::Error> error;
};
} // namespace

schedule::Error cluster::errorAt(const std::string &path, Place place, const std::string &message) {
  return {path + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": error: " + message};
}

schedule::Result<YamlNode> cluster::parseYaml(const std::string &text, const std::string &path) {
  return TreeBuilder(text, path).run();
}
