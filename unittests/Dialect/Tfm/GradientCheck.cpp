//===- GradientCheck.cpp - gradients against finite differences -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"
#include "drover/Registration.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace drover;
using namespace drover::test;

std::unique_ptr<MLIRContext> drover::test::makeContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect, tfm::TfmDialect>();
  context->allowUnregisteredDialects(); // test.* attributes
  return context;
}

std::vector<GradientCase> drover::test::allCases() {
  std::vector<GradientCase> result;
  for (auto &&cases : {layerCases(), attentionCases(), structuralCases(), upstreamCases()})
    result.insert(result.end(), cases.begin(), cases.end());
  return result;
}

static std::string replaced(StringRef text, StringRef from, StringRef to) {
  SmallVector<StringRef> parts;
  text.split(parts, from);
  return llvm::join(parts, to);
}

OwningOpRef<ModuleOp> drover::test::parseCase(MLIRContext &context, const GradientCase &test, StringRef element) {
  std::string text = replaced(replaced(test.text, "ELT", element), "LSE", element == "f64" ? "f64" : "f32");
  return parseSourceString<ModuleOp>(text, &context);
}

Operation *drover::test::findDifferentiable(ModuleOp module) {
  Operation *found = nullptr;
  for (Operation &op : module.lookupSymbol<func::FuncOp>("forward").front()) {
    if (!isa<tfm::DifferentiableOpInterface>(op))
      continue;
    if (found)
      return nullptr;
    found = &op;
  }
  return found;
}

/// The arguments of @forward: the same for every run of a case.
static std::vector<Tensor> makeArguments(func::FuncOp forward) {
  std::mt19937_64 random(1);
  std::vector<Tensor> result;
  for (unsigned i = 0; i < forward.getNumArguments(); ++i) {
    auto type = cast<RankedTensorType>(forward.getArgumentTypes()[i]);
    Tensor tensor(*elementKind(type), type.getShape());
    auto bound = [&](StringRef name, double otherwise) {
      auto attr = forward.getArgAttrOfType<FloatAttr>(i, name);
      return attr ? attr.getValueAsDouble() : otherwise;
    };
    bool floats = isFloat(tensor.kind);
    double low = bound("test.low", floats ? -1 : 0), high = bound("test.high", floats ? 1 : 2);
    auto values = forward.getArgAttrOfType<DenseI64ArrayAttr>(i, "test.values");
    std::uniform_real_distribution<double> distribution(low, high);
    for (int64_t j = 0; j < tensor.size(); ++j)
      tensor.setDouble(j, values ? static_cast<double>(values[j % values.size()])
                                 : (floats ? distribution(random) : std::floor(distribution(random))));
    result.push_back(std::move(tensor));
  }
  return result;
}

/// Builds @backward(arguments of @forward, gradients of its results) -> the gradients that are not zero, and says which
/// argument each belongs to.
static std::string buildBackward(ModuleOp module, StringRef wanted, SmallVectorImpl<unsigned> &arguments) {
  auto forward = module.lookupSymbol<func::FuncOp>("forward");
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto backward = cast<func::FuncOp>(builder.clone(*forward));
  backward.setName("backward");
  Block &body = backward.front();
  Operation *op = nullptr;
  for (Operation &candidate : body)
    if (isa<tfm::DifferentiableOpInterface>(candidate))
      op = &candidate;
  Operation *terminator = body.getTerminator();
  SmallVector<Value> resultGradients(op->getNumResults());
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    if (value != op->getResult(i))
      return "the case does not return the op's results in order";
    resultGradients[i] = body.addArgument(value.getType(), op->getLoc());
  }
  Type wantedElement = wanted == "bf16"  ? Type(builder.getBF16Type())
                       : wanted == "f64" ? Type(builder.getF64Type())
                                         : Type(builder.getF32Type());
  SmallVector<Type> operandTypes(op->getNumOperands());
  for (auto [i, value] : llvm::enumerate(op->getOperands())) {
    auto argument = dyn_cast<BlockArgument>(value);
    auto type = cast<RankedTensorType>(value.getType());
    if (argument && isa<FloatType>(type.getElementType()) &&
        !forward.getArgAttr(argument.getArgNumber(), "test.constant"))
      operandTypes[i] = type.clone(wantedElement);
  }
  SmallVector<Value> operandGradients;
  builder.setInsertionPoint(terminator);
  if (failed(cast<tfm::DifferentiableOpInterface>(op).buildGradients(builder, resultGradients, operandTypes,
                                                                     operandGradients)))
    return "no gradients were built";
  if (operandGradients.size() != op->getNumOperands())
    return "expected one gradient per operand";
  SmallVector<Value> returned;
  for (auto [i, gradient] : llvm::enumerate(operandGradients)) {
    if (!gradient)
      continue;
    if (gradient.getType() != operandTypes[i])
      return "operand " + std::to_string(i) + " has a gradient of another type than was wanted";
    returned.push_back(gradient);
    arguments.push_back(cast<BlockArgument>(op->getOperand(i)).getArgNumber());
  }
  terminator->setOperands(returned);
  backward.setType(FunctionType::get(module.getContext(), body.getArgumentTypes(), TypeRange(returned)));
  backward.removeArgAttrsAttr();
  return failed(verify(module)) ? "the gradients do not verify" : "";
}

/// <gradients of the results, results of @forward>
static double objective(func::FuncOp forward, ArrayRef<Tensor> arguments, ArrayRef<Tensor> seeds, std::string &error) {
  InterpreterOptions options;
  options.exact = true;
  SmallVector<Tensor> results;
  if (failed(interpret(forward, arguments, results, options, &error)))
    return NAN;
  double sum = 0;
  for (auto [result, seed] : llvm::zip(results, seeds))
    for (int64_t i = 0; i < result.size(); ++i)
      sum += result.floats[i] * seed.floats[i];
  return sum;
}

std::string drover::test::checkGradients(MLIRContext &context, const GradientCase &test, const GradientTypes &types,
                                         double mutant, unsigned &compared) {
  OwningOpRef<ModuleOp> module = parseCase(context, test, types.element);
  if (!module || !findDifferentiable(*module))
    return "expected a function with one differentiable op";
  SmallVector<unsigned> owners;
  if (std::string error = buildBackward(*module, types.wanted, owners); !error.empty())
    return error;
  auto forward = module->lookupSymbol<func::FuncOp>("forward");
  std::vector<Tensor> arguments = makeArguments(forward), seeds;
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> distribution(-1, 1);
  for (Type type : forward.getResultTypes()) {
    Tensor seed(*elementKind(type), cast<RankedTensorType>(type).getShape());
    for (double &value : seed.floats)
      value = distribution(random);
    seeds.push_back(std::move(seed));
  }
  std::vector<Tensor> all(arguments);
  all.insert(all.end(), seeds.begin(), seeds.end());
  InterpreterOptions options;
  options.exact = true;
  SmallVector<Tensor> gradients;
  std::string error;
  if (failed(interpret(module->lookupSymbol<func::FuncOp>("backward"), all, gradients, options, &error)))
    return error;

  for (unsigned i = 0; i < arguments.size(); ++i) {
    if (!isFloat(arguments[i].kind) || forward.getArgAttr(i, "test.constant"))
      continue;
    const Tensor *gradient = nullptr;
    for (auto [owner, tensor] : llvm::zip(owners, gradients))
      if (owner == i)
        gradient = &tensor;
    std::vector<double> expected;
    double scale = 0;
    constexpr double step = 1e-4;
    for (int64_t j = 0; j < arguments[i].size(); ++j) {
      double value = arguments[i].floats[j];
      arguments[i].floats[j] = value + step;
      double above = objective(forward, arguments, seeds, error);
      arguments[i].floats[j] = value - step;
      double below = objective(forward, arguments, seeds, error);
      arguments[i].floats[j] = value;
      expected.push_back((above - below) / (2 * step));
      scale = std::max(scale, std::fabs(expected.back()));
    }
    if (!error.empty())
      return error;
    compared += scale > 1e-3;
    for (int64_t j = 0; j < arguments[i].size(); ++j) {
      double actual = gradient ? mutant * gradient->floats[j] : 0;
      if (!(std::fabs(actual - expected[j]) <= 2e-6 * scale + 1e-8)) {
        llvm::raw_string_ostream(error) << "argument " << i << ", element " << j << ": gradient " << actual
                                        << ", finite difference " << expected[j];
        return error;
      }
    }
  }
  return "";
}
