//===- Origin.h - what a pointer is computed from ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_EMULATION_ORIGIN_H
#define DROVER_EMULATION_ORIGIN_H

#include "mlir/IR/Value.h"

namespace drover::emu {

/// Where a pointer comes from, followed through address arithmetic, selects, loops and structs.
struct Origin {
  enum Kind {
    Nothing, ///< no source found yet
    Argument,
    Shared,
    Local,    ///< an alloca
    Constant, ///< a global outside shared memory
    Unknown,  ///< several of these, or loaded from memory
  };
  Kind kind = Nothing;
  int argument = -1;
};

/// `isKernel`: the function's own arguments are origins.
Origin findOrigin(mlir::Value pointer, bool isKernel);

} // namespace drover::emu

#endif // DROVER_EMULATION_ORIGIN_H
