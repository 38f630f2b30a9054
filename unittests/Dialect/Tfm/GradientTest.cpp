//===- GradientTest.cpp - reverse-mode rules --------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"
#include "llvm/ADT/StringSet.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace drover;
using namespace drover::test;

namespace {

class Gradient : public testing::TestWithParam<GradientCase> {
protected:
  std::unique_ptr<MLIRContext> context = makeContext();
};

TEST_P(Gradient, AgreesWithFiniteDifferences) {
  // Own precision and the f32 that a sum over several uses asks for.
  for (const GradientTypes &types : {GradientTypes{"f32", "f32"}, GradientTypes{"f64", "f64"},
                                     GradientTypes{"bf16", "bf16"}, GradientTypes{"bf16", "f32"}}) {
    unsigned compared = 0;
    EXPECT_EQ(checkGradients(*context, GetParam(), types, 1, compared), "")
        << "for " << types.element << " with gradients in " << types.wanted;
  }
}

TEST_P(Gradient, NoticesAMutant) {
  unsigned compared = 0;
  checkGradients(*context, GetParam(), {"f32", "f32"}, 1, compared);
  if (!compared)
    return; // steps have a zero gradient: nothing to scale
  EXPECT_NE(checkGradients(*context, GetParam(), {"f32", "f32"}, 1.001, compared), "");
  EXPECT_NE(checkGradients(*context, GetParam(), {"f32", "f32"}, -1, compared), "");
}

INSTANTIATE_TEST_SUITE_P(All, Gradient, testing::ValuesIn(allCases()),
                         [](const auto &info) { return info.param.name; });

TEST(GradientCoverage, EveryDifferentiableOpHasACase) {
  std::unique_ptr<MLIRContext> context = makeContext();
  llvm::StringSet<> covered;
  for (const GradientCase &test : allCases()) {
    OwningOpRef<ModuleOp> module = parseCase(*context, test, "f32");
    ASSERT_TRUE(module) << test.name;
    Operation *op = findDifferentiable(*module);
    ASSERT_TRUE(op) << test.name;
    covered.insert(op->getName().getStringRef());
  }
  unsigned differentiable = 0;
  for (RegisteredOperationName name : context->getRegisteredOperations()) {
    if (!name.hasInterface<tfm::DifferentiableOpInterface>())
      continue;
    ++differentiable;
    EXPECT_TRUE(covered.contains(name.getStringRef())) << name.getStringRef().str() << " has no gradient case";
  }
  EXPECT_GE(differentiable, 60u);
}

/// The diagnostic of differentiating the one op of a function with gradients of all its results wanted.
std::string refusal(StringRef text, bool allResults) {
  std::unique_ptr<MLIRContext> context = makeContext();
  std::string message;
  ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  OwningOpRef<ModuleOp> module = parseCase(*context, {"", text.str()}, "f32");
  Operation *op = findDifferentiable(*module);
  OpBuilder builder(op->getBlock()->getTerminator());
  SmallVector<Value> resultGradients(op->getNumResults()), operandGradients;
  for (unsigned i = 0; i < (allResults ? op->getNumResults() : 1); ++i)
    resultGradients[i] = op->getResult(i);
  EXPECT_TRUE(failed(cast<tfm::DifferentiableOpInterface>(op).buildGradients(builder, resultGradients,
                                                                             op->getOperandTypes(), operandGradients)));
  return message;
}

TEST(GradientRefusal, Product) {
  EXPECT_EQ(refusal(R"(func.func @forward(%x: tensor<2x3xf32>) -> tensor<2xf32> {
      %0 = tfm.reduce %x {axes = array<i64: 1>, kind = 4 : i32} : tensor<2x3xf32> -> tensor<2xf32>
      return %0 : tensor<2xf32>
    })",
                    false),
            "'tfm.reduce' op has no gradient rule for kind prod; sum, mean, max and min have one");
}

TEST(GradientRefusal, DynamicShape) {
  EXPECT_EQ(refusal(R"(func.func @forward(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = math.exp %x : tensor<?xf32>
      return %0 : tensor<?xf32>
    })",
                    false),
            "'math.exp' op expects static shapes to be differentiated: run tfm-specialize first");
}

constexpr StringLiteral
    kMasked(R"(func.func @forward(%q: tensor<1x2x4xf32>, %mask: tensor<1x1x2x2xf32>) -> tensor<1x2x4xf32> {
      %0, %1 = tfm.attention %q, %q, %q mask %mask {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 1.0 : f64}
        : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x1x2x2xf32>) -> (tensor<1x2x4xf32>, tensor<1x1x2xf32>)
      return %0 : tensor<1x2x4xf32>
    })");

TEST(GradientRefusal, AttentionMask) {
  EXPECT_EQ(refusal(kMasked, false), "'tfm.attention' op has no rule for the gradient of its mask");
}

TEST(GradientRefusal, LogSumExp) {
  EXPECT_EQ(refusal(kMasked, true), "'tfm.attention' op has no rule for a gradient of log_sum_exp");
}

/// The gradient of the first operand of @forward's op, for a gradient of ones of the result.
std::vector<double> gradientAt(StringRef text, std::vector<double> x) {
  std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> module = parseCase(*context, {"", text.str()}, "f32");
  Operation *op = findDifferentiable(*module);
  OpBuilder builder(op->getBlock()->getTerminator());
  auto resultType = cast<RankedTensorType>(op->getResult(0).getType());
  Value ones = arith::ConstantOp::create(builder, op->getLoc(), DenseElementsAttr::get(resultType, 1.0f));
  SmallVector<Type> wanted(op->getNumOperands());
  wanted[0] = op->getOperand(0).getType();
  SmallVector<Value> gradients;
  EXPECT_TRUE(succeeded(cast<tfm::DifferentiableOpInterface>(op).buildGradients(builder, ones, wanted, gradients)));
  Tensor tensor(ElementKind::F32, {static_cast<int64_t>(x.size())});
  tensor.floats = std::move(x);
  FailureOr<Tensor> result = evaluate(gradients[0], {{op->getOperand(0), tensor}});
  EXPECT_TRUE(succeeded(result));
  return result->floats;
}

TEST(GradientAtKinks, ReduceMaxSharesAmongTies) {
  EXPECT_EQ(gradientAt(R"(func.func @forward(%x: tensor<4xf32>) -> tensor<f32> {
      %0 = tfm.reduce %x {axes = array<i64: 0>, kind = 1 : i32} : tensor<4xf32> -> tensor<f32>
      return %0 : tensor<f32>
    })",
                       {1, 3, 3, 2}),
            std::vector<double>({0, 0.5, 0.5, 0}));
}

TEST(GradientAtKinks, ReluHasNoneAtZero) {
  EXPECT_EQ(gradientAt(R"(func.func @forward(%x: tensor<3xf32>) -> tensor<3xf32> {
      %c = arith.constant dense<0.0> : tensor<3xf32>
      %0 = arith.maximumf %x, %c : tensor<3xf32>
      return %0 : tensor<3xf32>
    })",
                       {-1, 0, 1}),
            std::vector<double>({0, 0, 1}));
}

TEST(GradientAtKinks, AbsoluteValueHasNoneAtZero) {
  EXPECT_EQ(gradientAt(R"(func.func @forward(%x: tensor<3xf32>) -> tensor<3xf32> {
      %0 = math.absf %x : tensor<3xf32>
      return %0 : tensor<3xf32>
    })",
                       {-1, 0, 2}),
            std::vector<double>({-1, 0, 1}));
}

TEST(GradientAtKinks, SquareHasNoneAtZero) {
  EXPECT_EQ(gradientAt(R"(func.func @forward(%x: tensor<3xf32>) -> tensor<3xf32> {
      %c = arith.constant dense<[2.0, 0.0, 1.0]> : tensor<3xf32>
      %0 = math.powf %x, %c : tensor<3xf32>
      return %0 : tensor<3xf32>
    })",
                       {0, 0, 0}),
            std::vector<double>({0, 0, 1}));
}

} // namespace
