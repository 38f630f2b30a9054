//===- NcclLibrary.cpp - libnccl, opened at run time ----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "comm/NcclLibrary.h"
#include "drover/rt/error.h"

namespace drover::rt {

static const LibraryNames libraryNames = {
    "nccl", "DROVER_RT_NCCL", {"libnccl.so.2"}, "install NCCL 2.20 or later (the wheel nvidia-nccl-cu13 has it)"};

static constexpr int oldestVersion = 22000; // 2.20: configurations with all that is set here

static std::string versionText(int number) {
  return concat(number / 10000, ".", number / 100 % 100, ".", number % 100);
}

NcclLibrary::NcclLibrary(const std::string &asked) : SharedLibrary(libraryNames, asked) {
#define DROVER_RESOLVE(result, member, symbol, parameters) resolve(member, #symbol);
  DROVER_NCCL_FUNCTIONS(DROVER_RESOLVE)
  if (versionNumber() < oldestVersion)
    fail("nccl: ", path(), " is ", version(), ", expected ", versionText(oldestVersion), " or later");
  if (versionNumber() >= nccl::windowsSince) {
    DROVER_NCCL_WINDOW_FUNCTIONS(DROVER_RESOLVE)
  }
#undef DROVER_RESOLVE
}

int NcclLibrary::versionNumber() const {
  int number = 0;
  return getVersion(&number) == nccl::Success ? number : 0;
}

std::string NcclLibrary::version() const { return versionText(versionNumber()); }

std::string NcclLibrary::describe(int code, nccl::Handle communicator) const {
  const char *more = getLastError(communicator);
  return concat(getErrorString(code), more && *more ? concat(" (NCCL says: ", more, ")") : "");
}

const char *adviceFor(int code) {
  switch (code) {
  case nccl::UnhandledCudaError:
    return "look at the device's state (nvidia-smi, dmesg for Xid) and at NCCL_DEBUG=WARN";
  case nccl::SystemError:
    return "look at NCCL_DEBUG=WARN: an interface (NCCL_SOCKET_IFNAME, NCCL_IB_HCA), shared memory (/dev/shm) or a "
           "limit "
           "(ulimit -l, -n)";
  case nccl::RemoteError:
    return "another rank or the network has failed: the first error of all ranks is the cause";
  case nccl::InvalidUsage:
  case nccl::InvalidArgument:
    return "ranks disagree, or two of them use one device: look at NCCL_DEBUG=WARN of all ranks";
  default:
    return "look at NCCL_DEBUG=WARN";
  }
}

} // namespace drover::rt
