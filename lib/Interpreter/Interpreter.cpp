//===- Interpreter.cpp - reference execution of tfm programs ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Interpreter/Interpreter.h"
#include "Kernels.h"

using namespace mlir;
using namespace drover;
using namespace drover::interpreter;

/// func.call nests at most this deep; recursion is no part of a tfm program.
static constexpr unsigned kMaxDepth = 64;

static const KernelTable &getKernels() {
  static const KernelTable table = [] {
    KernelTable result;
    addArithKernels(result);
    addMathKernels(result);
    addLayerKernels(result);
    addNormKernels(result);
    addAttentionKernels(result);
    addLossKernels(result);
    addRankKernels(result);
    addStructuralKernels(result);
    addIndexingKernels(result);
    return result;
  }();
  return table;
}

static std::string str(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << '[';
  llvm::interleave(shape, stream, "x");
  stream << ']';
  return text;
}

//===----------------------------------------------------------------------===//
// Call
//===----------------------------------------------------------------------===//

LogicalResult Call::allocate(unsigned i, ArrayRef<int64_t> shape) {
  FailureOr<ElementKind> kind = elementKind(op->getResult(i).getType());
  if (failed(kind))
    return fail("element type that no tensor holds");
  if (countElements(shape, options.maxElements) < 0)
    return fail("result of shape " + str(shape) + " is too large");
  results[i] = Tensor(*kind, shape);
  return success();
}

LogicalResult Call::shapeOf(unsigned i, std::optional<AffineMap> map, SmallVectorImpl<int64_t> &shape) {
  auto type = cast<RankedTensorType>(op->getResult(i).getType());
  shape.assign(type.getShape().begin(), type.getShape().end());
  if (type.hasStaticShape())
    return success();
  SmallVector<int64_t> sizes;
  if (!map || map->getNumResults() != shape.size() || failed(evaluateMap(*map, options.symbols, sizes)))
    return fail("a size depends on a symbol without a value");
  for (auto [size, value] : llvm::zip(shape, sizes))
    if (ShapedType::isDynamic(size))
      size = value;
  return success();
}

LogicalResult interpreter::evaluateMap(AffineMap map, ArrayRef<int64_t> symbols, SmallVectorImpl<int64_t> &values) {
  SmallVector<int64_t> sizes = tfm::evaluateSizes(map, symbols);
  values.append(sizes);
  return failure(llvm::any_of(sizes, ShapedType::isDynamic));
}

//===----------------------------------------------------------------------===//
// Interpreter
//===----------------------------------------------------------------------===//

Interpreter::Interpreter(InterpreterOptions options) : options(std::move(options)) {}

void Interpreter::bind(Value value, Tensor tensor) { bound[value] = std::make_shared<const Tensor>(std::move(tensor)); }

TensorRef Interpreter::find(Value value) const {
  if (TensorRef tensor = bound.lookup(value))
    return tensor;
  return computed.lookup(value);
}

FailureOr<TensorRef> Interpreter::evaluate(Value value) {
  // A depth-first walk with an explicit stack: programs are thousands of operations deep.
  SmallVector<Value> stack{value};
  while (!stack.empty()) {
    Value top = stack.back();
    if (find(top)) {
      stack.pop_back();
      continue;
    }
    Operation *op = top.getDefiningOp();
    if (!op) {
      auto argument = cast<BlockArgument>(top);
      if (!options.argument) {
        reason = "argument " + std::to_string(argument.getArgNumber()) + " has no value";
        return failure();
      }
      FailureOr<Tensor> tensor = options.argument(argument, reason);
      if (failed(tensor))
        return failure();
      bind(argument, std::move(*tensor));
      continue;
    }
    size_t waiting = stack.size();
    for (Value operand : op->getOperands())
      if (!find(operand))
        stack.push_back(operand);
    if (stack.size() == waiting && failed(execute(op)))
      return failure();
  }
  return find(value);
}

LogicalResult Interpreter::execute(Operation *op) {
  SmallVector<TensorRef> held;
  SmallVector<const Tensor *> operands;
  for (Value operand : op->getOperands()) {
    held.push_back(find(operand));
    operands.push_back(held.back().get());
  }
  SmallVector<Tensor> results(op->getNumResults());
  std::string why;
  LogicalResult status = failure();
  if (auto callOp = dyn_cast<func::CallOp>(op)) {
    status = call(callOp, results);
    why = reason;
  } else if (const Kernel *kernel = getKernels().find(op->getName().getStringRef())) {
    Call call{op, operands, results, options, why};
    status = (*kernel)(call);
  } else {
    why = "has no kernel";
  }
  if (succeeded(status)) {
    status = finish(op, results);
    why = reason;
  }
  if (failed(status)) {
    // A call passes on what its callee says.
    reason = isa<func::CallOp>(op) ? why : ("'" + op->getName().getStringRef() + "': " + why).str();
    return failure();
  }
  for (auto [value, tensor] : llvm::zip(op->getResults(), results))
    computed[value] = std::make_shared<const Tensor>(std::move(tensor));
  return success();
}

/// Rounds the results to their element types and holds them against their static types.
LogicalResult Interpreter::finish(Operation *op, MutableArrayRef<Tensor> results) {
  for (auto [value, tensor] : llvm::zip(op->getResults(), results)) {
    FailureOr<ElementKind> kind = elementKind(value.getType());
    if (failed(kind) || *kind != tensor.kind) {
      reason = "result has elements of another type";
      return failure();
    }
    if (auto type = dyn_cast<RankedTensorType>(value.getType());
        type && failed(verifyCompatibleShape(tensor.shape, type.getShape()))) {
      reason = "result has shape " + str(tensor.shape) + ", not " + str(type.getShape());
      return failure();
    }
    if (!isFloat(tensor.kind))
      for (int64_t &element : tensor.ints)
        element = wrapTo(element, tensor.kind);
    else if (!options.exact && tensor.kind != ElementKind::F64)
      for (double &element : tensor.floats)
        element = roundTo(element, tensor.kind);
  }
  return success();
}

LogicalResult Interpreter::call(func::CallOp op, SmallVectorImpl<Tensor> &results) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, op.getCalleeAttr());
  if (!callee || callee.isExternal() || callee.getNumArguments() != op.getNumOperands()) {
    reason = ("no function @" + op.getCallee() + " with these arguments").str();
    return failure();
  }
  if (depth >= kMaxDepth) {
    reason = "calls nest too deep";
    return failure();
  }
  Interpreter inner(options);
  inner.depth = depth + 1;
  for (auto [argument, operand] : llvm::zip(callee.getArguments(), op.getOperands()))
    inner.bound[argument] = find(operand);
  results.clear();
  for (Value value : callee.front().getTerminator()->getOperands()) {
    FailureOr<TensorRef> result = inner.evaluate(value);
    if (failed(result)) {
      reason = inner.reason;
      return failure();
    }
    results.push_back(**result);
  }
  if (results.size() != op.getNumResults()) {
    reason = ("@" + op.getCallee() + " returns another number of results").str();
    return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Whole functions
//===----------------------------------------------------------------------===//

LogicalResult drover::bindSymbols(AffineMap map, ArrayRef<int64_t> shape, SmallVectorImpl<int64_t> &symbols,
                                  std::string &reason) {
  if (symbols.size() < map.getNumSymbols())
    symbols.resize(map.getNumSymbols(), ShapedType::kDynamic);
  if (map.getNumResults() != shape.size()) {
    reason = "expected " + std::to_string(map.getNumResults()) + " dimensions, has " + std::to_string(shape.size());
    return failure();
  }
  for (auto [index, size] : llvm::enumerate(shape)) {
    AffineMap one = map.getSubMap(static_cast<unsigned>(index));
    // The one open symbol s of an expression a * s + b follows from its size.
    SmallVector<unsigned> open;
    for (unsigned symbol = 0; symbol < map.getNumSymbols(); ++symbol)
      if (ShapedType::isDynamic(symbols[symbol]) && one.getResult(0).isFunctionOfSymbol(symbol))
        open.push_back(symbol);
    if (open.size() > 1)
      continue;
    if (open.size() == 1) {
      SmallVector<int64_t> trial(symbols.begin(), symbols.end()), values;
      for (int64_t candidate : {0, 1, 2}) {
        trial[open[0]] = candidate;
        if (failed(evaluateMap(one, trial, values)))
          break;
      }
      if (values.size() != 3 || values[1] == values[0] || values[2] - values[1] != values[1] - values[0] ||
          (size - values[0]) % (values[1] - values[0]))
        continue;
      symbols[open[0]] = (size - values[0]) / (values[1] - values[0]);
    }
    SmallVector<int64_t> value;
    if (succeeded(evaluateMap(one, symbols, value)) && value[0] != size) {
      llvm::raw_string_ostream(reason) << "expected size " << value[0] << " in dimension " << index << ", has " << size;
      return failure();
    }
  }
  return success();
}

LogicalResult drover::interpret(func::FuncOp function, ArrayRef<Tensor> args, SmallVectorImpl<Tensor> &results,
                                const InterpreterOptions &options, std::string *reason) {
  std::string ignored;
  std::string &why = reason ? *reason : ignored;
  if (function.isExternal() || args.size() > function.getNumArguments()) {
    why = "expected a function with a body and at least as many arguments as given";
    return failure();
  }
  InterpreterOptions own = options;
  for (auto [index, tensor] : llvm::enumerate(args)) {
    if (auto map = function.getArgAttrOfType<AffineMapAttr>(index, tfm::TfmDialect::kShapeAttr))
      if (failed(bindSymbols(map.getValue(), tensor.shape, own.symbols, why))) {
        why = "argument " + std::to_string(index) + ": " + why;
        return failure();
      }
  }
  Interpreter interpreter(own);
  for (auto [index, tensor] : llvm::enumerate(args)) {
    auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[index]);
    FailureOr<ElementKind> kind = elementKind(function.getArgumentTypes()[index]);
    if (failed(kind) || *kind != tensor.kind ||
        (type && failed(verifyCompatibleShape(tensor.shape, type.getShape())))) {
      llvm::raw_string_ostream(why) << "argument " << index << ": expected " << function.getArgumentTypes()[index]
                                    << ", has " << str(tensor.shape) << " of " << name(tensor.kind);
      return failure();
    }
    interpreter.bind(function.getArgument(index), tensor);
  }
  // Values whose last use has passed are dropped, so that memory follows the live values.
  DenseMap<Value, unsigned> uses;
  Block &body = function.front();
  for (Operation &op : body)
    for (Value operand : op.getOperands())
      ++uses[operand];
  for (Operation &op : body.without_terminator()) {
    for (Value operand : op.getOperands())
      if (failed(interpreter.evaluate(operand))) {
        why = interpreter.reason;
        return failure();
      }
    if (failed(interpreter.execute(&op))) {
      why = interpreter.reason;
      return failure();
    }
    for (Value operand : op.getOperands())
      if (--uses[operand] == 0)
        interpreter.computed.erase(operand);
  }
  for (Value value : body.getTerminator()->getOperands()) {
    FailureOr<TensorRef> result = interpreter.evaluate(value);
    if (failed(result)) {
      why = interpreter.reason;
      return failure();
    }
    results.push_back(**result);
  }
  return success();
}

FailureOr<Tensor> drover::evaluate(Value value, ArrayRef<std::pair<Value, Tensor>> bindings,
                                   const InterpreterOptions &options, std::string *reason) {
  Interpreter interpreter(options);
  for (const auto &[key, tensor] : bindings)
    interpreter.bind(key, tensor);
  FailureOr<TensorRef> result = interpreter.evaluate(value);
  if (succeeded(result))
    return Tensor(**result);
  if (reason)
    *reason = interpreter.getReason().str();
  return failure();
}
