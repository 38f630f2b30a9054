//===- RepetitionTest.cpp - where a sequence repeats ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "OutlineAnalysis.h"
#include <gtest/gtest.h>

using namespace drover::tfm;

/// The repetition in segments named by letters, each with one operation.
static std::string find(llvm::StringRef letters) {
  llvm::SmallVector<unsigned> keys(letters.begin(), letters.end()), weights(letters.size(), 1);
  Repetition found = findRepetition(keys, weights);
  std::string text;
  for (unsigned i = 0; i < found.count; ++i)
    text += letters.substr(found.first + i * found.period, found.period).str() + " ";
  return text;
}

TEST(Repetition, FindsLayersBetweenPrologueAndEpilogue) {
  EXPECT_EQ(find("eAMAMAMnh"), "AM AM AM ");
  EXPECT_EQ(find("eLLLLnh"), "L L L L ");
}

TEST(Repetition, KeepsLayersWithOneDifferentPart) {
  EXPECT_EQ(find("eAMAMAMBMAMAMAMBMnh"), "AM AM AM BM AM AM AM BM ");
  EXPECT_EQ(find("eADAEAEAEnh"), "AD AE AE AE ");
}

TEST(Repetition, FindsNothingWhereNothingRepeats) {
  EXPECT_EQ(find("eAMnh"), "");
  EXPECT_EQ(find(""), "");
}

TEST(Repetition, IsFastOnLongSequences) {
  std::string letters = "e";
  for (int i = 0; i < 3000; ++i)
    letters += "AM";
  EXPECT_EQ(find(letters).size(), 9000u);
}
