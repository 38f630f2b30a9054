//===- fatal.h - the end of a rank ------------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_FATAL_H
#define DROVER_RT_FATAL_H

namespace drover::rt {

/// Reports a failure that compiled code cannot return (docs/runtime-abi.md) and aborts.
[[noreturn]] void fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/// The same for data of the user that compiled code cannot go on with: an error as main prints it, and exit status 1.
[[noreturn]] void endWithError(const char *format, ...) __attribute__((format(printf, 1, 2)));

} // namespace drover::rt

#endif // DROVER_RT_FATAL_H
