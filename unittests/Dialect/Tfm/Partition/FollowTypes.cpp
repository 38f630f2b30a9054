//===- FollowTypes.cpp - types behind a change ------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "FollowTypes.h"
#include "drover/Dialect/Tfm/IR/Partition.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace drover::tfm;

namespace {

class TypeFollower {
public:
  explicit TypeFollower(ModuleOp module) : symbols(module) {}

  void follow(func::FuncOp function) {
    for (Operation &op : function.front().without_terminator()) {
      if (auto call = dyn_cast<func::CallOp>(op))
        follow(call);
      else
        follow(op);
    }
    // A result of another shape stays a mismatch.
    TypeRange results = function.front().getTerminator()->getOperandTypes();
    if (areAlike(results, function.getResultTypes()))
      function.setFunctionType(FunctionType::get(function.getContext(), function.front().getArgumentTypes(), results));
  }

  bool hasChanged() const { return changed; }

private:
  static bool areAlike(TypeRange a, TypeRange b) {
    return llvm::equal(a, b, [](Type own, Type other) {
      auto x = dyn_cast<RankedTensorType>(own), y = dyn_cast<RankedTensorType>(other);
      return x && y && x.getShape() == y.getShape() && x.getElementType() == y.getElementType();
    });
  }

  void setType(Value value, Type type) {
    changed |= value.getType() != type;
    value.setType(type);
  }

  void follow(func::CallOp call) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (!areAlike(call.getOperandTypes(), callee.getArgumentTypes()))
      return;
    for (auto [argument, type] : llvm::zip(callee.getArguments(), call.getOperandTypes()))
      setType(argument, type);
    follow(callee);
    for (auto [result, type] : llvm::zip(call.getResults(), callee.getResultTypes()))
      setType(result, type);
  }

  void follow(Operation &op) {
    SmallVector<Distribution> operands, hints, results;
    for (Value operand : op.getOperands())
      operands.push_back(Distribution::of(operand));
    for (Value result : op.getResults())
      hints.push_back(Distribution::of(result));
    std::string reason;
    // What is made of attributes alone has to be right by itself: rules are of ops that their verifiers accept.
    if ((operands.empty() && failed(verify(&op))) || failed(inferDistributions(&op, operands, hints, results, reason)))
      return;
    for (auto [value, distribution] : llvm::zip(op.getResults(), results)) {
      auto type = cast<RankedTensorType>(value.getType());
      DistAttr encoding = distribution.getAttr(op.getContext());
      auto fails = [&] { return emitError(op.getLoc()); };
      if (!encoding || succeeded(encoding.verifyEncoding(type.getShape(), type.getElementType(), fails)))
        setType(value, distribution.encode(type));
    }
  }

  SymbolTable symbols;
  bool changed = false;
};

} // namespace

bool followTypes(ModuleOp module) {
  TypeFollower follower(module);
  follower.follow(module.lookupSymbol<func::FuncOp>("microbatch"));
  return follower.hasChanged();
}
