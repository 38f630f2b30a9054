//===- MappedFile.cpp - a file mapped read-only ---------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/mapped_file.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace drover::rt {

MappedFile::MappedFile(std::string path) : name(std::move(path)) {
  int descriptor = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    fail(name, ": cannot open: ", std::strerror(errno));
  struct stat info;
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    fail(name, ": expected a regular file");
  }
  length = uint64_t(info.st_size);
  void *address = length ? ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, descriptor, 0) : nullptr;
  int code = errno;
  ::close(descriptor);
  if (address == MAP_FAILED)
    fail(name, ": cannot map ", length, " bytes: ", std::strerror(code));
  bytes = static_cast<const uint8_t *>(address);
}

MappedFile::~MappedFile() {
  if (bytes)
    ::munmap(const_cast<uint8_t *>(bytes), length);
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : name(std::move(other.name)), bytes(std::exchange(other.bytes, nullptr)), length(std::exchange(other.length, 0)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(name, other.name);
  std::swap(bytes, other.bytes);
  std::swap(length, other.length);
  return *this;
}

} // namespace drover::rt
