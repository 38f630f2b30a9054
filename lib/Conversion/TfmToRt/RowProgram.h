//===- RowProgram.h - what a fused kernel computes --------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A fused kernel as a graph over one row of a domain of rows x columns. Nodes are values of an element, or of the
// row (perRow); reductions over the columns make row values, so that the graph falls into phases: a node of phase p
// needs reductions of phase p - 1. Sinks say what leaves the kernel.
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CONVERSION_TFMTORT_ROWPROGRAM_H
#define DROVER_LIB_CONVERSION_TFMTORT_ROWPROGRAM_H

#include "View.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <functional>

namespace drover::lower {

struct Domain {
  int64_t rows = 1, cols = 1; // cols is kDynamic in a flat body
  bool operator==(const Domain &other) const { return rows == other.rows && cols == other.cols; }
};

using NodeId = unsigned;

/// Builds the value of a node from its operands', all scalars or all vectors of one length.
using BuildFn = std::function<mlir::Value(mlir::ImplicitLocOpBuilder &, mlir::ValueRange)>;

enum class NodeKind { Constant, Index, Load, Compute, Round, RowReduce, CallAccumulates, RankIndex };
enum class RowReduction { Sum, Max, Min };

struct Node {
  Node(NodeKind kind, mlir::Type type) : kind(kind), type(type) {}

  NodeKind kind;
  mlir::Type type; // the compute type: f32 for the narrow floats
  llvm::SmallVector<NodeId, 4> operands;
  bool perRow = false;
  unsigned phase = 0;
  unsigned cost = 0; // of computing it again, in simple operations
  mlir::TypedAttr constant;
  mlir::Operation *definition = nullptr; // RankIndex: the op whose axes are meant
  Access access;                         // Load, Index
  mlir::Type storage;                    // Load: element type in memory; Round: the narrow type
  std::optional<int64_t> gatherStride;   // Load: operand 0 is an index with this stride
  int64_t gatherSize = 0;                // .. below this
  bool gatherFromEnd = false;            // negative indices count from gatherSize
  llvm::StringRef gatherName;            // of the op, for what is said of an index out of range
  BuildFn build;
  RowReduction reduction = RowReduction::Sum;
};

/// A value that leaves the kernel: an element or row value to a tensor, or a sum over the rows.
struct Sink {
  Sink(NodeId node, mlir::Value value) : node(node), value(value) {}

  NodeId node;
  mlir::Value value; // the tensor
  Access access;     // where it is stored; not for column sums
  bool columnSum = false;
  tfm::AccumulateOp accumulate; // a column sum that goes to this accumulator
};

struct RowProgram {
  Domain domain;
  std::vector<Node> nodes;
  std::vector<Sink> sinks;

  bool hasColumnSums() const;
  unsigned numPhases() const;
  /// True where the rows do not matter, so that the domain can be walked as one long row.
  bool isFlat() const;
};

/// Adds ops to a row program, in program order.
class RowProgramBuilder {
public:
  RowProgramBuilder(RowProgram &program, const Views &views, mlir::MLIRContext *context)
      : program(program), views(views), context(context) {}

  llvm::LogicalResult add(mlir::Operation *op);
  /// The value's elements, for a copy.
  NodeId element(mlir::Value value) { return load(value, Role::Element); }
  NodeId zero(mlir::Type type);
  void store(NodeId node, mlir::Value value, Role role);
  void columnSum(NodeId node, mlir::Value value, tfm::AccumulateOp accumulate);

  /// Values computed by the ops that were added.
  const llvm::DenseMap<mlir::Value, NodeId> &values() const { return produced; }

private:
  NodeId push(Node node);
  NodeId load(mlir::Value value, Role role, int64_t position = 0);
  NodeId loadView(const View &view, mlir::Type type, Role role, int64_t position);
  NodeId constant(mlir::TypedAttr value);
  NodeId constant(mlir::Type type, double value);
  NodeId columnIndex();
  NodeId shardOffset(tfm::ShardOffsetOp op);
  NodeId gather(mlir::Operation *op, const View &table, int64_t axis, Access access, NodeId index, bool fromEnd);
  NodeId compute(mlir::Type type, llvm::ArrayRef<NodeId> operands, BuildFn build, unsigned cost = 1);
  NodeId reduce(RowReduction kind, NodeId node);
  NodeId binary(llvm::StringRef name, NodeId a, NodeId b);
  NodeId unary(llvm::StringRef name, NodeId a, unsigned cost);
  NodeId add(NodeId a, NodeId b) { return binary("arith.addf", a, b); }
  NodeId sub(NodeId a, NodeId b) { return binary("arith.subf", a, b); }
  NodeId mul(NodeId a, NodeId b) { return binary("arith.mulf", a, b); }
  NodeId div(NodeId a, NodeId b) { return binary("arith.divf", a, b); }
  NodeId exp(NodeId a) { return unary("math.exp", a, 20); }
  NodeId convert(NodeId a, mlir::Type type);
  NodeId sigmoid(NodeId a);
  void define(mlir::Value result, NodeId node);

  NodeId copySource(mlir::Operation *view);
  llvm::LogicalResult addElementwise(mlir::Operation *op);
  void addRmsNorm(tfm::RmsNormOp op);
  void addRmsNormGrad(tfm::RmsNormGradOp op);
  void addLayerNorm(tfm::LayerNormOp op);
  void addLayerNormGrad(tfm::LayerNormGradOp op);
  void addGelu(mlir::Operation *op, tfm::GeluKind kind, bool gradient);
  void addEmbedding(tfm::EmbeddingOp op);
  void addLogits(mlir::Operation *op);
  void addSoftmax(tfm::SoftmaxOp op);
  void addReduce(tfm::ReduceOp op);
  void addOptimizer(mlir::Operation *op);
  NodeId mean(NodeId a);
  NodeId reciprocalRoot(NodeId variance, double eps);
  mlir::Type arithmeticType(mlir::Value value);

  RowProgram &program;
  const Views &views;
  mlir::MLIRContext *context;
  llvm::DenseMap<mlir::Value, NodeId> produced;
};

/// f32 for the narrow floats, the type itself otherwise.
mlir::Type computeType(mlir::Type type);
/// operands[0] ? operands[1] : operands[2]
BuildFn selectNode();
/// True for bf16 and f16.
bool isNarrowFloat(mlir::Type type);

/// True for a product of matrices of one element each: what partitioning makes of arithmetic on pending gradients.
bool isElementProduct(mlir::Operation *op);

/// The domain of an op that a row kernel can compute; none for other ops.
std::optional<Domain> rowDomain(mlir::Operation *op, const Views &views);
Role operandRole(mlir::OpOperand &operand, const Views &views);
/// Element, Row (one value a row) or Column (summed over the rows).
Role resultRole(mlir::OpResult result, const Views &views);

} // namespace drover::lower

#endif // DROVER_LIB_CONVERSION_TFMTORT_ROWPROGRAM_H
