//===- NcclProbe.cpp - NCCL's first call, in a process of its own ---------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// usage: nccl-probe LIBRARY      status 0: ncclGetUniqueId was called, 77: there is no such library
// ncclGetUniqueId is what NCCL does without a GPU: it loads its environment plugin and looks for the network.
#include <cstdio>
#include <dlfcn.h>

int main(int argc, char **argv) {
  void *library = argc == 2 ? ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  void *version = library ? ::dlsym(library, "ncclGetVersion") : nullptr;
  void *getId = library ? ::dlsym(library, "ncclGetUniqueId") : nullptr;
  if (!version || !getId)
    return 77;
  int number = 0;
  reinterpret_cast<int (*)(int *)>(version)(&number);
  char id[128];
  int result = reinterpret_cast<int (*)(void *)>(getId)(id);
  std::printf("version %d result %d\n", number, result);
  return 0;
}
