//===- MpiLibrary.h - libmpi, opened at run time ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Two binary interfaces are known: Open MPI's, whose handles are pointers to objects in the library, and MPICH's
// (MPICH, Intel MPI, MVAPICH, Cray), whose handles are 32-bit integers. Handles are kept in a word that holds either; a
// callee that takes an int reads the low half of the register.
#ifndef DROVER_RT_LIB_COMM_MPILIBRARY_H
#define DROVER_RT_LIB_COMM_MPILIBRARY_H

#include <cstdint>
#include <string>

namespace drover::rt {

using MpiHandle = uintptr_t;

/// Room for an MPI_Status of either interface (24 and 20 bytes).
struct alignas(8) MpiStatus {
  unsigned char bytes[64];
};

class MpiLibrary {
public:
  /// Opens `asked`, else $DROVER_RT_MPI, else the usual names. Throws Error that names what was tried.
  explicit MpiLibrary(const std::string &asked);

  // Constants of the interface.
  MpiHandle world = 0, byte = 0, errorsReturn = 0, nullRequest = 0;
  int anySource = 0;
  int tagUpperBound = 0; // keyval of the attribute

  int (*initialized)(int *flag) = nullptr;
  int (*initThread)(int *argc, char ***argv, int required, int *provided) = nullptr;
  int (*finalize)() = nullptr;
  int (*commRank)(MpiHandle, int *) = nullptr;
  int (*commSize)(MpiHandle, int *) = nullptr;
  int (*commDup)(MpiHandle, MpiHandle *) = nullptr;
  int (*commSetErrhandler)(MpiHandle, MpiHandle) = nullptr;
  int (*commGetAttr)(MpiHandle, int, void *, int *) = nullptr;
  int (*isend)(const void *, int, MpiHandle, int, int, MpiHandle, MpiHandle *) = nullptr;
  int (*irecv)(void *, int, MpiHandle, int, int, MpiHandle, MpiHandle *) = nullptr;
  int (*test)(MpiHandle *, int *, MpiStatus *) = nullptr;
  int (*cancel)(MpiHandle *) = nullptr;
  int (*getCount)(const MpiStatus *, MpiHandle, int *) = nullptr;
  int (*errorString)(int, char *, int *) = nullptr;
  int (*libraryVersion)(char *, int *) = nullptr;

  const std::string &path() const { return name; }
  /// "Open MPI v4.1.4": the first line of what the library says of itself.
  std::string version() const;

  /// The text of an error code.
  std::string describe(int code) const;
  /// Throws Error where `code` is not success.
  void check(int code, const char *what) const;

private:
  void open(const std::string &asked);
  template <typename Fn> void resolve(Fn *&function, const char *symbol);
  void *find(const char *symbol) const;

  void *library = nullptr; // never closed: MPI leaves threads and handlers behind
  std::string name;
};

} // namespace drover::rt

#endif // DROVER_RT_LIB_COMM_MPILIBRARY_H
