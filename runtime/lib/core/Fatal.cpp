//===- Fatal.cpp - the end of a rank --------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/fatal.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

static std::atomic<drover::rt::FatalHook> fatalHook{nullptr};

void drover::rt::setFatalHook(FatalHook hook) { fatalHook.store(hook); }

void drover::rt::fatal(const char *format, ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  fprintf(stderr, "fatal: %s\n", message);
  // Exchanged, so that a hook that fails itself does not come back here for ever.
  if (FatalHook hook = fatalHook.exchange(nullptr))
    hook(message);
  abort();
}
