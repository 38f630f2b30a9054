//===- CudaKernelsTest.cpp - what generated kernels cost --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CudaBackend.h"
#include "drover/Dialect/Rt/IR/Rt.h"
#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "drover/Target/Cuda/Cuda.h"
#include "emu.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace drover;
using namespace drover::test;

namespace {

/// A body of Inputs/large.mlir, and the most registers that a thread of its kernels may use.
struct Case {
  const char *name;
  int registers;
};
constexpr Case kCases[] = {
    {"adamw", 64},
    {"cast_parameters", 64},
    {"embedding_bf16", 64},
    {"embedding_f32", 64},
    {"gelu_bf16", 128},
    {"gelu_f32", 128},
    {"gelu_grad_bf16", 128},
    {"gelu_grad_f32", 128},
    {"layer_norm_grad_1600_f32", 128},
    {"layer_norm_grad_16384_bf16", 128},
    {"loss_bf16", 64},
    {"loss_f32", 64},
    {"rms_norm_16384_bf16", 128},
    {"rms_norm_4096_bf16", 128},
    {"rms_norm_4096_f32", 128},
    {"rms_norm_grad_16384_bf16", 128},
    {"rms_norm_grad_4096_bf16", 128},
    {"rms_norm_grad_4096_f32", 128},
    {"rope_bf16", 128},
    {"rope_f32", 128},
    {"sum_of_squares", 64},
    {"swiglu_bf16", 128},
    {"swiglu_f32", 128},
    {"swiglu_grad_bf16", 128},
    {"swiglu_grad_f32", 128},
};

/// One body of that file, lowered.
struct Lowered {
  explicit Lowered(StringRef name) : context(MLIRContext::Threading::DISABLED) {
    DialectRegistry registry;
    cuda::registerExtensions(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<arith::ArithDialect, func::FuncDialect, rt::RtDialect, tfm::TfmDialect>();
    module = parseSourceFile<ModuleOp>(DROVER_CUDA_INPUTS "/large.mlir", &context);
    for (auto body : llvm::make_early_inc_range(module->getOps<func::FuncOp>()))
      if (body.getName() != name)
        body.erase();
    PassManager manager(&context);
    cuda::buildCudaLoweringPipeline(manager, {});
    if (!module || failed(manager.run(*module)))
      module = nullptr;
  }
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

class CudaKernels : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Sizes, CudaKernels, ::testing::ValuesIn(kCases),
                         [](const auto &info) { return std::string(info.param.name); });

TEST_P(CudaKernels, AssembleWithoutSpills) {
  if (cuda::findPtxas().empty())
    GTEST_SKIP() << "no ptxas";
  Lowered lowered(GetParam().name);
  ASSERT_TRUE(lowered.module);
  int count = 0;
  for (auto kernel : lowered.module->getOps<gpu::GPUModuleOp>()) {
    FailureOr<std::string> ptx = cuda::emitPtx(kernel);
    ASSERT_TRUE(succeeded(ptx));
    FailureOr<cuda::Cubin> cubin = cuda::assemble(kernel.getLoc(), *ptx);
    ASSERT_TRUE(succeeded(cubin));
    const cuda::Resources &used = cubin->resources;
    EXPECT_GT(used.registers, 0);
    EXPECT_LE(used.registers, GetParam().registers) << kernel.getName().str();
    EXPECT_EQ(used.spillStoreBytes, 0) << kernel.getName().str();
    EXPECT_EQ(used.spillLoadBytes, 0) << kernel.getName().str();
    EXPECT_EQ(used.stackBytes, 0) << kernel.getName().str();
    EXPECT_GT(cubin->image.size(), 0u);
    RecordProperty(kernel.getName().str(), used.registers);
    ++count;
  }
  EXPECT_GT(count, 0);
}

} // namespace
