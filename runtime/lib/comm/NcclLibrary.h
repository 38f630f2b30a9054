//===- NcclLibrary.h - libnccl, opened at run time --------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_LIB_COMM_NCCLLIBRARY_H
#define DROVER_RT_LIB_COMM_NCCLLIBRARY_H

#include "comm/NcclApi.h"
#include "device/SharedLibrary.h"

namespace drover::rt {

class NcclLibrary : public SharedLibrary {
public:
  /// Opens `asked`, else $DROVER_RT_NCCL, else libnccl.so.2. Throws Error, also where it is too old.
  explicit NcclLibrary(const std::string &asked);

#define DROVER_MEMBER(result, member, symbol, parameters) result(*member) parameters = nullptr;
  DROVER_NCCL_FUNCTIONS(DROVER_MEMBER)
  DROVER_NCCL_WINDOW_FUNCTIONS(DROVER_MEMBER) // null before nccl::windowsSince
#undef DROVER_MEMBER

  /// 22809
  int versionNumber() const;
  /// "2.28.9"
  std::string version() const;
  /// "unhandled system error (NCCL says: ..)"; `communicator` may be null.
  std::string describe(int code, nccl::Handle communicator) const;
};

/// What to do about a code of NCCL.
const char *adviceFor(int code);

} // namespace drover::rt

#endif // DROVER_RT_LIB_COMM_NCCLLIBRARY_H
