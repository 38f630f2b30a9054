//===- RaiseTest.cpp - raised programs compute the same ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Every program of the lit tests of raising is run by the interpreter on random inputs, as it is and after the whole
// pipeline.
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "drover/Interpreter/Interpreter.h"
#include "drover/Registration.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace drover;
using tfm::TfmDialect;

namespace {

/// The functions of a module's text at given symbols, before and after the pipeline.
class RaiseTest : public testing::Test {
protected:
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  std::mt19937 random{7};

  void SetUp() override {
    registerAllDialects(registry);
    context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  }

  SmallVector<int64_t> shapeOf(func::FuncOp function, unsigned index, ArrayRef<int64_t> symbols) {
    SmallVector<int64_t> shape(cast<RankedTensorType>(function.getArgumentTypes()[index]).getShape());
    if (auto map = function.getArgAttrOfType<AffineMapAttr>(index, TfmDialect::kShapeAttr)) {
      SmallVector<Attribute> constants, sizes;
      for (int64_t symbol : symbols)
        constants.push_back(IntegerAttr::get(IndexType::get(context.get()), symbol));
      EXPECT_TRUE(succeeded(map.getValue().constantFold(constants, sizes)));
      for (auto [dim, size] : llvm::enumerate(sizes))
        shape[dim] = cast<IntegerAttr>(size).getInt();
    }
    return shape;
  }

  /// Ids below 16, positions within the row, masks with the first key in: no row is masked wholly.
  Tensor randomTensor(func::FuncOp function, unsigned index, ArrayRef<int64_t> symbols) {
    auto type = cast<RankedTensorType>(function.getArgumentTypes()[index]);
    Tensor tensor(*elementKind(type.getElementType()), shapeOf(function, index, symbols));
    auto name = function.getArgAttrOfType<StringAttr>(index, TfmDialect::kInputAttr);
    int64_t length = tensor.shape.empty() ? 1 : tensor.shape.back();
    // Projections keep the size of activations.
    double deviation = tensor.rank() == 2 ? 1.0 / std::sqrt(static_cast<double>(length)) : 1.0;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (isFloat(tensor.kind))
        tensor.floats[i] = roundTo(std::normal_distribution<>(0.0, deviation)(random), tensor.kind);
      else if (name && name == "attention_mask")
        tensor.ints[i] = i % length == 0 || random() % 3 != 0;
      else if (name && name == "position_ids")
        tensor.ints[i] = random() % length;
      else
        tensor.ints[i] = random() % (tensor.kind == ElementKind::I1 ? 2 : 16);
    }
    return tensor;
  }

  static std::string keyOf(func::FuncOp function, unsigned index) {
    auto name = function.getArgAttrOfType<StringAttr>(index, TfmDialect::kParameterAttr);
    return name ? name.str() : std::string();
  }

  void compare(func::FuncOp before, func::FuncOp after, ArrayRef<int64_t> symbols) {
    SCOPED_TRACE(before.getName().str());
    std::map<std::string, Tensor> parameters;
    std::vector<Tensor> inputs, argsBefore, argsAfter;
    for (unsigned i = 0; i < before.getNumArguments(); ++i) {
      argsBefore.push_back(randomTensor(before, i, symbols));
      if (std::string key = keyOf(before, i); !key.empty())
        parameters[key] = argsBefore.back();
      else
        inputs.push_back(argsBefore.back());
    }
    for (unsigned i = 0, input = 0; i < after.getNumArguments(); ++i)
      argsAfter.push_back(keyOf(after, i).empty() ? inputs[input++] : parameters[keyOf(after, i)]);
    InterpreterOptions options;
    options.symbols.assign(symbols.begin(), symbols.end());
    SmallVector<Tensor> expected, actual;
    std::string reason;
    ASSERT_TRUE(succeeded(interpret(before, argsBefore, expected, options, &reason))) << reason;
    ASSERT_TRUE(succeeded(interpret(after, argsAfter, actual, options, &reason))) << reason;
    ASSERT_EQ(expected.size(), actual.size());
    for (auto [want, got] : llvm::zip(expected, actual)) {
      ASSERT_EQ(want.shape, got.shape);
      double largest = 1;
      for (int64_t i = 0; i < want.size(); ++i)
        largest = std::max(largest, std::abs(want.asDouble(i)));
      double bound = (want.kind == ElementKind::F16 ? 2e-3 : 2e-5) * largest;
      for (int64_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(want.asDouble(i), got.asDouble(i), bound) << "element " << i;
    }
  }

  void run(StringRef text) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, context.get());
    ASSERT_TRUE(module);
    OwningOpRef<ModuleOp> raised(cast<ModuleOp>(module->getOperation()->clone()));
    PassManager manager(context.get());
    tfm::buildRaisePipeline(manager);
    ASSERT_TRUE(succeeded(manager.run(*raised)));
    bool symbolic = (*module)->hasAttr(TfmDialect::kSymbolsAttr);
    for (auto before : module->getOps<func::FuncOp>()) {
      auto after = raised->lookupSymbol<func::FuncOp>(before.getName());
      if (!symbolic)
        compare(before, after, {});
      else
        for (SmallVector<int64_t> symbols : {SmallVector<int64_t>{2, 7}, {1, 1}, {3, 12}})
          compare(before, after, symbols);
    }
  }
};

TEST_F(RaiseTest, ProgramsOfTheLitTestsComputeTheSame) {
  std::error_code error;
  unsigned files = 0;
  for (llvm::sys::fs::directory_iterator it(DROVER_RAISE_TESTS, error), end; it != end && !error; it.increment(error)) {
    StringRef name = llvm::sys::path::filename(it->path());
    if (!name.starts_with("raise-") || !name.ends_with(".mlir"))
      continue;
    SCOPED_TRACE(name.str());
    auto buffer = llvm::MemoryBuffer::getFile(it->path());
    ASSERT_TRUE(static_cast<bool>(buffer));
    SmallVector<StringRef> chunks;
    (*buffer)->getBuffer().split(chunks, "// -----");
    for (StringRef chunk : chunks)
      run(chunk);
    ++files;
  }
  EXPECT_FALSE(error);
  EXPECT_GE(files, 8u);
}

} // namespace
