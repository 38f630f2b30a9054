//===- token_stream.h - the tokens that training reads ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_TOKEN_STREAM_H
#define DROVER_RT_TOKEN_STREAM_H

#include "drover/rt/mapped_file.h"
#include <string>
#include <vector>

namespace drover::rt {

/// How a token lies in a file, little-endian.
enum class TokenType { U8, U16, U32, I8, I16, I32, I64 };
int64_t byteSize(TokenType type);

/// One sequence of tokens over one or more mapped files.
class TokenStream {
public:
  /// Opens what --data names: a text file or folder, FILE.u16, FILE.u32, or a Megatron pair named by its .bin, its
  /// .idx or what they have in common. Throws Error.
  static TokenStream open(const std::string &path);

  int64_t size() const { return total; }
  /// Tokens [begin, begin + count).
  void read(int64_t begin, int64_t count, int64_t *result) const;
  /// Throws Error naming file, place and id where a token is not in [0, vocabulary).
  void checkVocabulary(int64_t vocabulary) const;

private:
  struct Segment {
    int64_t first, count; // tokens
    size_t file;
    uint64_t offset; // bytes
    TokenType type;
  };

  void addFile(const std::string &path, TokenType type);
  void addFolder(const std::string &path);
  void addMegatron(const std::string &prefix);
  void addSegment(size_t file, uint64_t offset, int64_t count, TokenType type);

  std::vector<MappedFile> files;
  std::vector<Segment> segments;
  int64_t total = 0;
};

} // namespace drover::rt

#endif // DROVER_RT_TOKEN_STREAM_H
