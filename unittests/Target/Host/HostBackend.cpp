//===- HostBackend.cpp - bodies on threads of the host ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Backend.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

using namespace mlir;
using namespace drover;
using namespace drover::test;

const char *const backend::kOrder = "threads";

void backend::buildPipeline(PassManager &manager, const host::HostOptions &options) {
  host::buildHostLoweringPipeline(manager, options);
}

bool backend::load(ModuleOp lowered, llvm::orc::LLJIT &jit, const host::HostOptions &options, std::string &messages) {
  FailureOr<SmallVector<char, 0>> object = host::emitObject(lowered, options);
  if (failed(object))
    return false;
  llvm::orc::SymbolMap symbols;
  auto define = [&](StringRef name, auto *function) {
    symbols[jit.mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(function), llvm::JITSymbolFlags::Exported};
  };
  define("drover_rt_parallel_for", &drover_rt_parallel_for);
  define("drover_rt_matmul", &drover_rt_matmul);
  define("drover_rt_attention", &drover_rt_attention);
  define("drover_rt_attention_grad", &drover_rt_attention_grad);
  define("drover_rt_embedding_grad", &drover_rt_embedding_grad);
  define("drover_rt_collective_start", &drover_rt_collective_start);
  define("drover_rt_collective_wait", &drover_rt_collective_wait);
  define("drover_rt_index_error", &drover_rt_index_error);
  llvm::cantFail(jit.getMainJITDylib().define(llvm::orc::absoluteSymbols(symbols)));
  addObject(jit, *object, messages);
  return messages.empty();
}

void backend::call(drover_body_fn body, void *const *operands, void *workspace, const drover_call &call, int) {
  body(operands, workspace, &call);
}

backend::Memory::Memory(void *base, size_t, bool) : base(base) {}
backend::Memory::~Memory() = default;
