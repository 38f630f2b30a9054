//===- npy.h - NumPy array files --------------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_NPY_H
#define DROVER_RT_NPY_H

#include "drover/rt/dtype.h"
#include "drover/rt/mapped_file.h"
#include <string>
#include <vector>

namespace drover::rt {

/// A .npy file of format 1, 2 or 3 in C order, little-endian; booleans, integers and floats.
class NpyFile {
public:
  /// Throws Error where the file is no such array.
  explicit NpyFile(const std::string &path);

  const std::string &path() const { return file.path(); }
  const std::vector<int64_t> &shape() const { return sizes; }
  /// Converts into `result`, which has as many elements as the file. Throws Error at the first value that the type
  /// does not hold exactly.
  void read(DType type, void *result) const;

private:
  void parseHeader(std::string_view header);

  MappedFile file;
  std::vector<int64_t> sizes;
  int64_t count = 1;
  char kind = 'f'; // NumPy's: f, i, u, b
  int width = 4;   // bytes
  uint64_t dataOffset = 0;
};

/// Writes an array; bf16 as f32, since NumPy has no such type. Atomic; throws Error.
void writeNpy(const std::string &path, DType type, const std::vector<int64_t> &shape, const void *data);

} // namespace drover::rt

#endif // DROVER_RT_NPY_H
