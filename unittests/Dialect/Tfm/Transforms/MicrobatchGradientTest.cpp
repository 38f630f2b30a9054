//===- MicrobatchGradientTest.cpp - gradients of whole models ---*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The microbatch program is executed by the reference interpreter, in exact (f64) arithmetic unless a test is about
// bf16, and held against finite differences of the loss and against itself in every mode.
//===----------------------------------------------------------------------===//
#include "drover/Interpreter/Interpreter.h"
#include "drover/Registration.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include <chrono>
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace drover;
using drover::tfm::TfmDialect;

namespace {

using Values = std::map<std::string, Tensor>;

MLIRContext &context() {
  static MLIRContext *instance = [] {
    registerAllPasses();
    DialectRegistry registry;
    registerAllDialects(registry);
    return new MLIRContext(registry, MLIRContext::Threading::DISABLED);
  }();
  return *instance;
}

/// A model of the test inputs after a pipeline of passes.
OwningOpRef<ModuleOp> transform(const std::string &model, const std::string &passes) {
  auto module = parseSourceFile<ModuleOp>(std::string(DROVER_TEST_MODELS) + "/" + model + ".mlir", &context());
  EXPECT_TRUE(module) << model;
  PassManager manager(&context());
  EXPECT_TRUE(succeeded(parsePassPipeline(passes, manager))) << passes;
  EXPECT_TRUE(succeeded(manager.run(*module))) << passes;
  return module;
}

std::string nameOf(DictionaryAttr attrs) {
  for (StringRef attr : {TfmDialect::kInputAttr, TfmDialect::kParameterAttr, TfmDialect::kOutputAttr})
    if (auto name = attrs.getAs<StringAttr>(attr))
      return name.str();
  if (auto name = attrs.getAs<StringAttr>(TfmDialect::kAccumulatorAttr))
    return "grad " + name.str();
  return "seed";
}

/// Reproducible numbers around zero that no symmetry of the model hides.
double wave(unsigned salt, int64_t i) { return 0.6 * std::sin(0.7 + 1.3 * salt + 2.17 * i + 0.03 * salt * i); }

/// Values for every argument of a function: parameters from their names, so that all programs of a model get the same,
/// and such that bf16 holds them.
Tensor valueFor(const std::string &name, RankedTensorType type) {
  Tensor tensor(*elementKind(type), type.getShape());
  unsigned salt = 0;
  for (char c : name)
    salt = (salt * 31 + static_cast<unsigned char>(c)) % 1009;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (name == "input_ids")
      tensor.ints[i] = (5 * i + 3) % 11;
    else if (name == "labels")
      tensor.ints[i] = i == 2 ? -1 : (7 * i + 1) % 13;
    else if (name == "document_ids")
      tensor.ints[i] = i % 4 >= 2;
    else if (name == "position_ids")
      tensor.ints[i] = i % 2; // from the start of each document
    else if (name == "seed")
      tensor.floats[i] = 0.125;
    else if (name.compare(0, 5, "grad ") != 0)
      tensor.floats[i] = roundTo(wave(salt, i) + (type.getRank() == 1 ? 0.5 : 0), ElementKind::BF16);
  }
  return tensor;
}

/// Runs a function on its values, some of them replaced; results by name.
Values run(ModuleOp module, StringRef entry, const Values &replaced = {}, bool exact = true) {
  auto function = module.lookupSymbol<func::FuncOp>(entry);
  EXPECT_TRUE(function);
  SmallVector<Tensor> args, results;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    std::string name = nameOf(function.getArgAttrDict(i));
    auto found = replaced.find(name);
    args.push_back(found != replaced.end() ? found->second
                                           : valueFor(name, cast<RankedTensorType>(function.getArgumentTypes()[i])));
  }
  InterpreterOptions options;
  options.exact = exact;
  std::string reason;
  EXPECT_TRUE(succeeded(interpret(function, args, results, options, &reason))) << reason;
  Values named;
  for (auto [i, result] : llvm::enumerate(results))
    named[nameOf(function.getResultAttrDict(i))] = result;
  return named;
}

double norm(const Tensor &tensor) {
  double sum = 0;
  for (double value : tensor.floats)
    sum += value * value;
  return std::sqrt(sum);
}

double distance(const Tensor &a, const Tensor &b) {
  EXPECT_EQ(a.shape, b.shape);
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    sum += (a.floats[i] - b.floats[i]) * (a.floats[i] - b.floats[i]);
  return std::sqrt(sum);
}

/// All results of `actual` are results of `expected`, equal within `tolerance` of their norm, or of `floor` times the
/// largest norm.
void expectClose(const Values &actual, const Values &expected, double tolerance, double floor = 1e-3) {
  double all = 0;
  for (const auto &[name, value] : expected)
    all = std::max(all, norm(value));
  for (const auto &[name, value] : actual) {
    auto found = expected.find(name);
    ASSERT_NE(found, expected.end()) << name;
    EXPECT_LE(distance(value, found->second), tolerance * (norm(found->second) + floor * all)) << name;
  }
}

/// Each gradient, along one direction, against the central difference of the loss (error eps^2).
void expectDerivatives(const std::string &model, const std::string &attachLoss, const Values &gradients) {
  OwningOpRef<ModuleOp> forward = transform(model, attachLoss);
  auto function = forward->lookupSymbol<func::FuncOp>("model");
  const double eps = 2e-5, seed = 0.125;
  unsigned checked = 0;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto parameter = function.getArgAttrOfType<StringAttr>(i, TfmDialect::kParameterAttr);
    if (!parameter)
      continue;
    auto gradient = gradients.find("grad " + parameter.str());
    ASSERT_NE(gradient, gradients.end()) << parameter.str();
    Tensor value = valueFor(parameter.str(), cast<RankedTensorType>(function.getArgumentTypes()[i]));
    Tensor up = value, down = value;
    double expected = 0;
    for (int64_t j = 0; j < value.size(); ++j) {
      double direction = wave(17, j);
      up.floats[j] += eps * direction;
      down.floats[j] -= eps * direction;
      expected += direction * gradient->second.floats[j];
    }
    double difference = run(*forward, "model", {{parameter.str(), up}})["loss"].floats[0] -
                        run(*forward, "model", {{parameter.str(), down}})["loss"].floats[0];
    EXPECT_NEAR(seed * difference / (2 * eps), expected, 1e-6 * norm(gradient->second) + 1e-9) << parameter.str();
    ++checked;
  }
  EXPECT_EQ(checked, gradients.size() - 1);
}

std::string differentiate(const std::string &options = "") {
  return "tfm-attach-loss,tfm-outline,tfm-differentiate{" + options + "},tfm-verify-microbatch";
}

class OfModel : public testing::TestWithParam<const char *> {};

TEST_P(OfModel, GradientsEqualFiniteDifferences) {
  Values gradients = run(*transform(GetParam(), differentiate()), "microbatch");
  expectDerivatives(GetParam(), "tfm-attach-loss", gradients);
}

TEST_P(OfModel, GradientsWithDocumentsEqualFiniteDifferences) {
  Values gradients =
      run(*transform(GetParam(), "tfm-attach-loss{documents=true},tfm-outline,tfm-differentiate"), "microbatch");
  expectDerivatives(GetParam(), "tfm-attach-loss{documents=true}", gradients);
}

TEST_P(OfModel, EveryRecomputeModeGivesTheSameGradients) {
  Values reference = run(*transform(GetParam(), differentiate()), "microbatch");
  for (std::string recompute : {"none", "selective", "full"})
    for (std::string rebuild : {"auto", "none", "norms,act,rope,casts", "norms", "act,rope"}) {
      SCOPED_TRACE(recompute + " " + rebuild);
      Values gradients =
          run(*transform(GetParam(), differentiate("recompute=" + recompute + " rebuild=" + rebuild)), "microbatch");
      EXPECT_EQ(gradients.size(), reference.size());
      expectClose(gradients, reference, 0);
    }
}

TEST_P(OfModel, SplittingBackwardsDoesNotChangeGradients) {
  Values reference = run(*transform(GetParam(), differentiate()), "microbatch");
  for (std::string recompute : {"none", "selective", "full"})
    for (std::string rebuild : {"auto", "none", "norms,act"}) {
      SCOPED_TRACE(recompute + " " + rebuild);
      std::string passes = differentiate("recompute=" + recompute + " rebuild=" + rebuild) +
                           ",tfm-split-backward{rebuild=" + rebuild + "},tfm-verify-microbatch";
      Values gradients = run(*transform(GetParam(), passes), "microbatch");
      EXPECT_EQ(gradients.size(), reference.size());
      // A tied table adds up in another order.
      expectClose(gradients, reference, 1e-14);
    }
}

TEST_P(OfModel, SplittingRunsNoWorkTwice) {
  for (std::string recompute : {"none", "selective", "full"}) {
    SCOPED_TRACE(recompute);
    auto countWork = [](ModuleOp module) {
      std::map<std::string, int> count;
      module.walk([&](Operation *op) {
        using tfm::RecomputeClass;
        RecomputeClass kind = tfm::recomputeClassOf(op);
        if (kind == RecomputeClass::Contraction || kind == RecomputeClass::Attention ||
            kind == RecomputeClass::Reduction)
          ++count[op->getName().getStringRef().str()];
      });
      return count;
    };
    std::string passes = differentiate("recompute=" + recompute);
    EXPECT_EQ(countWork(*transform(GetParam(), passes)),
              countWork(*transform(GetParam(), passes + ",tfm-split-backward")));
  }
}

TEST_P(OfModel, OutliningDoesNotChangeGradients) {
  Values whole = run(*transform(GetParam(), "tfm-attach-loss,tfm-outline{whole=true},tfm-differentiate"), "microbatch");
  Values outlined = run(*transform(GetParam(), differentiate()), "microbatch");
  EXPECT_EQ(whole.size(), outlined.size());
  expectClose(outlined, whole, 1e-12);
}

TEST_P(OfModel, OutliningKeepsTheOutputs) {
  Values model = run(*transform(GetParam(), "canonicalize"), "model");
  expectClose(run(*transform(GetParam(), "tfm-outline"), "microbatch"), model, 0);
}

TEST_P(OfModel, FrozenParametersHaveNoGradientAndTheOthersKeepTheirs) {
  Values all = run(*transform(GetParam(), differentiate()), "microbatch");
  for (std::string freeze : {"norm", "ln_", "w[t]e|embed", "(layers|h)[.]0", "q_proj|c_attn"}) {
    OwningOpRef<ModuleOp> module = transform(GetParam(), "tfm-attach-loss,tfm-outline");
    PassManager manager(&context());
    ASSERT_TRUE(
        succeeded(parsePassPipeline("tfm-differentiate{freeze=" + freeze + "},tfm-verify-microbatch", manager)));
    ScopedDiagnosticHandler silent(&context(), [](Diagnostic &) { return success(); });
    if (failed(manager.run(*module)))
      continue; // the pattern is the other model's
    Values some = run(*module, "microbatch");
    EXPECT_LT(some.size(), all.size()) << freeze;
    expectClose(some, all, 1e-12);
    PassManager splitter(&context());
    ASSERT_TRUE(succeeded(parsePassPipeline("tfm-split-backward,tfm-verify-microbatch", splitter)));
    ASSERT_TRUE(succeeded(splitter.run(*module))) << freeze;
    expectClose(run(*module, "microbatch"), some, 1e-12);
  }
}

TEST_P(OfModel, Bf16IsCloseToF32) {
  Values f32 = run(*transform(GetParam(), differentiate()), "microbatch", {}, /*exact=*/false);
  for (std::string options : {"", "recompute=full", "recompute=selective rebuild=none"}) {
    Values bf16 = run(*transform(GetParam(), "tfm-attach-loss,tfm-apply-compute-dtype{dtype=bf16},tfm-outline,"
                                             "tfm-differentiate{" +
                                                 options + "},tfm-verify-microbatch"),
                      "microbatch", {}, /*exact=*/false);
    EXPECT_EQ(bf16.size(), f32.size());
    expectClose(bf16, f32, 0.05, /*floor=*/0.1);
  }
}

INSTANTIATE_TEST_SUITE_P(Gradient, OfModel, testing::Values("llama", "llama-tied-windows", "gpt2", "gpt2-tied"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
