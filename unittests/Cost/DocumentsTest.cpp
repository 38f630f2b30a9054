//===- DocumentsTest.cpp --------------------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cost/Documents.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>

using namespace drover::cost;

namespace {

DocumentLengths lognormal(double mean, double deviation) {
  DocumentLengths lengths;
  lengths.mean = mean, lengths.deviation = deviation;
  return lengths;
}

TEST(Documents, withoutLengthsASequenceIsOneDocument) {
  DocumentLoad load = loadOf({}, 8192, 4, 1);
  EXPECT_DOUBLE_EQ(load.keys, 8193 / 2.0);
  EXPECT_DOUBLE_EQ(load.cpImbalance, 1);
  EXPECT_DOUBLE_EQ(load.deviation, 0);
}

// CP's two chunks a rank balance a causal mask over whole sequences exactly.
TEST(Documents, documentsAsLongAsSequencesAreBalanced) {
  DocumentLengths lengths;
  lengths.sample = {4096 * 1000.0};
  for (int64_t cp : {1, 2, 8}) {
    DocumentLoad load = loadOf(lengths, 4096, cp, 2);
    EXPECT_DOUBLE_EQ(load.keys, 4097 / 2.0);
    EXPECT_DOUBLE_EQ(load.cpImbalance, 1);
    EXPECT_NEAR(load.deviation, 0, 1e-6);
  }
}

// A token is in a document of length l with a probability proportional to l: E[l (l + 1) / 2] / E[l].
TEST(Documents, keysAreThoseOfTheLengthBiasedMean) {
  for (double deviation : {0.0, 0.5, 1.0}) {
    double mean = 300, expected = (mean * (1 + deviation * deviation) + 1) / 2;
    DocumentLoad load = loadOf(lognormal(mean, deviation), 1 << 17, 1, 1);
    EXPECT_NEAR(load.keys / expected, 1, 0.02) << deviation;
  }
}

TEST(Documents, aSampleStandsForItsDistribution) {
  DocumentLengths lengths;
  lengths.sample = {100, 100, 100, 1300}; // mean 400
  double expected = (3 * 100 * 101 / 2.0 + 1300 * 1301 / 2.0) / 1600;
  EXPECT_NEAR(loadOf(lengths, 1 << 16, 1, 1).keys / expected, 1, 0.02);
}

// Sequences that are cut into whole documents: enumerated by hand.
TEST(Documents, oneDocumentAChunkBalancesAndHalfASequenceDoesNot) {
  // The stream starts with half a document of 512, so documents lie across chunks from 256 on.
  DocumentLengths lengths;
  lengths.sample = {512};
  DocumentLoad load = loadOf(lengths, 1024, 2, 1); // chunks of 256
  // Tokens 0..255: a whole half (its 256 tokens attend to 1..256 keys); 256..511 the first and 512..767 the second half
  // of a document, 768..1023 the first half of the next.
  double half = 256 * 257 / 2.0, rest = 512 * 513 / 2.0 - half;
  double ranks[] = {2 * half, half + rest};
  EXPECT_NEAR(load.cpImbalance, std::max(ranks[0], ranks[1]) / ((ranks[0] + ranks[1]) / 2), 1e-9);
  EXPECT_NEAR(load.keys, (ranks[0] + ranks[1]) / 1024, 1e-9);
  EXPECT_NEAR(load.deviation, 0, 1e-6);
}

TEST(Documents, imbalanceGrowsWithCpAndShrinksWithTheMicrobatch) {
  DocumentLengths lengths = lognormal(2000, 2);
  double before = 1;
  for (int64_t cp : {2, 4, 8, 16}) {
    double now = loadOf(lengths, 131072, cp, 1).cpImbalance;
    EXPECT_GT(now, before) << cp;
    before = now;
  }
  DocumentLoad one = loadOf(lengths, 8192, 1, 1), four = loadOf(lengths, 8192, 1, 4);
  EXPECT_LT(four.deviation, one.deviation);
  EXPECT_GT(one.deviation, 0.1);
}

TEST(Documents, theSameInEveryRun) {
  DocumentLengths lengths = lognormal(700, 1.5);
  DocumentLoad first = loadOf(lengths, 8192, 2, 1), second = loadOf(lengths, 8192, 2, 1);
  EXPECT_EQ(first.keys, second.keys);
  EXPECT_EQ(first.cpImbalance, second.cpImbalance);
  EXPECT_EQ(first.deviation, second.deviation);
}

} // namespace
