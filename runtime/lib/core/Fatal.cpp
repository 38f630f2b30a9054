//===- Fatal.cpp - the end of a rank --------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/fatal.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>

static void print(const char *kind, const char *format, va_list arguments) {
  char message[512];
  vsnprintf(message, sizeof(message), format, arguments);
  fprintf(stderr, "%s: %s\n", kind, message);
}

void drover::rt::fatal(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print("fatal", format, arguments);
  va_end(arguments);
  abort();
}

void drover::rt::endWithError(const char *format, ...) {
  static std::mutex first; // the other threads of a kernel find the same
  first.lock();
  va_list arguments;
  va_start(arguments, format);
  print("error", format, arguments);
  va_end(arguments);
  // Other threads are at work: nothing may be destroyed under them.
  _Exit(1);
}
