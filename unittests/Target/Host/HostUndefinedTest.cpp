//===- HostUndefinedTest.cpp - what no op defines, on the CPU ---*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Values that come from files may be any: an index out of range ends the run, an integer division by zero does not.
//===----------------------------------------------------------------------===//
#include "HostHarness.h"
#include <gtest/gtest.h>

using namespace drover;
using namespace drover::test;

namespace {

/// Runs a body of one op whose argument `which` begins with `index`.
void runWith(const std::string &signature, const std::string &op, unsigned which, int64_t index) {
  CompiledBodies bodies("func.func private @body" + signature + " attributes {tfm.body = \"forward\"} {\n" + op +
                        "\n}");
  ASSERT_TRUE(bodies.ok()) << bodies.diagnostics();
  std::vector<Tensor> arguments = randomArguments(bodies.original("body"), 7, 0);
  arguments[which].ints[0] = index;
  bodies.run("body", arguments, {});
}

void expectIndexError(const std::string &signature, const std::string &op, unsigned which, int64_t index,
                      const std::string &message) {
  EXPECT_EXIT(runWith(signature, op, which, index), ::testing::ExitedWithCode(1), "^error: body: " + message);
}

TEST(HostUndefinedDeathTest, AGatherStaysInItsOperand) {
  const std::string signature = "(%x: tensor<2x3xf32>, %i: tensor<4xi64>) -> tensor<4x3xf32>";
  const std::string op = "%0 = tfm.gather %x, %i {axis = 0 : i64} : (tensor<2x3xf32>, tensor<4xi64>) -> "
                         "tensor<4x3xf32>\nreturn %0 : tensor<4x3xf32>";
  for (int64_t good : {-2, -1, 0, 1})
    runWith(signature, op, 1, good);
  expectIndexError(signature, op, 1, 1000000000, "gather: index 1000000000 is not in .-2, 2.");
  expectIndexError(signature, op, 1, 2, "gather: index 2 is not in .-2, 2.");
  expectIndexError(signature, op, 1, -3, "gather: index -3 is not in .-2, 2.");
  expectIndexError(signature, op, 1, INT64_MIN, "gather: index -9223372036854775808 is not in .-2, 2.");
}

TEST(HostUndefinedDeathTest, AGatherOfColumnsAndOfI32) {
  expectIndexError("(%x: tensor<2x3xf32>, %i: tensor<4xi32>) -> tensor<2x4xf32>",
                   "%0 = tfm.gather %x, %i {axis = 1 : i64} : (tensor<2x3xf32>, tensor<4xi32>) -> tensor<2x4xf32>\n"
                   "return %0 : tensor<2x4xf32>",
                   1, INT32_MIN, "gather: index -2147483648 is not in .-3, 3.");
}

TEST(HostUndefinedDeathTest, AnEmbeddingStaysInItsTable) {
  const std::string signature = "(%i: tensor<1x4xi64>, %t: tensor<5x3xf32>) -> tensor<1x4x3xf32>";
  const std::string op = "%0 = tfm.embedding %i, %t : (tensor<1x4xi64>, tensor<5x3xf32>) -> tensor<1x4x3xf32>\n"
                         "return %0 : tensor<1x4x3xf32>";
  runWith(signature, op, 0, 4);
  expectIndexError(signature, op, 0, 5, "embedding: index 5 is not in .0, 5.");
  expectIndexError(signature, op, 0, -1, "embedding: index -1 is not in .0, 5.");
}

TEST(HostUndefinedDeathTest, ScattersStayInTheirResult) {
  expectIndexError("(%x: tensor<2x3xf32>, %i: tensor<1x2xi64>, %u: tensor<1xf32>) -> tensor<2x3xf32>",
                   "%0 = tfm.scatter_nd %x, %i, %u : (tensor<2x3xf32>, tensor<1x2xi64>, tensor<1xf32>) -> "
                   "tensor<2x3xf32>\nreturn %0 : tensor<2x3xf32>",
                   1, 100000, "scatter_nd: index 100000 is not in .-2, 2.");
  expectIndexError("(%u: tensor<4x3xf32>, %i: tensor<4xi64>) -> tensor<2x3xf32>",
                   "%0 = tfm.scatter_add %u, %i {axis = 0 : i64} : (tensor<4x3xf32>, tensor<4xi64>) -> "
                   "tensor<2x3xf32>\nreturn %0 : tensor<2x3xf32>",
                   1, -3, "scatter_add: index -3 is not in .-2, 2.");
}

TEST(HostUndefinedDeathTest, ALabelIsAColumnOfTheLogits) {
  expectIndexError("(%x: tensor<1x2x5xf32>, %l: tensor<1x2xi64>, %m: tensor<1x2xf32>) -> (tensor<1x2xf32>, "
                   "tensor<1x2xf32>)",
                   "%0, %1 = tfm.logits_sum %x, %l, %m : (tensor<1x2x5xf32>, tensor<1x2xi64>, tensor<1x2xf32>) -> "
                   "(tensor<1x2xf32>, tensor<1x2xf32>)\nreturn %0, %1 : tensor<1x2xf32>, tensor<1x2xf32>",
                   1, 5, "logits_sum: index 5 is not in .0, 5.");
}

TEST(HostUndefined, IntegerDivisionsHaveAResultForAllOperands) {
  const char *names[] = {"divsi", "remsi", "floordivsi", "ceildivsi", "divui", "remui"};
  // The last three pairs are those that a processor traps on.
  const std::vector<int64_t> dividends = {7, -7, 7, -8, 6, 9, INT64_MIN, INT64_MIN, 5};
  const std::vector<int64_t> divisors = {2, 2, -2, -3, 3, 1, -1, 0, 0};
  const std::vector<std::vector<int64_t>> want = {
      {3, -3, -3, 2, 2, 9, INT64_MIN, 0, 0},   {1, -1, 1, -2, 0, 0, 0, 0, 0},
      {3, -4, -4, 2, 2, 9, INT64_MIN, 0, 0},   {4, -3, -3, 3, 2, 9, INT64_MIN, 0, 0},
      {3, INT64_MAX - 3, 0, 0, 2, 9, 0, 0, 0}, {1, 1, 7, -8, 0, 0, INT64_MIN, 0, 0}};
  std::string results, ops, values;
  for (int i = 0; i < 6; ++i) {
    results += std::string(i ? ", " : "") + "tensor<9xi64>";
    ops += "%" + std::to_string(i) + " = arith." + names[i] + " %a, %b : tensor<9xi64>\n";
    values += std::string(i ? ", " : "") + "%" + std::to_string(i);
  }
  CompiledBodies bodies("func.func private @body(%a: tensor<9xi64>, %b: tensor<9xi64>) -> (" + results +
                        ") attributes {tfm.body = \"forward\"} {\n" + ops + "return " + values + " : " + results +
                        "\n}");
  ASSERT_TRUE(bodies.ok()) << bodies.diagnostics();
  std::vector<Tensor> arguments = randomArguments(bodies.original("body"), 7, 0);
  arguments[0].ints = dividends;
  arguments[1].ints = divisors;
  std::vector<Tensor> got = bodies.run("body", arguments, {});
  for (int i = 0; i < 6; ++i)
    for (size_t j = 0; j < dividends.size(); ++j)
      EXPECT_EQ(got[i].ints[j], want[i][j]) << names[i] << " of " << dividends[j] << " and " << divisors[j];
}

} // namespace
