//===- TensorBuilder.h - typed tensor values and their primitives -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Every ONNX operator is written as a composition of these primitives. A primitive infers the
// symbolic shape of its result, computes the value where all operands are known, and emits `tfm`,
// `arith` or `math` otherwise. Shape arithmetic thus never reaches the program.
//
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_IMPORT_ONNX_TENSORBUILDER_H
#define DROVER_LIB_IMPORT_ONNX_TENSORBUILDER_H

#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "drover/Import/Onnx/Model.h"
#include "drover/Import/Onnx/SymbolicExpr.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <functional>

namespace drover::onnx {

using Shape = llvm::SmallVector<Expr, 4>;

/// The elements of a value known at import: integers and booleans as expressions over the symbols,
/// floats as numbers. `uniform`: one element that stands for all, of any (also symbolic) shape.
struct Known {
  bool uniform = false;
  std::vector<Expr> ints;
  std::vector<double> floats;
};

/// A tensor on its way through the importer.
struct Value {
  ElemType type = ElemType::Undefined;
  Shape shape;
  std::shared_ptr<const Known> known;
  /// An initializer that is not looked into; its role decides whether it becomes a parameter.
  const Tensor *initializer = nullptr;
  bool transposed = false;
  /// The initializer's name, or that of an Identity behind it: exporters merge equal tensors so.
  llvm::StringRef name;
  mlir::Value ir;
  /// Depends on a parameter or a float input: an activation, not mask or position arithmetic.
  bool hidden = false;

  bool isValid() const { return type != ElemType::Undefined; }
  int64_t rank() const { return shape.size(); }
  bool isStatic() const;
  std::vector<int64_t> dims() const;
  /// The element at a flat index of a known value.
  const Expr &intAt(size_t index) const { return known->ints[known->uniform ? 0 : index]; }
  double floatAt(size_t index) const { return known->floats[known->uniform ? 0 : index]; }
  /// The one value of a known float (or constant integer) tensor whose elements are equal.
  std::optional<double> splat() const;
};

enum class Unary { Neg, Abs, Sqrt, Exp, Log, Erf, Tanh, Sin, Cos, Floor, Ceil, Round, Not, Sign };
enum class Binary { Add, Sub, Mul, Div, Pow, Mod, Fmod, Min, Max, And, Or, Xor };
enum class Compare { Equal, Less, LessOrEqual };

class TensorBuilder {
public:
  TensorBuilder(SymbolTable &symbols, mlir::OpBuilder &builder, mlir::Location location)
      : symbols(symbols), builder(builder), location(location) {}

  SymbolTable &symbols;
  mlir::OpBuilder &builder;
  mlir::Location location;
  /// Turns an initializer into IR: a parameter or a constant.
  std::function<mlir::Value(const Value &)> materializeInitializer;

  // Errors stick: after the first, primitives return invalid values.
  void fail(const llvm::Twine &message);
  bool failed() const { return !error.empty() || restart; }
  std::string error;
  /// Two sizes were found equal; the import starts again with the symbol bound.
  bool restart = false;

  // Types.
  mlir::Type elementType(ElemType type) const;
  mlir::RankedTensorType tensorType(ElemType type, llvm::ArrayRef<Expr> shape) const;
  mlir::RankedTensorType tensorType(const Value &value) const { return tensorType(value.type, value.shape); }
  mlir::AffineExpr affine(const Expr &expr) const;
  mlir::AffineMapAttr affineMap(llvm::ArrayRef<Expr> exprs) const;
  /// The map of a shape with symbolic sizes; null for a static one.
  mlir::AffineMapAttr shapeMap(llvm::ArrayRef<Expr> shape) const;
  /// Numbers the free symbols s0, s1, .. in order; call once before emission.
  void numberSymbols();
  std::vector<std::string> symbolNames() const;

  // Known values.
  Value ints(llvm::ArrayRef<Expr> values, ElemType type = ElemType::Int64);
  Value scalar(ElemType type, double value);
  Value scalarInt(const Expr &value, ElemType type = ElemType::Int64);
  Value uniform(ElemType type, llvm::ArrayRef<Expr> shape, double value);
  /// A float or integer number of `like`'s type.
  Value number(const Value &like, double value) { return scalar(like.type, value); }
  Value fromKnown(ElemType type, llvm::ArrayRef<Expr> shape, Known known);
  Value iota(ElemType type, llvm::ArrayRef<Expr> shape, int64_t axis, const Expr &start = 0, int64_t step = 1);

  // Element-wise.
  Value unary(Unary kind, const Value &value);
  Value binary(Binary kind, const Value &lhs, const Value &rhs);
  Value compare(Compare kind, const Value &lhs, const Value &rhs);
  Value select(const Value &condition, const Value &lhs, const Value &rhs);
  Value cast(const Value &value, ElemType type);
  Value isNaN(const Value &value);
  Value add(const Value &lhs, const Value &rhs) { return binary(Binary::Add, lhs, rhs); }
  Value sub(const Value &lhs, const Value &rhs) { return binary(Binary::Sub, lhs, rhs); }
  Value mul(const Value &lhs, const Value &rhs) { return binary(Binary::Mul, lhs, rhs); }
  Value div(const Value &lhs, const Value &rhs) { return binary(Binary::Div, lhs, rhs); }
  Value sigmoid(const Value &value);

  // Shapes.
  Value reshape(const Value &value, llvm::ArrayRef<Expr> shape);
  Value transpose(const Value &value, llvm::ArrayRef<int64_t> permutation);
  Value broadcast(const Value &value, llvm::ArrayRef<Expr> shape);
  Value slice(const Value &value, llvm::ArrayRef<Expr> offsets, llvm::ArrayRef<int64_t> strides,
              llvm::ArrayRef<Expr> sizes);
  /// The part [begin, end) along one axis.
  Value sliceAxis(const Value &value, int64_t axis, const Expr &begin, const Expr &end);
  Value concat(llvm::ArrayRef<Value> values, int64_t axis);
  /// The NumPy broadcast of two shapes; sizes that must agree are unified.
  Shape broadcastShapes(llvm::ArrayRef<Expr> lhs, llvm::ArrayRef<Expr> rhs);
  Expr unify(const Expr &lhs, const Expr &rhs);
  Expr count(llvm::ArrayRef<Expr> shape) const;

  // Contractions, indices.
  Value reduce(tfm::ReduceKind kind, const Value &value, llvm::ArrayRef<int64_t> axes, bool keep);
  Value matmul(const Value &lhs, const Value &rhs, bool transposeLhs = false, bool transposeRhs = false);
  /// A contraction of the last dimension with a matrix: tfm.linear.
  Value linear(const Value &input, const Value &weight, bool inOut);
  Value biasAdd(const Value &input, const Value &bias);
  Value softmax(const Value &value, int64_t axis);
  Value gather(const Value &value, const Value &indices, int64_t axis);
  Value scatterNd(const Value &value, const Value &indices, const Value &updates);

  /// The IR of a value; known ones become constants here.
  mlir::Value materialize(const Value &value);
  /// Wraps the result of an op that the caller has made.
  Value wrap(mlir::Value ir, ElemType type, llvm::ArrayRef<Expr> shape, llvm::ArrayRef<const Value *> operands);
  /// Looks into a small initializer.
  static constexpr int64_t maxKnown = 1024;

private:
  mlir::Value materializeKnown(const Value &value);
  mlir::Value materializeInts(const Value &value);
  mlir::Attribute elementAttr(const Value &value, size_t index) const;
  Value likeOperands(const Value &result, llvm::ArrayRef<const Value *> operands) const;
  std::optional<Expr> foldInt(Binary kind, const Expr &lhs, const Expr &rhs, ElemType type);
  /// An element-wise function of two operands of one type at their common shape: by `fold` where both are known and
  /// small, which gets flat indices and is false where it cannot tell, else by `emit`.
  Value combine(ElemType type, const Value &lhs, const Value &rhs,
                llvm::function_ref<bool(size_t, size_t, Known &)> fold,
                llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> emit);
  bool foldable(llvm::ArrayRef<Expr> shape, llvm::ArrayRef<const Value *> operands) const;
  Value foldElements(ElemType type, llvm::ArrayRef<Expr> shape, llvm::ArrayRef<const Value *> operands,
                     llvm::function_ref<bool(llvm::ArrayRef<size_t>, Known &)> element);

  std::vector<unsigned> symbolOfAtom;
};

/// The number that `type` can hold nearest to `value`.
double roundTo(ElemType type, double value);
/// Calls `body` for every index of a static box, the last dimension fastest.
void forEachIndex(llvm::ArrayRef<int64_t> dims, llvm::function_ref<void(llvm::ArrayRef<int64_t>)> body);
int64_t flatIndex(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> index);
/// The flat index into a tensor of `dims` that broadcasts to the box of `index`.
int64_t broadcastIndex(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> index);
/// A known value of a tensor of a few elements.
Known decode(ElemType type, llvm::StringRef bytes, int64_t count);

} // namespace drover::onnx

#endif // DROVER_LIB_IMPORT_ONNX_TENSORBUILDER_H
