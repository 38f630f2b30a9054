//===- SymbolicExprTest.cpp - arithmetic over symbolic sizes --------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Import/Onnx/SymbolicExpr.h"
#include <gtest/gtest.h>

using namespace drover::onnx;

namespace {

struct SymbolicExprTest : testing::Test {
  SymbolTable table;
  Expr b = table.symbol("batch"), s = table.symbol("seq"), p = table.symbol("past");
};

TEST_F(SymbolicExprTest, ProductsHaveOneNormalForm) {
  EXPECT_EQ((b + s) * (b + s), b * b + b * s * Expr(2) + s * s);
  EXPECT_EQ(b * s - s * b, Expr(0));
  EXPECT_TRUE((b - b + Expr(3)).is(3));
  EXPECT_NE(b * s, b * p);
}

TEST_F(SymbolicExprTest, ExactDivisionUndoesMultiplication) {
  EXPECT_EQ(SymbolTable::exactDiv(b * s * Expr(64), b * Expr(8)), s * Expr(8));
  EXPECT_EQ(SymbolTable::exactDiv(b * (p + s) * Expr(12), p + s), b * Expr(12));
  EXPECT_EQ(SymbolTable::exactDiv((p + s) * (p + s), p + s), p + s);
  EXPECT_FALSE(SymbolTable::exactDiv(s + Expr(1), s));
  EXPECT_FALSE(SymbolTable::exactDiv(s * Expr(3), 2));
  EXPECT_FALSE(SymbolTable::exactDiv(s, 0));
}

TEST_F(SymbolicExprTest, UnevenQuotientsBecomeAtoms) {
  Expr half = table.floorDiv(s, 2);
  EXPECT_EQ(half, table.floorDiv(s, 2));
  EXPECT_EQ(table.floorDiv(s * Expr(4) + Expr(2), 4), s);
  EXPECT_EQ(table.floorDiv(s * Expr(4) + s, 4), s + table.floorDiv(s, 4));
  EXPECT_TRUE(table.floorDiv(-7, 2).is(-4));
  EXPECT_TRUE(table.ceilDiv(7, 2).is(4));
  EXPECT_TRUE(table.mod(-1, 5).is(4));
  EXPECT_TRUE(table.mod(s * Expr(6), 3).is(0));
}

TEST_F(SymbolicExprTest, SignsHoldAtEverySize) {
  EXPECT_EQ(table.sign(s), Sign::Positive);
  EXPECT_EQ(table.sign(p), Sign::NonNegative);
  EXPECT_EQ(table.sign(s - Expr(1)), Sign::NonNegative);
  EXPECT_EQ(table.sign(-s), Sign::Negative);
  EXPECT_EQ(table.sign(s - p), Sign::Unknown);
  EXPECT_EQ(table.equal(s, -1), false);
  EXPECT_EQ(table.equal(s, 1), std::nullopt);
  EXPECT_EQ(table.less(p, p + s), true);
  EXPECT_EQ(table.less(s, Expr(1)), false);
}

TEST_F(SymbolicExprTest, BindingReplacesASymbolEverywhere) {
  Expr total = table.symbol("total");
  Expr half = table.floorDiv(total, 2);
  EXPECT_TRUE(table.bind(*total.asAtom(), p + s));
  EXPECT_EQ(table.resolve(total * b), b * (p + s));
  EXPECT_EQ(table.resolve(half), table.floorDiv(p + s, 2));
  EXPECT_FALSE(table.bind(*total.asAtom(), 4)) << "bound already";
  EXPECT_FALSE(table.bind(*p.asAtom(), p + Expr(1))) << "contains itself";
  EXPECT_EQ(table.symbol("total"), p + s);
}

TEST_F(SymbolicExprTest, DimParamsAreParsed) {
  EXPECT_EQ(table.parse("past + seq"), p + s);
  EXPECT_EQ(table.parse(" 2*seq "), s * Expr(2));
  EXPECT_EQ(table.parse("((seq - 1)//8) + 1"), table.floorDiv(s - Expr(1), 8) + Expr(1));
  EXPECT_EQ(table.parse("-(1 - seq)"), s - Expr(1));
  EXPECT_EQ(table.parse("batch"), b);
}

TEST_F(SymbolicExprTest, OtherTextsAreOneName) {
  for (const char *text : {"seq len", "a+", "(seq", "Max(1, s)", "seq**2", "seq/0", "?"}) {
    Expr expr = table.parse(text);
    ASSERT_TRUE(expr.asAtom()) << text;
    EXPECT_EQ(table.getAtoms()[*expr.asAtom()].name, text);
  }
}

TEST_F(SymbolicExprTest, OverflowIsNoticed) {
  Expr large = s * Expr(INT64_MAX);
  EXPECT_FALSE((large * Expr(2)).isValid());
  EXPECT_FALSE((large + large).isValid());
  Expr power = s;
  for (int i = 0; i < 8; ++i)
    power = power * power;
  EXPECT_FALSE(power.isValid()) << "a degree beyond any shape";
  EXPECT_EQ(table.sign(large * Expr(2)), Sign::Unknown);
}

TEST_F(SymbolicExprTest, ExtremesOfConstantsAreExactOrNoticed) {
  EXPECT_EQ(table.mod(INT64_MIN, 3), 1);
  EXPECT_EQ(table.mod(INT64_MIN, -1), 0);
  EXPECT_EQ(table.floorDiv(INT64_MIN, 3), -3074457345618258603);
  EXPECT_FALSE(table.floorDiv(INT64_MIN, -1).isValid());
  EXPECT_FALSE(SymbolTable::exactDiv(s * Expr(INT64_MIN), -1));
  EXPECT_EQ(table.sign(s * Expr(INT64_MIN)), Sign::Unknown);
  Expr large = s * Expr(INT64_MAX) * Expr(2);
  EXPECT_FALSE(table.floorDiv(large, 4).isValid());
  EXPECT_FALSE(table.mod(large, 4).isValid());
  EXPECT_FALSE(table.resolve(large).isValid());
}

TEST_F(SymbolicExprTest, TextIsReadable) {
  EXPECT_EQ(table.str(p + s * Expr(2) - Expr(1)), "past + 2*seq - 1");
  EXPECT_EQ(table.str(0), "0");
  EXPECT_EQ(table.str(table.floorDiv(s, 2)), "(seq) // (2)");
}

} // namespace
