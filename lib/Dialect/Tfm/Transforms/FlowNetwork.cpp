//===- FlowNetwork.cpp - minimum cuts -------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "FlowNetwork.h"
#include <algorithm>
#include <queue>

using namespace drover::tfm;

unsigned FlowNetwork::addNode() {
  edgesOf.emplace_back();
  return edgesOf.size() - 1;
}

void FlowNetwork::addEdge(unsigned from, unsigned to, int64_t capacity) {
  edgesOf[from].push_back(edges.size());
  edges.push_back({to, capacity});
  edgesOf[to].push_back(edges.size());
  edges.push_back({from, 0});
}

void FlowNetwork::saturate(unsigned source, unsigned sink) {
  while (computeLevels(source, sink)) {
    next.assign(edgesOf.size(), 0);
    while (push(source, sink, kUnbounded))
      ;
  }
}

std::vector<bool> FlowNetwork::sinkSide(unsigned sink) const {
  std::vector<bool> reached(edgesOf.size());
  std::vector<unsigned> worklist{sink};
  reached[sink] = true;
  while (!worklist.empty()) {
    unsigned node = worklist.back();
    worklist.pop_back();
    for (unsigned edge : edgesOf[node]) {
      unsigned other = edges[edge].to;
      if (edges[edge ^ 1].capacity > 0 && !reached[other]) {
        reached[other] = true;
        worklist.push_back(other);
      }
    }
  }
  return reached;
}

bool FlowNetwork::computeLevels(unsigned source, unsigned sink) {
  level.assign(edgesOf.size(), -1);
  level[source] = 0;
  std::queue<unsigned> worklist({source});
  while (!worklist.empty()) {
    unsigned node = worklist.front();
    worklist.pop();
    for (unsigned edge : edgesOf[node])
      if (edges[edge].capacity > 0 && level[edges[edge].to] < 0) {
        level[edges[edge].to] = level[node] + 1;
        worklist.push(edges[edge].to);
      }
  }
  return level[sink] >= 0;
}

int64_t FlowNetwork::push(unsigned node, unsigned sink, int64_t limit) {
  if (node == sink)
    return limit;
  for (unsigned &index = next[node]; index < edgesOf[node].size(); ++index) {
    unsigned edge = edgesOf[node][index];
    if (edges[edge].capacity <= 0 || level[edges[edge].to] != level[node] + 1)
      continue;
    if (int64_t pushed = push(edges[edge].to, sink, std::min(limit, edges[edge].capacity))) {
      edges[edge].capacity -= pushed;
      edges[edge ^ 1].capacity += pushed;
      return pushed;
    }
  }
  return 0;
}

void ValueCut::add(mlir::Value value, int64_t cost) {
  Ends nodes{network.addNode(), network.addNode()};
  network.addEdge(nodes.in, nodes.out, cost);
  ends[value] = nodes;
  if (value.getDefiningOp())
    results.push_back(value);
}

void ValueCut::charge(mlir::Value value, int64_t cost) { network.addEdge(source, ends.lookup(value).in, cost); }

void ValueCut::addMaking(mlir::Value value, mlir::ValueRange operands) {
  for (mlir::Value operand : operands)
    network.addEdge(ends.lookup(operand).out, ends.lookup(value).in, FlowNetwork::kUnbounded);
}

void ValueCut::addNeed(mlir::Value value) { network.addEdge(ends.lookup(value).out, sink, FlowNetwork::kUnbounded); }

llvm::SetVector<mlir::Value> ValueCut::solve() {
  network.saturate(source, sink);
  std::vector<bool> sinkSide = network.sinkSide(sink);
  llvm::SetVector<mlir::Value> kept;
  for (mlir::Value value : results)
    if (Ends nodes = ends.lookup(value); !sinkSide[nodes.in] && sinkSide[nodes.out])
      kept.insert(value);
  return kept;
}
