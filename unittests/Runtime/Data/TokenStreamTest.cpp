//===- TokenStreamTest.cpp - token files and their order ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "../TestFiles.h"
#include "drover/rt/data_order.h"
#include "drover/rt/megatron_index.h"
#include "drover/rt/token_stream.h"
#include <algorithm>
#include <numeric>
#include <random>

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

std::vector<int64_t> readAll(const TokenStream &stream) {
  std::vector<int64_t> tokens(static_cast<size_t>(stream.size()));
  stream.read(0, stream.size(), tokens.data());
  return tokens;
}

TEST(TokenStream, TextIsItsBytes) {
  TemporaryFolder folder;
  EXPECT_EQ(readAll(TokenStream::open(folder.write("a.txt", "A\xff\n"))), (std::vector<int64_t>{65, 255, 10}));
}

TEST(TokenStream, FolderIsItsFilesInOrder) {
  TemporaryFolder folder;
  folder.write("text/b", "2");
  folder.write("text/a/z", "1");
  folder.write("text/.hidden", "x");
  folder.write("text/.git/y", "x");
  folder.write("text/empty", "");
  folder.write("text/c", "34");
  EXPECT_EQ(readAll(TokenStream::open(folder.path("text"))), (std::vector<int64_t>{'1', '2', '3', '4'}));
  folder.write("text/t.u16", "34");
  expectError([&] { TokenStream::open(folder.path("text")); }, "t.u16: a token file in a folder of text");
  std::filesystem::create_directory(folder.path("none"));
  expectError([&] { TokenStream::open(folder.path("none")); }, "none: no file in this folder");
}

TEST(TokenStream, RawTokensAreLittleEndian) {
  TemporaryFolder folder;
  EXPECT_EQ(readAll(TokenStream::open(folder.write("a.u16", std::string("\x01\x02\xff\xff", 4)))),
            (std::vector<int64_t>{513, 65535}));
  EXPECT_EQ(readAll(TokenStream::open(folder.write("a.u32", std::string("\x01\x00\x00\x80", 4)))),
            (std::vector<int64_t>{2147483649}));
  expectError([&] { TokenStream::open(folder.write("b.u16", "abc")); }, "b.u16: 3 bytes, expected a multiple of 2");
}

TEST(TokenStream, ReadsAcrossFiles) {
  TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 20; ++i) {
    std::string part(size_t(i % 5), char('a' + i));
    folder.write("text/" + std::string(1, char('a' + i)), part);
    text += part;
  }
  TokenStream stream = TokenStream::open(folder.path("text"));
  ASSERT_EQ(stream.size(), int64_t(text.size()));
  for (int64_t begin = 0; begin < stream.size(); ++begin)
    for (int64_t count = 1; begin + count <= stream.size(); ++count) {
      std::vector<int64_t> tokens(static_cast<size_t>(count));
      stream.read(begin, count, tokens.data());
      EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), text.begin() + begin));
    }
}

TEST(TokenStream, MissingAndBlendedPathsAreErrors) {
  expectError([] { TokenStream::open("/nonexistent/file"); }, "/nonexistent/file: cannot open: No such file");
  expectError([] { TokenStream::open("0.5:a,0.5:b"); }, "blending by weight is not supported");
}

TEST(TokenStream, IdsBeyondTheVocabularyNameFilePlaceAndId) {
  TemporaryFolder folder;
  TokenStream stream = TokenStream::open(folder.write("a.u16", bytesOf(std::vector<uint16_t>{1, 2, 300, 4})));
  stream.checkVocabulary(301);
  expectError([&] { stream.checkVocabulary(300); }, "a.u16: token id 300 at byte 4, expected ids from 0 to 299");
  TokenStream text = TokenStream::open(folder.write("t.txt", "ab~"));
  text.checkVocabulary(127);
  expectError([&] { text.checkVocabulary(126); }, "t.txt: token id 126 at byte 2");
}

//===----------------------------------------------------------------------===//
// Megatron
//===----------------------------------------------------------------------===//

std::string makeIndex(uint8_t code, const std::vector<int32_t> &lengths, const std::vector<int64_t> &offsets,
                      const std::vector<int64_t> &documents) {
  return std::string("MMIDIDX\0\0", 9) + bytesOf(uint64_t(1)) + std::string(1, char(code)) +
         bytesOf(uint64_t(lengths.size())) + bytesOf(uint64_t(documents.size())) + bytesOf(lengths) + bytesOf(offsets) +
         bytesOf(documents);
}

TEST(Megatron, PairIsReadByAnyOfItsNames) {
  TemporaryFolder folder;
  folder.write("corpus.bin", bytesOf(std::vector<uint16_t>{5, 6, 7, 8, 9}));
  folder.write("corpus.idx", makeIndex(8, {2, 0, 3}, {0, 4, 4}, {0, 2, 3}));
  for (const char *name : {"corpus", "corpus.bin", "corpus.idx"})
    EXPECT_EQ(readAll(TokenStream::open(folder.path(name))), (std::vector<int64_t>{5, 6, 7, 8, 9})) << name;
}

TEST(Megatron, SequencesNeedNotFollowEachOther) {
  TemporaryFolder folder;
  folder.write("c.bin", bytesOf(std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  folder.write("c.idx", makeIndex(4, {2, 2}, {16, 0}, {0, 2}));
  EXPECT_EQ(readAll(TokenStream::open(folder.path("c"))), (std::vector<int64_t>{4, 5, 0, 1}));
}

TEST(Megatron, NegativeIdsAreRefused) {
  TemporaryFolder folder;
  folder.write("c.bin", bytesOf(std::vector<int32_t>{3, -1}));
  folder.write("c.idx", makeIndex(4, {2}, {0}, {0, 1}));
  expectError([&] { TokenStream::open(folder.path("c")).checkVocabulary(10); }, "c.bin: token id -1 at byte 4");
}

TEST(Megatron, DamagedIndicesAreRefused) {
  TemporaryFolder folder;
  folder.write("c.bin", std::string(8, '\0'));
  auto refuses = [&](const std::string &index, const char *message) {
    folder.write("c.idx", index);
    expectError([&] { TokenStream::open(folder.path("c")); }, message);
  };
  std::string good = makeIndex(8, {2, 2}, {0, 4}, {0, 2});
  refuses("", "0 bytes, a Megatron index has at least 34");
  refuses("X" + good.substr(1), "no Megatron index");
  refuses(good.substr(0, 9) + bytesOf(uint64_t(2)) + good.substr(17), "index version 2, expected 1");
  refuses(makeIndex(7, {2, 2}, {0, 4}, {0, 2}), "element type code 7, expected an integer type");
  refuses(makeIndex(8, {2, 3}, {0, 4}, {0, 2}), "sequence 1 has 3 tokens at byte 4, beyond the 8 bytes");
  refuses(makeIndex(8, {-1}, {0}, {0}), "sequence 0 has -1 tokens");
  refuses(makeIndex(8, {1}, {-2}, {0}), "sequence 0 has 1 tokens at byte -2");
  refuses(good.substr(0, good.size() - 1), "2 sequences and 2 documents do not fit into");
  refuses(good.substr(0, 18) + bytesOf(UINT64_MAX) + good.substr(26), "do not fit into");
  folder.write("only.idx", good);
  expectError([&] { TokenStream::open(folder.path("only")); }, "only.bin: cannot open");
}

TEST(Megatron, MutatedIndicesNeverCrash) {
  TemporaryFolder folder;
  folder.write("c.bin", std::string(64, '\1'));
  std::string good = makeIndex(8, {2, 3, 4}, {0, 4, 10}, {0, 1, 3});
  std::mt19937 random(5);
  int64_t accepted = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string bad = good;
    for (int change = 0; change <= int(random() % 3); ++change)
      bad[random() % bad.size()] = char(random());
    if (random() % 4 == 0)
      bad.resize(random() % bad.size());
    folder.write("c.idx", bad);
    try {
      readAll(TokenStream::open(folder.path("c")));
      ++accepted;
    } catch (const Error &) {
    }
  }
  EXPECT_GT(accepted, 0);
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

TEST(DataOrder, InOrderWrapsAround) {
  DataOrder order(5, false, 1);
  for (int64_t i = 0; i < 17; ++i)
    EXPECT_EQ(order.place(i), i % 5);
}

TEST(DataOrder, NumbersFollowTheClosedForm) {
  // Sequence C + m*(DP*B) + d*B + b: all of a step, each once, data ranks fastest within a microbatch.
  int64_t consumed = 30, microbatches = 3, dataRanks = 2, size = 4, next = consumed;
  for (int64_t m = 0; m < microbatches; ++m)
    for (int64_t d = 0; d < dataRanks; ++d)
      for (int64_t b = 0; b < size; ++b)
        EXPECT_EQ(DataOrder::number(consumed, m, dataRanks, d, size, b), next++);
}

TEST(DataOrder, ShuffleIsAPermutationOfEveryEpoch) {
  for (int64_t count : {1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097}) {
    DataOrder order(count, true, 9);
    std::vector<int64_t> previous;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<int64_t> places;
      for (int64_t i = 0; i < count; ++i)
        places.push_back(order.place(epoch * count + i));
      if (count > 16)
        EXPECT_NE(places, previous);
      previous = places;
      std::sort(places.begin(), places.end());
      std::vector<int64_t> all(static_cast<size_t>(count));
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(places, all) << count << " in epoch " << epoch;
    }
  }
}

TEST(DataOrder, ShuffleFollowsTheSeed) {
  DataOrder a(1000, true, 1), same(1000, true, 1), b(1000, true, 2);
  int64_t equal = 0, fixed = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(a.place(i), same.place(i));
    equal += a.place(i) == b.place(i);
    fixed += a.place(i) == i;
  }
  EXPECT_LT(equal, 10); // one is expected
  EXPECT_LT(fixed, 10);
}

TEST(DataOrder, LargeDomainsWork) {
  int64_t count = (int64_t(1) << 40) + 12345;
  DataOrder order(count, true, 3);
  for (int64_t i : {int64_t(0), count - 1, count, 5 * count + 7}) {
    EXPECT_GE(order.place(i), 0);
    EXPECT_LT(order.place(i), count);
  }
}

} // namespace
