//===- mapped_file.h - a file mapped read-only ------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_MAPPED_FILE_H
#define DROVER_RT_MAPPED_FILE_H

#include <cstdint>
#include <string>

namespace drover::rt {

/// Throws Error naming the file where it cannot be opened or mapped.
class MappedFile {
public:
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const uint8_t *data() const { return bytes; }
  uint64_t size() const { return length; }
  const std::string &path() const { return name; }

private:
  std::string name;
  const uint8_t *bytes = nullptr;
  uint64_t length = 0;
};

} // namespace drover::rt

#endif // DROVER_RT_MAPPED_FILE_H
