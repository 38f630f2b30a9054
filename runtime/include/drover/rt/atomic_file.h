//===- atomic_file.h - a file that appears whole or not at all --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_ATOMIC_FILE_H
#define DROVER_RT_ATOMIC_FILE_H

#include <cstdint>
#include <string>
#include <string_view>

namespace drover::rt {

/// Writes beside the target under a temporary name; commit() flushes it to the disk and renames it. Without a
/// commit the temporary file is removed. Every failed system call is an Error naming the file and the reason.
class AtomicFile {
public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  void write(const void *data, uint64_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void writeAt(uint64_t offset, const void *data, uint64_t bytes);
  void commit();

private:
  [[noreturn]] void failed(const char *action);

  std::string path, temporary;
  int descriptor = -1;
};

/// Makes a folder where there is none. Its parent must exist: a path with a slip in it makes none.
void makeFolder(const std::string &path);

/// Throws Error where a file (or a folder of files) cannot be made at this path, so that hours of work are not lost
/// at the end.
void checkCanCreateFile(const std::string &path);
void checkCanCreateFilesIn(const std::string &folder);

} // namespace drover::rt

#endif // DROVER_RT_ATOMIC_FILE_H
