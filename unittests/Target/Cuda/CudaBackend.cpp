//===- CudaBackend.cpp - kernels of a GPU by the emulator -------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CudaBackend.h"
#include "HookKernels.h"
#include "drover/Target/Cuda/Cuda.h"
#include "emu.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include <gtest/gtest.h>
#include <map>

using namespace mlir;
using namespace drover;
using namespace drover::test;

const char *const backend::kOrder = "blocks and threads";

namespace {
/// Kernels by name: a name is of the content.
std::map<std::string, const drover_emu_kernel *> kernels;
int orderSeed = 1;
int64_t errorWords[2]; // of the device
} // namespace

std::string test::takeIndexError() {
  if (errorWords[0] == 0)
    return "";
  auto *kernel = reinterpret_cast<const drover_gpu_kernel *>(errorWords[0]);
  std::string message = std::string(kernel->check) + ": index " + std::to_string(errorWords[1]);
  errorWords[0] = errorWords[1] = 0;
  return message;
}

//===----------------------------------------------------------------------===//
// What bodies call
//===----------------------------------------------------------------------===//

static void launch(const drover_call *, const drover_gpu_kernel *kernel, int64_t blocks, void **arguments) {
  auto found = kernels.find(kernel->name);
  if (found == kernels.end()) {
    ADD_FAILURE() << "no kernel " << kernel->name;
    return;
  }
  const drover_emu_kernel *emulated = found->second;
  EXPECT_EQ(kernel->threads, emulated->max_threads) << kernel->name;
  EXPECT_EQ(kernel->shared_bytes, emulated->shared_bytes) << kernel->name;
  EXPECT_EQ(kernel->num_arguments + (kernel->check ? 2 : 0), emulated->argument_count) << kernel->name;
  auto number = reinterpret_cast<int64_t>(kernel);
  void *words = errorWords;
  if (kernel->check) {
    arguments[kernel->num_arguments] = &number;
    arguments[kernel->num_arguments + 1] = &words;
  }
  uint32_t given = kernel->shared_bytes - emulated->static_shared_bytes;
  drover_emu_launch how = {{static_cast<uint32_t>(blocks), 1, 1},
                           {kernel->threads, 1, 1},
                           given,
                           static_cast<uint64_t>(orderSeed),
                           nullptr,
                           nullptr};
  drover_emu_clear_faults();
  uint64_t faults = drover_emu_run(emulated, &how, arguments);
  EXPECT_EQ(faults, 0u);
  for (uint64_t i = 0; const char *line = drover_emu_fault(i); ++i)
    ADD_FAILURE() << line;
}

/// Rows that a library call has written, which the emulator cannot see.
static void wrote(const void *base, int64_t rows, int64_t stride, int64_t width, int64_t elementBytes) {
  for (int64_t row = 0; row < rows; ++row)
    drover_emu_memory_written(static_cast<const char *>(base) + row * stride * elementBytes, width * elementBytes);
}

static int64_t bytesOf(int32_t dtype) { return dtype == DROVER_F32 ? 4 : 2; }

static void matmul(const drover_call *call, const drover_matmul *desc, const void *a, const void *b, void *c) {
  drover_rt_matmul(call, desc, a, b, c);
  int64_t bytes = bytesOf(desc->dtype_c);
  for (int64_t i = 0; i < desc->batch; ++i)
    wrote(static_cast<char *>(c) + i * desc->stride_c * bytes, desc->m, desc->ldc, desc->n, bytes);
}

static void attention(const drover_call *call, const drover_attention *desc, const void *query, const void *key,
                      const void *value, const void *mask, const void *keyMask, const void *documents,
                      const int64_t *queryIndex, void *result, void *logSumExp, void *workspace) {
  drover_rt_attention(call, desc, query, key, value, mask, keyMask, documents, queryIndex, result, logSumExp,
                      workspace);
  wrote(result, desc->batch * desc->queries, desc->result_stride, desc->heads * desc->value_head_size,
        bytesOf(desc->dtype));
  wrote(logSumExp, 1, 0, desc->batch * desc->heads * desc->queries, sizeof(float));
}

static void attentionGrad(const drover_call *call, const drover_attention *desc, const void *query, const void *key,
                          const void *value, const void *result, const void *logSumExp, const void *gradient,
                          const void *mask, const void *keyMask, const void *documents, const int64_t *queryIndex,
                          void *queryGrad, void *keyGrad, void *valueGrad, void *workspace) {
  drover_rt_attention_grad(call, desc, query, key, value, result, logSumExp, gradient, mask, keyMask, documents,
                           queryIndex, queryGrad, keyGrad, valueGrad, workspace);
  int64_t queries = desc->batch * desc->queries, keys = desc->batch * desc->keys;
  wrote(queryGrad, queries, desc->query_grad_stride, desc->heads * desc->head_size, bytesOf(desc->dtype));
  wrote(keyGrad, keys, desc->key_grad_stride, desc->kv_heads * desc->head_size, bytesOf(desc->dtype_kv_grad));
  wrote(valueGrad, keys, desc->value_grad_stride, desc->kv_heads * desc->value_head_size, bytesOf(desc->dtype_kv_grad));
}

//===----------------------------------------------------------------------===//
// The backend
//===----------------------------------------------------------------------===//

void backend::buildPipeline(PassManager &manager, const host::HostOptions &options) {
  DialectRegistry registry;
  cuda::registerExtensions(registry);
  manager.getContext()->appendDialectRegistry(registry);
  cuda::buildCudaLoweringPipeline(manager, options);
}

/// The emulator is a library of this process, and so is libm.
static void addProcess(llvm::orc::LLJIT &jit) {
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(jit.getDataLayout().getGlobalPrefix());
  jit.getMainJITDylib().addGenerator(llvm::cantFail(std::move(process)));
}

bool backend::load(ModuleOp lowered, llvm::orc::LLJIT &jit, const host::HostOptions &options, std::string &messages) {
  // The host's half of the bodies.
  OwningOpRef<ModuleOp> hostHalf = lowered.clone();
  bool hasKernels = false;
  for (auto kernel : llvm::make_early_inc_range(hostHalf->getOps<gpu::GPUModuleOp>())) {
    kernel.erase();
    hasKernels = true;
  }
  FailureOr<SmallVector<char, 0>> object = host::emitObject(*hostHalf, options);
  if (failed(object))
    return false;
  llvm::orc::SymbolMap symbols;
  auto define = [&](StringRef name, auto *function) {
    symbols[jit.mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(function), llvm::JITSymbolFlags::Exported};
  };
  define("drover_rt_gpu_launch", &launch);
  define("drover_rt_matmul", &matmul);
  define("drover_rt_attention", &attention);
  define("drover_rt_attention_grad", &attentionGrad);
  llvm::cantFail(jit.getMainJITDylib().define(llvm::orc::absoluteSymbols(symbols)));
  addProcess(jit);
  addObject(jit, *object, messages);
  if (!hasKernels || !messages.empty())
    return messages.empty();
  // Kernels stay, since their names say what they do: other bodies find them.
  OwningOpRef<ModuleOp> source = lowered.clone();
  hasKernels = false;
  for (auto kernel : llvm::make_early_inc_range(source->getOps<gpu::GPUModuleOp>())) {
    if (kernels.count(kernel.getName().str()))
      kernel.erase();
    else
      hasKernels = true;
  }
  if (!hasKernels)
    return true;
  FailureOr<OwningOpRef<ModuleOp>> hooked = emu::hookKernels(*source);
  if (failed(hooked))
    return false;
  FailureOr<SmallVector<char, 0>> device = host::emitObject(**hooked, options);
  if (failed(device))
    return false;
  static std::vector<std::unique_ptr<llvm::orc::LLJIT>> libraries;
  libraries.push_back(llvm::cantFail(llvm::orc::LLJITBuilder().create()));
  llvm::orc::LLJIT &own = *libraries.back();
  addProcess(own);
  addObject(own, *device, messages);
  auto table = own.lookup(DROVER_EMU_LIBRARY_SYMBOL);
  if (!table) {
    messages += llvm::toString(table.takeError());
    return false;
  }
  auto *library = table->toPtr<const drover_emu_library *>();
  for (uint32_t i = 0; i < library->kernel_count; ++i)
    kernels[library->kernels[i].name] = &library->kernels[i];
  return messages.empty();
}

void backend::call(drover_body_fn body, void *const *operands, void *workspace, const drover_call &call, int order) {
  orderSeed = order;
  Memory words(errorWords, sizeof errorWords, true);
  body(operands, workspace, &call);
}

backend::Memory::Memory(void *base, size_t bytes, bool written) : base(base) {
  if (bytes == 0) {
    this->base = nullptr;
    return;
  }
  drover_emu_memory_add(base, bytes);
  if (written)
    drover_emu_memory_written(base, bytes);
}

backend::Memory::~Memory() {
  if (base)
    drover_emu_memory_remove(base);
}
