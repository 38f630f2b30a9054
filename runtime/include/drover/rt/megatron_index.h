//===- megatron_index.h - the index of a Megatron token file ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The .idx beside a .bin, little-endian: the nine bytes "MMIDIDX" 0 0; u64 version 1; u8 code of the element type;
// u64 number of sequences n; u64 number of document entries d; i32 length of each of the n sequences; i64 byte offset
// of each in the .bin; i64 index of the first sequence of each document, d of them; then, in multimodal files, an i8
// mode of each sequence, which is not read.
#ifndef DROVER_RT_MEGATRON_INDEX_H
#define DROVER_RT_MEGATRON_INDEX_H

#include "drover/rt/mapped_file.h"
#include "drover/rt/token_stream.h"
#include <vector>

namespace drover::rt {

struct MegatronIndex {
  /// A run of sequences that follow each other in the .bin.
  struct Range {
    uint64_t offset; // bytes
    int64_t tokens;
  };

  TokenType type;
  std::vector<Range> ranges;
};

/// Throws Error where the index is damaged or points outside of a .bin of `binBytes`.
MegatronIndex readMegatronIndex(const MappedFile &file, uint64_t binBytes);

} // namespace drover::rt

#endif // DROVER_RT_MEGATRON_INDEX_H
