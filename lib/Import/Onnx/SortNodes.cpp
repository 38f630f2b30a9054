//===- SortNodes.cpp - order, missing values, cycles ----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Importer.h"
#include <queue>

using namespace llvm;

namespace drover::onnx {

/// What a graph inside a node reads from outside.
static void forEachCapture(const Graph &graph, function_ref<void(StringRef)> read) {
  StringSet<> own;
  for (const ValueInfo &input : graph.inputs)
    own.insert(input.name);
  for (const Tensor &tensor : graph.initializers)
    own.insert(tensor.name);
  for (const Node &node : graph.nodes)
    for (StringRef output : node.outputs)
      own.insert(output);
  auto outer = [&](StringRef name) {
    if (!own.contains(name))
      read(name);
  };
  for (const Node &node : graph.nodes)
    forEachRead(node, outer);
  for (const ValueInfo &output : graph.outputs)
    outer(output.name);
}

void forEachRead(const Node &node, function_ref<void(StringRef)> read) {
  for (StringRef input : node.inputs)
    if (!input.empty())
      read(input);
  for (const Attribute &attribute : node.attributes)
    if (attribute.g)
      forEachCapture(*attribute.g, read);
}

static std::string label(const Node &node) {
  StringRef name = !node.name.empty() ? node.name : node.outputs.empty() ? StringRef() : node.outputs.front();
  return (node.opType + " '" + name + "'").str();
}

Expected<std::vector<const Node *>> sortNodes(ArrayRef<Node> nodes, const StringSet<> &outer, StringRef where) {
  StringMap<size_t> producers;
  DenseSet<size_t> overridden;
  for (auto [index, node] : enumerate(nodes))
    for (StringRef output : node.outputs) {
      if (output.empty())
        continue;
      if (outer.contains(output) && where.empty())
        return createStringError("value '" + output + "' is defined twice, the second time by " + label(node));
      auto [place, inserted] = producers.try_emplace(output, index);
      // onnxruntime takes the last of several Constants of one name, and files in use rely on it.
      if (!inserted && node.opType == "Constant" && nodes[place->second].opType == "Constant") {
        overridden.insert(place->second);
        place->second = index;
        continue;
      }
      if (!inserted)
        return createStringError("value '" + output + "' is defined twice, by " +
                                 label(nodes[producers.lookup(output)]) + " and " + label(node));
    }
  // The least index first among those ready, so that a sorted list keeps its order.
  std::vector<unsigned> waiting(nodes.size(), 0);
  std::vector<std::vector<size_t>> readers(nodes.size());
  std::string dangling;
  for (auto [index, node] : enumerate(nodes)) {
    size_t reader = index;
    forEachRead(node, [&, &reading = node](StringRef name) {
      auto producer = producers.find(name);
      if (producer != producers.end()) {
        ++waiting[reader];
        readers[producer->second].push_back(reader);
      } else if (!outer.contains(name) && dangling.empty()) {
        dangling = (label(reading) + " reads '" + name + "', which nothing defines").str();
      }
    });
  }
  if (!dangling.empty())
    return createStringError(dangling);
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t index = 0; index < nodes.size(); ++index)
    if (!waiting[index])
      ready.push(index);
  std::vector<const Node *> order;
  while (!ready.empty()) {
    size_t index = ready.top();
    ready.pop();
    if (!overridden.contains(index))
      order.push_back(&nodes[index]);
    for (size_t reader : readers[index])
      if (--waiting[reader] == 0)
        ready.push(reader);
  }
  if (order.size() + overridden.size() == nodes.size())
    return order;
  for (auto [index, count] : enumerate(waiting))
    if (count)
      return createStringError("the graph has a cycle through " + label(nodes[index]));
  return order;
}

} // namespace drover::onnx
