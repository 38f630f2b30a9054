//===- InterpreterTest.cpp - the interpreter's interface --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Interpreter/Interpreter.h"
#include "drover/Registration.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace drover;

namespace {

class InterpreterTest : public testing::Test {
protected:
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;

  void SetUp() override {
    registerAllDialects(registry);
    context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  }
  func::FuncOp parse(StringRef text) {
    module = parseSourceString<ModuleOp>(text, context.get());
    return module->lookupSymbol<func::FuncOp>("f");
  }
  static Value returned(func::FuncOp function, unsigned i = 0) {
    return function.front().getTerminator()->getOperand(i);
  }
  static Tensor ints(std::vector<int64_t> values) {
    Tensor tensor(ElementKind::I64, {static_cast<int64_t>(values.size())});
    tensor.ints = std::move(values);
    return tensor;
  }
  static Tensor floats(std::vector<double> values, ElementKind kind = ElementKind::F32) {
    Tensor tensor(kind, {static_cast<int64_t>(values.size())});
    tensor.floats = std::move(values);
    return tensor;
  }
};

TEST_F(InterpreterTest, EvaluatesOnlyTheSlice) {
  func::FuncOp f = parse(R"(func.func @f(%a: tensor<2xi64>, %b: tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>) {
      %0 = arith.addi %a, %a : tensor<2xi64>
      %1 = arith.divsi %0, %b : tensor<2xi64>
      return %0, %1 : tensor<2xi64>, tensor<2xi64>
    })");
  FailureOr<Tensor> result = evaluate(returned(f), {{f.getArgument(0), ints({3, 4})}});
  ASSERT_TRUE(succeeded(result));
  EXPECT_EQ(result->ints, (std::vector<int64_t>{6, 8}));
  std::string reason;
  EXPECT_TRUE(failed(evaluate(returned(f, 1), {{f.getArgument(0), ints({3, 4})}}, {}, &reason)));
  EXPECT_EQ(reason, "argument 1 has no value");
  EXPECT_TRUE(failed(
      evaluate(returned(f, 1), {{f.getArgument(0), ints({3, 4})}, {f.getArgument(1), ints({1, 0})}}, {}, &reason)));
  EXPECT_NE(reason.find("'arith.divsi': element 1 has no result"), std::string::npos);
}

TEST_F(InterpreterTest, AsksForArgumentsOnce) {
  func::FuncOp f = parse(R"(func.func @f(%a: tensor<1xi64>, %unused: tensor<1xi64>) -> tensor<1xi64> {
      %0 = arith.muli %a, %a : tensor<1xi64>
      return %0 : tensor<1xi64>
    })");
  unsigned asked = 0;
  InterpreterOptions options;
  options.argument = [&](BlockArgument argument, std::string &) -> FailureOr<Tensor> {
    EXPECT_EQ(argument.getArgNumber(), 0u);
    ++asked;
    return ints({5});
  };
  SmallVector<Tensor> results;
  ASSERT_TRUE(succeeded(interpret(f, {}, results, options)));
  EXPECT_EQ(results[0].ints[0], 25);
  EXPECT_EQ(asked, 1u);
}

TEST_F(InterpreterTest, RoundsEachResultOnceUnlessExact) {
  func::FuncOp f = parse(R"(func.func @f(%a: tensor<1xbf16>, %b: tensor<1xbf16>) -> tensor<1xbf16> {
      %0 = arith.addf %a, %b : tensor<1xbf16>
      return %0 : tensor<1xbf16>
    })");
  std::vector<Tensor> arguments = {floats({256}, ElementKind::BF16), floats({1}, ElementKind::BF16)};
  SmallVector<Tensor> results;
  ASSERT_TRUE(succeeded(interpret(f, arguments, results)));
  EXPECT_EQ(results[0].floats[0], 256); // 257 lies between 256 and 258: to even
  InterpreterOptions options;
  options.exact = true;
  results.clear();
  ASSERT_TRUE(succeeded(interpret(f, arguments, results, options)));
  EXPECT_EQ(results[0].floats[0], 257);
}

TEST_F(InterpreterTest, ChecksArguments) {
  func::FuncOp f = parse("func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }");
  SmallVector<Tensor> results;
  std::string reason;
  EXPECT_TRUE(failed(interpret(f, {floats({1, 2, 3})}, results, {}, &reason)));
  EXPECT_EQ(reason, "argument 0: expected tensor<2xf32>, has [3] of f32");
}

TEST_F(InterpreterTest, FollowsCalls) {
  func::FuncOp f = parse(R"(
    func.func private @double(%a: tensor<1xf32>) -> tensor<1xf32> {
      %0 = arith.addf %a, %a : tensor<1xf32>
      return %0 : tensor<1xf32>
    }
    func.func @f(%a: tensor<1xf32>) -> tensor<1xf32> {
      %0 = call @double(%a) : (tensor<1xf32>) -> tensor<1xf32>
      %1 = call @double(%0) : (tensor<1xf32>) -> tensor<1xf32>
      return %1 : tensor<1xf32>
    })");
  SmallVector<Tensor> results;
  ASSERT_TRUE(succeeded(interpret(f, {floats({3})}, results)));
  EXPECT_EQ(results[0].floats[0], 12);
}

TEST_F(InterpreterTest, DeepProgramsNeedNoDeepStack) {
  std::string text = "func.func @f(%v0: tensor<1xi64>) -> tensor<1xi64> {\n";
  for (int i = 0; i < 20000; ++i)
    text += "  %v" + std::to_string(i + 1) + " = arith.addi %v" + std::to_string(i) + ", %v0 : tensor<1xi64>\n";
  func::FuncOp f = parse(text + "  return %v20000 : tensor<1xi64>\n}");
  FailureOr<Tensor> result = evaluate(returned(f), {{f.getArgument(0), ints({1})}});
  ASSERT_TRUE(succeeded(result));
  EXPECT_EQ(result->ints[0], 20001);
}

TEST_F(InterpreterTest, SymbolsFollowFromSizes) {
  Builder builder(context.get());
  auto s0 = builder.getAffineSymbolExpr(0), s1 = builder.getAffineSymbolExpr(1);
  SmallVector<int64_t> symbols;
  std::string reason;
  // s1 from the second size, s0 from 2 * s0 + s1.
  AffineMap map = AffineMap::get(0, 2, {s0 * 2 + s1, s1 + 1}, context.get());
  ASSERT_TRUE(succeeded(bindSymbols(map, {10, 5}, symbols, reason)));
  EXPECT_EQ(symbols[1], 4);
  ASSERT_TRUE(succeeded(bindSymbols(map, {10, 5}, symbols, reason)));
  EXPECT_EQ(symbols[0], 3);
  EXPECT_TRUE(failed(bindSymbols(map, {11, 5}, symbols, reason)));
  EXPECT_EQ(reason, "expected size 10 in dimension 0, has 11");
}

TEST_F(InterpreterTest, ReadsResourcesAndConstants) {
  func::FuncOp f = parse(R"(func.func @f() -> (tensor<3xf32>, tensor<2xi1>, tensor<2xf16>) {
      %0 = arith.constant dense_resource<weights> : tensor<3xf32>
      %1 = arith.constant dense<[true, false]> : tensor<2xi1>
      %2 = arith.constant dense<[1.5, -0.0625]> : tensor<2xf16>
      return %0, %1, %2 : tensor<3xf32>, tensor<2xi1>, tensor<2xf16>
    }
    {-# dialect_resources: { builtin: { weights: "0x040000000000803F0000004000004040" } } #-})");
  SmallVector<Tensor> results;
  ASSERT_TRUE(succeeded(interpret(f, {}, results)));
  EXPECT_EQ(results[0].floats, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(results[1].ints, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(results[2].floats, (std::vector<double>{1.5, -0.0625}));
  // And back into constants.
  for (auto [i, tensor] : llvm::enumerate(results)) {
    auto type = cast<RankedTensorType>(f.getResultTypes()[i]);
    std::string reason;
    FailureOr<Tensor> again = readConstant(makeConstant(type, tensor), reason);
    ASSERT_TRUE(succeeded(again));
    EXPECT_EQ(again->floats, tensor.floats);
    EXPECT_EQ(again->ints, tensor.ints);
  }
}

TEST_F(InterpreterTest, SourcesAreReadAsTheModelsValues) {
  SmallString<128> folder, path;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("drover", folder));
  path = folder;
  llvm::sys::path::append(path, "w.bin");
  std::error_code error;
  Tensor stored(ElementKind::F32, {3, 2}); // [[1, 2], [3, 4], [5, 6]], behind four other bytes
  for (int i = 0; i < 6; ++i)
    stored.floats[i] = i + 1;
  std::vector<char> bytes = encode(stored);
  {
    llvm::raw_fd_ostream file(path, error);
    file << "head" << StringRef(bytes.data(), bytes.size());
  }
  auto read = [&](StringRef attr, StringRef type, std::string &reason) {
    Attribute source = parseAttribute(attr, context.get());
    return readSource(cast<tfm::SourceAttr>(source), cast<RankedTensorType>(parseType(type, context.get())), folder,
                      reason);
  };
  std::string reason;
  context->loadDialect<tfm::TfmDialect>();
  FailureOr<Tensor> plain =
      read(R"(#tfm.source<file = "w.bin", offset = 4, bytes = 24, type = f32, transposed = false, plus = 0.0>)",
           "tensor<3x2xf32>", reason);
  ASSERT_TRUE(succeeded(plain)) << reason;
  EXPECT_EQ(plain->floats, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  FailureOr<Tensor> undone =
      read(R"(#tfm.source<file = "w.bin", offset = 4, bytes = 24, type = f32, transposed = true, plus = 1.0>)",
           "tensor<2x3xf32>", reason);
  ASSERT_TRUE(succeeded(undone)) << reason;
  EXPECT_EQ(undone->floats, (std::vector<double>{0, 2, 4, 1, 3, 5}));
  EXPECT_TRUE(
      failed(read(R"(#tfm.source<file = "w.bin", offset = 8, bytes = 24, type = f32, transposed = false, plus = 0.0>)",
                  "tensor<3x2xf32>", reason)));
  EXPECT_EQ(reason, "w.bin: expected 24 bytes at 8, the file has 28");
  EXPECT_TRUE(
      failed(read(R"(#tfm.source<file = "w.bin", offset = 4, bytes = 20, type = f32, transposed = false, plus = 0.0>)",
                  "tensor<3x2xf32>", reason)));
  EXPECT_EQ(reason, "w.bin: expected 24 bytes for the parameter, not 20");
  EXPECT_TRUE(failed(
      read(R"(#tfm.source<file = "absent.bin", offset = 4, bytes = 24, type = f32, transposed = false, plus = 0.0>)",
           "tensor<3x2xf32>", reason)));
  EXPECT_NE(reason.find("absent.bin"), std::string::npos);
  llvm::sys::fs::remove(path);
  llvm::sys::fs::remove(folder);
}

} // namespace
