//===- FlowNetwork.h - minimum cuts -----------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_FLOWNETWORK_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_FLOWNETWORK_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include <cstdint>
#include <vector>

namespace drover::tfm {

/// Maximum flow by Dinic's algorithm (Soviet Math. Doklady 11, 1970).
class FlowNetwork {
public:
  static constexpr int64_t kUnbounded = int64_t(1) << 60;

  unsigned addNode();
  void addEdge(unsigned from, unsigned to, int64_t capacity);
  void saturate(unsigned source, unsigned sink);
  /// The nodes from which the residual network reaches `sink`: the sink's side of the cut nearest to it.
  std::vector<bool> sinkSide(unsigned sink) const;

private:
  struct Edge {
    unsigned to;
    int64_t capacity;
  };

  bool computeLevels(unsigned source, unsigned sink);
  int64_t push(unsigned node, unsigned sink, int64_t limit);

  std::vector<Edge> edges; // an edge and its reverse are neighbours
  std::vector<std::vector<unsigned>> edgesOf;
  std::vector<int> level;
  std::vector<unsigned> next;
};

/// Which values of a body to keep, so that what is needed of the others can be made again: the cheapest cut.
class ValueCut {
public:
  ValueCut() : source(network.addNode()), sink(network.addNode()) {}

  /// A value that costs `cost` to keep.
  void add(mlir::Value value, int64_t cost);
  /// Making `value` again costs this much; unbounded: it cannot be made.
  void charge(mlir::Value value, int64_t cost = FlowNetwork::kUnbounded);
  /// `value` is made from `operands`.
  void addMaking(mlir::Value value, mlir::ValueRange operands);
  void addNeed(mlir::Value value);
  /// What is kept beside arguments, in the order in which it was added.
  llvm::SetVector<mlir::Value> solve();

private:
  /// Nodes where a value comes in and goes out.
  struct Ends {
    unsigned in, out;
  };

  FlowNetwork network;
  unsigned source, sink;
  llvm::DenseMap<mlir::Value, Ends> ends;
  llvm::SmallVector<mlir::Value> results;
};

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_FLOWNETWORK_H
