//===- AtomicFile.cpp - a file that appears whole or not at all -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/atomic_file.h"
#include "drover/rt/error.h"
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace drover::rt {

AtomicFile::AtomicFile(std::string target)
    : path(std::move(target)), temporary(path + "." + std::string(6, 'X')) { // which mkstemp replaces
  descriptor = ::mkstemp(temporary.data());
  if (descriptor < 0)
    fail(path, ": cannot create: ", std::strerror(errno));
}

AtomicFile::~AtomicFile() {
  if (descriptor >= 0) {
    ::close(descriptor);
    ::unlink(temporary.c_str());
  }
}

void AtomicFile::failed(const char *action) { fail(path, ": cannot ", action, ": ", std::strerror(errno)); }

void AtomicFile::write(const void *data, uint64_t bytes) {
  const char *next = static_cast<const char *>(data);
  while (bytes) {
    ssize_t written = ::write(descriptor, next, std::min<uint64_t>(bytes, 1 << 30));
    if (written < 0) {
      if (errno == EINTR)
        continue;
      failed("write");
    }
    next += written;
    bytes -= uint64_t(written);
  }
}

void AtomicFile::writeAt(uint64_t offset, const void *data, uint64_t bytes) {
  if (::lseek(descriptor, off_t(offset), SEEK_SET) < 0)
    failed("seek in");
  write(data, bytes);
}

void AtomicFile::commit() {
  mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(descriptor, 0666 & ~mask) != 0)
    failed("set the mode of");
  if (::fsync(descriptor) != 0)
    failed("flush");
  // The rename is what makes the file visible; only then is there nothing left to remove.
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    failed("rename to");
  ::close(std::exchange(descriptor, -1));
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    ::fsync(directory);
    ::close(directory);
  }
}

void makeFolder(const std::string &path) {
  if (::mkdir(path.c_str(), 0777) == 0)
    return;
  int reason = errno;
  std::error_code code;
  if (!std::filesystem::is_directory(path, code))
    fail(path, ": cannot create the folder: ", std::strerror(reason));
}

void checkCanCreateFile(const std::string &path) { AtomicFile probe(path); }

void checkCanCreateFilesIn(const std::string &folder) {
  makeFolder(folder);
  checkCanCreateFile(folder + "/probe");
}

} // namespace drover::rt
