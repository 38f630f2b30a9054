//===- Backend.h - what the harness of bodies asks of a target --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The tests of bodies are compiled once and linked with one backend: HostBackend.cpp runs bodies on threads,
// CudaBackend.cpp runs kernels of a GPU by the emulator and library calls by the host's runtime.
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_TARGET_HOST_BACKEND_H
#define DROVER_UNITTESTS_TARGET_HOST_BACKEND_H

#include "HostHarness.h"

namespace drover::test::backend {

/// What must not change a result: threads, blocks.
extern const char *const kOrder;

void buildPipeline(mlir::PassManager &manager, const host::HostOptions &options);
/// Adds the code of lowered bodies and what it calls; false, with a message, where that fails.
bool load(mlir::ModuleOp lowered, llvm::orc::LLJIT &jit, const host::HostOptions &options, std::string &messages);
void addObject(llvm::orc::LLJIT &jit, llvm::ArrayRef<char> object, std::string &messages);
/// Calls a body; `order` is the number of threads, or the seed of an order.
void call(drover_body_fn body, void *const *operands, void *workspace, const drover_call &call, int order);

/// Memory that bodies may touch, while it lives.
class Memory {
public:
  Memory(void *base, size_t bytes, bool written);
  ~Memory();

private:
  [[maybe_unused]] void *base; // the host keeps no list of it
};

} // namespace drover::test::backend

#endif // DROVER_UNITTESTS_TARGET_HOST_BACKEND_H
