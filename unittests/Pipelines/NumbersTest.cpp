//===- NumbersTest.cpp - in what type each sum is made ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// DESIGN section 4, read off the program in bf16 over TP, CP, PP and DP: gradients of parameters, of keys and values,
// and sums of several gradients of one value are f32; activations and their gradients go over TP in bf16. In the
// partitioned bodies, in what they are lowered to for both targets, and in the step program. Each rule is seen to fail.
//===----------------------------------------------------------------------===//
#include "drover/Conversion/TfmToRt/TfmToRt.h"
#include "drover/Dialect/Rt/IR/Rt.h"
#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "drover/Pipelines/Compile.h"
#include "drover/Registration.h"
#include "drover/Schedule/Report.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace drover;

namespace {

/// What is wrong with a program, one line each, and how many sums were looked at.
struct Findings {
  std::vector<std::string> faults;
  std::map<std::string, int> looked; // by rule

  void expect(const char *rule, Operation *op, Value value, bool isRight) {
    ++looked[rule];
    if (isRight)
      return;
    std::string text;
    llvm::raw_string_ostream(text) << rule << ": '" << op->getName() << "' of " << value.getType();
    faults.push_back(text);
  }
};

Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

bool isBackward(Operation *op) {
  auto body = op->getParentOfType<func::FuncOp>();
  auto kind = body ? body->getAttrOfType<StringAttr>("tfm.body") : StringAttr();
  return kind && kind.getValue().starts_with("backward");
}

//===----------------------------------------------------------------------===//
// Partitioned bodies
//===----------------------------------------------------------------------===//

/// Whether a collective runs over TP alone, or over what TP is split into.
bool isOverTp(ModuleOp module, ArrayRef<int16_t> axes) {
  // The grid's axes: tp, or kv and replica; cp; dp (docs/distributions.md).
  auto grid = module->getAttrOfType<DictionaryAttr>("tfm.grid");
  int16_t numTpAxes = grid.get("kv") ? 2 : 1;
  return llvm::all_of(axes, [&](int16_t axis) { return axis < numTpAxes; });
}

/// Row statistics of the loss, which are f32 whatever the compute dtype.
bool isStatistic(Value value) { return isa_and_nonnull<tfm::LogitsMaxOp, tfm::LogitsSumOp>(value.getDefiningOp()); }

template <typename Op> void checkReduction(Findings &findings, ModuleOp module, Op op) {
  Type type = elementOf(op.getInput());
  if (isStatistic(op.getInput()))
    return findings.expect("statistics", op, op.getInput(), type.isF32());
  // What is pending over replicas of kv heads is a gradient of keys or values.
  bool isWide = !isOverTp(module, op.getGridAxes()) || cast<RankedTensorType>(op.getInput().getType()).getRank() == 1;
  if (isWide)
    return findings.expect("gradients of keys, values and parameters", op, op.getInput(), type.isF32());
  findings.expect("activations over tp", op, op.getInput(), type.isBF16());
}

Findings checkBodies(ModuleOp module) {
  Findings findings;
  module.walk([&](Operation *op) {
    if (auto reduce = dyn_cast<shard::AllReduceOp>(op))
      return checkReduction(findings, module, reduce);
    if (auto scatter = dyn_cast<shard::ReduceScatterOp>(op))
      return checkReduction(findings, module, scatter);
    if (auto accumulate = dyn_cast<tfm::AccumulateOp>(op)) {
      findings.expect("accumulators", op, accumulate.getAccumulator(), elementOf(accumulate.getAccumulator()).isF32());
      return findings.expect("gradients of parameters", op, accumulate.getValue(),
                             elementOf(accumulate.getValue()).isF32());
    }
    if (auto gradient = dyn_cast<tfm::AttentionGradOp>(op))
      for (Value value : {gradient.getKeyGrad(), gradient.getValueGrad()})
        findings.expect("gradients of keys and values", op, value, elementOf(value).isF32());
    if (isa<arith::AddFOp>(op) && isBackward(op))
      findings.expect("sums of gradients", op, op->getResult(0), elementOf(op->getResult(0)).isF32());
  });
  return findings;
}

//===----------------------------------------------------------------------===//
// What they are lowered to
//===----------------------------------------------------------------------===//

/// Types of the reductions of partitioned bodies, by their number.
std::map<int64_t, Type> reductionsOf(ModuleOp module) {
  std::map<int64_t, Type> types;
  module.walk([&](Operation *op) {
    if (auto number = op->getAttrOfType<IntegerAttr>("tfm.reduction"))
      types[number.getInt()] = elementOf(op->getOperand(0));
  });
  return types;
}

Findings checkLowered(ModuleOp module, const std::map<int64_t, Type> &reductions) {
  Findings findings;
  module.walk([&](Operation *op) {
    if (auto start = dyn_cast<rt::CollectiveStartOp>(op); start && start.getReduction()) {
      auto type = reductions.find(*start.getReduction());
      return findings.expect("collectives", op, start.getIn(),
                             type != reductions.end() && elementOf(start.getIn()) == type->second);
    }
    if (auto matmul = dyn_cast<rt::MatmulOp>(op)) {
      if (matmul.getStore() == rt::Store::Accumulate)
        findings.expect("accumulators", op, matmul.getResult(), elementOf(matmul.getResult()).isF32());
      if (matmul.getStore() == rt::Store::Add && isBackward(op))
        findings.expect("sums of gradients", op, matmul.getResult(), elementOf(matmul.getResult()).isF32());
      return;
    }
    if (auto gradient = dyn_cast<rt::AttentionGradOp>(op))
      for (Value value : {gradient.getKeyGrad(), gradient.getValueGrad()})
        findings.expect("gradients of keys and values", op, value, elementOf(value).isF32());
    if (auto embedding = dyn_cast<rt::EmbeddingGradOp>(op))
      findings.expect("accumulators", op, embedding.getTable(), elementOf(embedding.getTable()).isF32());
    // Within kernels nothing is summed in bf16: neither by arithmetic, nor over a loop, nor by tensor cores.
    auto isWide = [](Value value) {
      Type type = elementOf(value);
      return !isa<FloatType>(type) || type.isF32() || type.isF64();
    };
    if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, math::FmaOp>(op))
      findings.expect("arithmetic of kernels", op, op->getResult(0), isWide(op->getResult(0)));
    if (auto loop = dyn_cast<scf::ForOp>(op))
      for (Value carried : loop.getRegionIterArgs())
        findings.expect("sums over loops", op, carried, isWide(carried));
    if (auto product = dyn_cast<NVVM::MmaOp>(op))
      for (Value sum : product.getOperandC())
        findings.expect("sums of tensor cores", op, sum, elementOf(sum).isF32());
  });
  return findings;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

class Numbers : public ::testing::TestWithParam<const char *> {
protected:
  Numbers() : context(registry()) {}

  static DialectRegistry registry() {
    DialectRegistry all;
    registerAllDialects(all);
    return all;
  }

  CompileOptions options() const {
    CompileOptions options;
    options.model.path = std::string(DROVER_MODELS "/") + GetParam() + ".json";
    options.plan.tp = options.plan.cp = options.plan.pp = options.plan.dp = 2;
    options.plan.sequenceLength = 64;
    options.plan.computeType = "bf16";
    return options;
  }

  void SetUp() override {
    llvm::SmallString<128> path;
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("numbers", "mlir", path));
    llvm::FileRemover remover(path);
    CompileOptions compile = options();
    compile.emit = Emit::Mlir;
    compile.stopAfter = "partition";
    compile.output = path.str().str();
    ASSERT_TRUE(succeeded(compileModel(context, compile, llvm::errs())));
    bodies = parseSourceFile<ModuleOp>(path, &context);
    ASSERT_TRUE(bodies);
  }

  OwningOpRef<ModuleOp> lower(const char *target) {
    OwningOpRef<ModuleOp> lowered = bodies->clone();
    PassManager manager(&context);
    manager.addPass(tfm::createTfmEraseDistributions());
    ConvertTfmToRtOptions convert;
    convert.target = target;
    manager.addPass(createConvertTfmToRt(convert));
    return succeeded(manager.run(*lowered)) ? std::move(lowered) : OwningOpRef<ModuleOp>();
  }

  /// GPT-2 projects queries, keys and values by one product: no gradients of several meet in one.
  static bool productsAdd() { return StringRef(GetParam()) != "gpt2"; }

  MLIRContext context;
  OwningOpRef<ModuleOp> bodies;
};

INSTANTIATE_TEST_SUITE_P(Models, Numbers, ::testing::Values("bench-llama", "gpt2"),
                         [](const auto &info) { return std::string(info.param) == "gpt2" ? "gpt2" : "llama"; });

void expectNone(const Findings &findings) {
  for (const std::string &fault : findings.faults)
    ADD_FAILURE() << fault;
}

TEST_P(Numbers, OfPartitionedBodies) {
  Findings findings = checkBodies(*bodies);
  expectNone(findings);
  for (const char *rule :
       {"statistics", "gradients of keys, values and parameters", "activations over tp", "accumulators",
        "gradients of parameters", "gradients of keys and values", "sums of gradients"})
    EXPECT_GT(findings.looked[rule], 0) << rule;
}

TEST_P(Numbers, OfBothTargets) {
  std::map<int64_t, Type> reductions = reductionsOf(*bodies);
  EXPECT_FALSE(reductions.empty());
  for (const char *target : {"host", "cuda"}) {
    SCOPED_TRACE(target);
    OwningOpRef<ModuleOp> lowered = lower(target);
    ASSERT_TRUE(lowered);
    Findings findings = checkLowered(*lowered, reductions);
    expectNone(findings);
    for (const char *rule : {"collectives", "accumulators", "arithmetic of kernels", "sums over loops"})
      EXPECT_GT(findings.looked[rule], 0) << rule;
    EXPECT_EQ(findings.looked["sums of gradients"] > 0, productsAdd());
    EXPECT_GT(findings.looked[StringRef(target) == "host" ? "gradients of keys and values" : "sums of tensor cores"],
              0);
  }
}

/// Gradients are reduced over ranks in f32, parameters gathered, and sent to other holders, in bf16.
TEST_P(Numbers, OfTheStep) {
  FailureOr<CheckedProgram> checked = checkModel(context, options(), llvm::errs());
  ASSERT_TRUE(succeeded(checked));
  int reduced = 0, gathered = 0;
  for (size_t stage = 0; stage < 2; ++stage)
    for (const schedule::Traffic &traffic : schedule::trafficOf(checked->step, checked->step.batches.front(), stage)) {
      if (traffic.axis == "world" || traffic.axis == "tp" || traffic.axis == "cp")
        continue; // scalars, and what bodies do
      bool gathers = traffic.kind == "all_gather" || traffic.kind == "broadcast";
      (gathers ? gathered : reduced) += traffic.count;
      EXPECT_EQ(traffic.dtype, gathers ? schedule::DType::BF16 : schedule::DType::F32)
          << traffic.axis << " " << traffic.kind;
    }
  EXPECT_GT(reduced, 0);
  EXPECT_GT(gathered, 0);
}

//===----------------------------------------------------------------------===//
// Each rule can fail
//===----------------------------------------------------------------------===//

/// Gives the value that `find` returns of the first operation that has one the element type, in a copy of the program.
OwningOpRef<ModuleOp> mutated(ModuleOp module, Type element, llvm::function_ref<Value(Operation *)> find) {
  OwningOpRef<ModuleOp> copy = module.clone();
  bool found = copy->walk([&](Operation *op) {
                     Value value = find(op);
                     if (!value)
                       return WalkResult::advance();
                     if (auto shaped = dyn_cast<ShapedType>(value.getType()))
                       value.setType(shaped.clone(element));
                     else
                       value.setType(element);
                     return WalkResult::interrupt();
                   })
                   .wasInterrupted();
  EXPECT_TRUE(found);
  return copy;
}

void expectFault(const Findings &findings, const char *rule) {
  EXPECT_TRUE(
      llvm::any_of(findings.faults,
                   [&](const std::string &fault) { return StringRef(fault).starts_with((rule + std::string(": "))); }))
      << rule << ": not found among " << findings.faults.size() << " faults";
}

TEST_P(Numbers, MutatedBodiesAreFound) {
  Type f32 = Float32Type::get(&context), bf16 = BFloat16Type::get(&context);
  auto expect = [&](const char *rule, Type type, llvm::function_ref<Value(Operation *)> find) {
    expectFault(checkBodies(*mutated(*bodies, type, find)), rule);
  };
  expect("accumulators", bf16, [](Operation *op) {
    auto accumulate = dyn_cast<tfm::AccumulateOp>(op);
    return accumulate ? accumulate.getAccumulator() : Value();
  });
  expect("gradients of parameters", bf16, [](Operation *op) {
    auto accumulate = dyn_cast<tfm::AccumulateOp>(op);
    return accumulate ? accumulate.getValue() : Value();
  });
  for (unsigned number : {1, 2})
    expect("gradients of keys and values", bf16,
           [&](Operation *op) { return isa<tfm::AttentionGradOp>(op) ? op->getResult(number) : Value(); });
  expect("sums of gradients", bf16,
         [](Operation *op) { return isa<arith::AddFOp>(op) && isBackward(op) ? op->getResult(0) : Value(); });
  ModuleOp module = *bodies;
  expect("activations over tp", f32, [&](Operation *op) {
    auto scatter = dyn_cast<shard::ReduceScatterOp>(op);
    return scatter && elementOf(scatter.getInput()).isBF16() ? scatter.getInput() : Value();
  });
  expect("gradients of keys, values and parameters", bf16, [&](Operation *op) {
    auto scatter = dyn_cast<shard::ReduceScatterOp>(op);
    return scatter && !isOverTp(module, scatter.getGridAxes()) ? scatter.getInput() : Value();
  });
  expect("statistics", bf16, [](Operation *op) {
    auto reduce = dyn_cast<shard::AllReduceOp>(op);
    return reduce && isStatistic(reduce.getInput()) ? reduce.getInput() : Value();
  });
}

TEST_P(Numbers, MutatedLoweringsAreFound) {
  Type f32 = Float32Type::get(&context), bf16 = BFloat16Type::get(&context);
  std::map<int64_t, Type> reductions = reductionsOf(*bodies);
  for (const char *target : {"host", "cuda"}) {
    SCOPED_TRACE(target);
    OwningOpRef<ModuleOp> lowered = lower(target);
    ASSERT_TRUE(lowered);
    auto expect = [&](const char *rule, Type type, llvm::function_ref<Value(Operation *)> find) {
      expectFault(checkLowered(*mutated(*lowered, type, find), reductions), rule);
    };
    for (auto [narrow, type] : {std::pair(true, f32), {false, bf16}})
      expect("collectives", type, [narrow = narrow](Operation *op) {
        auto start = dyn_cast<rt::CollectiveStartOp>(op);
        return start && start.getReduction() && elementOf(start.getIn()).isBF16() == narrow ? start.getIn() : Value();
      });
    auto productInto = [](rt::Store store) {
      return [store](Operation *op) {
        auto matmul = dyn_cast<rt::MatmulOp>(op);
        return matmul && matmul.getStore() == store && isBackward(op) ? matmul.getResult() : Value();
      };
    };
    expect("accumulators", bf16, productInto(rt::Store::Accumulate));
    if (productsAdd())
      expect("sums of gradients", bf16, productInto(rt::Store::Add));
    expect("arithmetic of kernels", bf16,
           [](Operation *op) { return isa<arith::AddFOp>(op) ? op->getResult(0) : Value(); });
    expect("sums over loops", bf16, [](Operation *op) {
      auto loop = dyn_cast<scf::ForOp>(op);
      if (loop)
        for (Value carried : loop.getRegionIterArgs())
          if (isa<FloatType>(elementOf(carried)))
            return carried;
      return Value();
    });
    if (StringRef(target) == "host")
      expect("gradients of keys and values", bf16, [](Operation *op) {
        auto gradient = dyn_cast<rt::AttentionGradOp>(op);
        return gradient ? gradient.getKeyGrad() : Value();
      });
    else
      expect("sums of tensor cores", bf16, [](Operation *op) {
        auto product = dyn_cast<NVVM::MmaOp>(op);
        return product ? product.getOperandC().front() : Value();
      });
  }
}

} // namespace
