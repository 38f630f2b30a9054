//===- CudaLibrary.cpp - the CUDA driver, opened at run time --------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "device/CudaLibrary.h"
#include "drover/rt/error.h"
#include <cstdlib>

namespace drover::rt {

static const LibraryNames driverNames = {
    "cuda", "DROVER_RT_CUDA", {"libcuda.so.1"}, "it comes with the NVIDIA driver of a machine with a GPU"};

CudaLibrary::CudaLibrary(const std::string &asked) : SharedLibrary(driverNames, asked) {
#define DROVER_RESOLVE(member, symbol, parameters) resolve(member, #symbol);
  DROVER_CUDA_FUNCTIONS(DROVER_RESOLVE)
#undef DROVER_RESOLVE
  // A kernel whose code is loaded at its first launch waits for the device, and one that waits for a peer meanwhile
  // never ends. What the user says counts.
  setVariable("CUDA_MODULE_LOADING", "EAGER");
  if (int code = init(0))
    fail("cuda: cuInit of ", path(), ": ", describe(code),
         "; look at nvidia-smi, and whether the container has been given the GPUs");
}

std::string CudaLibrary::describe(int code) const {
  const char *name = nullptr, *text = nullptr;
  if (getErrorName(code, &name) != 0 || !name)
    return concat("error ", code);
  bool more = getErrorString(code, &text) == 0 && text && std::string(text) != name;
  return more ? concat(name, " (", text, ")") : name;
}

std::string CudaLibrary::version() const {
  int number = 0;
  driverGetVersion(&number);
  return concat(number / 1000, ".", number % 1000 / 10);
}

} // namespace drover::rt
