//===- MpiLibrary.cpp - libmpi, opened at run time ------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "comm/MpiLibrary.h"
#include "drover/rt/error.h"
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <vector>

namespace drover::rt {

void *MpiLibrary::find(const char *symbol) const { return ::dlsym(library, symbol); }

template <typename Fn> void MpiLibrary::resolve(Fn *&function, const char *symbol) {
  void *address = find(symbol);
  if (!address)
    fail("mpi: ", name, " has no ", symbol);
  std::memcpy(&function, &address, sizeof(function));
}

/// libmpi.so.40 is Open MPI 4 and 5; libmpi.so.12 the common interface of MPICH and its relatives, libmpich.so.12 as
/// Debian has it; the name without a number comes with development packages. Those of the launcher's kind come first.
static std::vector<std::string> usualNames() {
  std::vector<std::string> names = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi.so"};
  if (!std::getenv("OMPI_COMM_WORLD_SIZE") && std::getenv("PMI_SIZE"))
    names = {"libmpi.so.12", "libmpich.so.12", "libmpi.so.40", "libmpi.so"};
  return names;
}

void MpiLibrary::open(const std::string &asked) {
  std::vector<std::string> names = usualNames();
  const char *variable = std::getenv("DROVER_RT_MPI");
  if (!asked.empty())
    names = {asked};
  else if (variable && *variable)
    names = {variable};
  std::string tried;
  for (const std::string &candidate : names) {
    // Global: Open MPI's plugins look for its symbols.
    library = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library) {
      name = candidate;
      return;
    }
    const char *reason = ::dlerror();
    tried += concat("\n  ", candidate, ": ", reason ? reason : "cannot be opened");
  }
  fail("mpi: no MPI library; install Open MPI or MPICH, or name one in DROVER_RT_MPI; tried", tried);
}

static bool likeMpich(const std::string &version) {
  for (const char *family : {"MPICH", "Intel", "MVAPICH"})
    if (version.find(family) != std::string::npos)
      return true;
  return false;
}

MpiLibrary::MpiLibrary(const std::string &asked) {
  open(asked);
  resolve(libraryVersion, "MPI_Get_library_version");
  if (void *object = find("ompi_mpi_comm_world")) {
    world = MpiHandle(object);
    byte = MpiHandle(find("ompi_mpi_byte"));
    errorsReturn = MpiHandle(find("ompi_mpi_errors_return"));
    nullRequest = MpiHandle(find("ompi_request_null"));
    anySource = -1;
    tagUpperBound = 0;
    if (!byte || !errorsReturn || !nullRequest)
      fail("mpi: ", name, " looks like Open MPI, but lacks its objects");
  } else if (likeMpich(version())) {
    world = 0x44000000;
    byte = 0x4c00010d;
    errorsReturn = 0x54000001;
    nullRequest = 0x2c000000;
    anySource = -2;
    tagUpperBound = 0x64400001;
  } else {
    fail("mpi: ", name, " (", version(), ") is neither Open MPI nor compatible with MPICH");
  }
  resolve(initialized, "MPI_Initialized");
  resolve(initThread, "MPI_Init_thread");
  resolve(finalize, "MPI_Finalize");
  resolve(commRank, "MPI_Comm_rank");
  resolve(commSize, "MPI_Comm_size");
  resolve(commDup, "MPI_Comm_dup");
  resolve(commSetErrhandler, "MPI_Comm_set_errhandler");
  resolve(commGetAttr, "MPI_Comm_get_attr");
  resolve(isend, "MPI_Isend");
  resolve(irecv, "MPI_Irecv");
  resolve(test, "MPI_Test");
  resolve(cancel, "MPI_Cancel");
  resolve(getCount, "MPI_Get_count");
  resolve(errorString, "MPI_Error_string");
}

std::string MpiLibrary::version() const {
  char text[8192] = {}; // MPI_MAX_LIBRARY_VERSION_STRING of MPICH
  int length = 0;
  libraryVersion(text, &length);
  return std::string(text, std::strcspn(text, ",\n"));
}

std::string MpiLibrary::describe(int code) const {
  char text[1024] = {};
  int length = 0;
  if (errorString(code, text, &length) != 0)
    return concat("error ", code);
  return text;
}

void MpiLibrary::check(int code, const char *what) const {
  if (code != 0)
    fail("mpi: ", what, ": ", describe(code));
}

} // namespace drover::rt
