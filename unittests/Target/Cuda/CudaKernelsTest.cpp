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
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
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
  int sharedBytes = 512; // and the most shared memory of a block
  const char *attention = "generated";
};
constexpr Case kCases[] = {
    {"adamw", 48},
    {"attention_128_bf16", 255, 52224},
    {"attention_128_f32", 255, 110592},
    {"attention_256_bf16", 255, 107520},
    {"attention_256_f32", 255, 139264},
    {"attention_64_bf16", 255, 46080},
    {"attention_64_f32", 255, 104448},
    {"attention_documents_128_bf16", 255, 52224},
    {"attention_grad_128_bf16", 255, 69632},
    {"attention_grad_128_f32", 255, 144384},
    {"attention_grad_256_bf16", 255, 145408},
    {"attention_grad_256_f32", 255, 209920},
    {"attention_grad_64_bf16", 255, 55296},
    {"attention_grad_64_f32", 255, 121856},
    {"attention_grad_documents_128_bf16", 255, 69632},
    {"attention_64_bf16", 128, 49152, "wgmma"},
    {"attention_128_bf16", 168, 90112, "wgmma"},
    {"attention_documents_128_bf16", 168, 90112, "wgmma"},
    {"attention_grad_64_bf16", 224, 65536, "wgmma"},
    {"attention_grad_128_bf16", 255, 81920, "wgmma"},
    {"cast_parameters", 24},
    {"embedding_bf16", 32},
    {"embedding_f32", 32},
    {"gelu_bf16", 64},
    {"gelu_f32", 32},
    {"gelu_grad_bf16", 64},
    {"gelu_grad_f32", 40},
    {"layer_norm_grad_1600_f32", 72},
    {"layer_norm_grad_16384_bf16", 64},
    {"loss_bf16", 32},
    {"loss_f32", 32},
    {"rms_norm_16384_bf16", 112},
    {"rms_norm_4096_bf16", 40},
    {"rms_norm_4096_f32", 48},
    {"rms_norm_grad_16384_bf16", 64},
    {"rms_norm_grad_4096_bf16", 124},
    {"rms_norm_grad_4096_f32", 120},
    {"rope_bf16", 40},
    {"rope_f32", 40},
    {"sum_of_squares", 40},
    {"swiglu_bf16", 32},
    {"swiglu_f32", 32},
    {"swiglu_grad_bf16", 48},
    {"swiglu_grad_f32", 32},
};

/// One body of that file, lowered.
struct Lowered {
  Lowered(StringRef name, const host::HostOptions &options) : context(MLIRContext::Threading::DISABLED) {
    DialectRegistry registry;
    cuda::registerExtensions(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<arith::ArithDialect, func::FuncDialect, rt::RtDialect, tfm::TfmDialect>();
    module = parseSourceFile<ModuleOp>(DROVER_CUDA_INPUTS "/large.mlir", &context);
    for (auto body : llvm::make_early_inc_range(module->getOps<func::FuncOp>()))
      if (body.getName() != name)
        body.erase();
    PassManager manager(&context);
    cuda::buildCudaLoweringPipeline(manager, options);
    if (!module || failed(manager.run(*module)))
      module = nullptr;
  }
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

/// What a block needs, of which ptxas does not see what a launch gives.
int sharedBytesOf(gpu::GPUModuleOp kernel) {
  Operation *function = kernel.lookupSymbol(kernel.getName());
  return static_cast<int>(function->getAttrOfType<IntegerAttr>(rt::GpuLaunchOp::kSharedBytesAttr).getInt());
}

int threadsOf(gpu::GPUModuleOp kernel) {
  Operation *function = kernel.lookupSymbol(kernel.getName());
  return function->getAttrOfType<DenseI32ArrayAttr>(NVVM::NVVMDialect::getReqntidAttrName())[0];
}

class CudaKernels : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Sizes, CudaKernels, ::testing::ValuesIn(kCases), [](const auto &info) {
  bool isDefault = StringRef(info.param.attention) == "generated";
  return std::string(info.param.name) + (isDefault ? "" : "_") + (isDefault ? "" : info.param.attention);
});

TEST_P(CudaKernels, AssembleWithoutSpills) {
  if (cuda::findPtxas().empty())
    GTEST_SKIP() << "no ptxas";
  host::HostOptions options;
  options.attention = GetParam().attention;
  Lowered lowered(GetParam().name, options);
  ASSERT_TRUE(lowered.module);
  int count = 0;
  bool isForHopper = false;
  for (auto kernel : lowered.module->getOps<gpu::GPUModuleOp>()) {
    FailureOr<std::string> ptx = cuda::emitPtx(kernel);
    ASSERT_TRUE(succeeded(ptx));
    FailureOr<cuda::Cubin> cubin = cuda::assemble(kernel.getLoc(), *ptx);
    ASSERT_TRUE(succeeded(cubin));
    const cuda::Resources &used = cubin->resources;
    EXPECT_GT(used.registers, 0);
    EXPECT_LE(used.registers, GetParam().registers) << kernel.getName().str();
    EXPECT_LE(sharedBytesOf(kernel), GetParam().sharedBytes) << kernel.getName().str();
    EXPECT_EQ(used.spillStoreBytes, 0) << kernel.getName().str();
    EXPECT_EQ(used.spillLoadBytes, 0) << kernel.getName().str();
    EXPECT_EQ(used.stackBytes, 0) << kernel.getName().str();
    EXPECT_FALSE(used.serializesWgmma) << kernel.getName().str();
    isForHopper |= cuda::architectureOf(kernel) == "sm_90a";
    EXPECT_GT(cubin->image.size(), 0u);
    RecordProperty(kernel.getName().str() + "_registers", used.registers);
    RecordProperty(kernel.getName().str() + "_shared_bytes", sharedBytesOf(kernel));
    RecordProperty(kernel.getName().str() + "_threads", threadsOf(kernel));
    ++count;
  }
  EXPECT_GT(count, 0);
  EXPECT_EQ(isForHopper, options.attention == "wgmma");
}

} // namespace
