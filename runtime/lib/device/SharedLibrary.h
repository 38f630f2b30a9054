//===- SharedLibrary.h - a library of the machine's -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// An executable starts anywhere: what only some backends need is opened when they do, and where it is missing the error
// says what was looked for, and where.
#ifndef DROVER_RT_LIB_DEVICE_SHAREDLIBRARY_H
#define DROVER_RT_LIB_DEVICE_SHAREDLIBRARY_H

#include <cstring>
#include <string>
#include <vector>

namespace drover::rt {

/// How a library is found and what is said where it is not.
struct LibraryNames {
  const char *what;               // "cuda": begins messages
  const char *variable;           // names a file instead
  std::vector<std::string> usual; // tried in this order
  const char *advice;             // "install the NVIDIA driver"
};

/// Sets a variable that a library reads, where the user has not. Early, in the process's only thread: setenv may move
/// what another thread's getenv has returned. Where the variable is set nothing is done.
void setVariable(const char *name, const char *value);

class SharedLibrary {
public:
  /// Opens `asked`, else the one that the variable names, else a usual one. Throws Error that lists what was tried.
  SharedLibrary(const LibraryNames &names, const std::string &asked);
  SharedLibrary(const SharedLibrary &) = delete;
  SharedLibrary &operator=(const SharedLibrary &) = delete;

  const std::string &path() const { return name; }

protected:
  template <typename Fn> void resolve(Fn *&function, const char *symbol) const {
    void *address = find(symbol);
    std::memcpy(&function, &address, sizeof(function));
  }

private:
  /// Throws Error where there is none.
  void *find(const char *symbol) const;

  const char *what;
  void *library = nullptr; // never closed: such libraries leave threads and handlers behind
  std::string name;
};

} // namespace drover::rt

#endif // DROVER_RT_LIB_DEVICE_SHAREDLIBRARY_H
