//===- CudaDocumentsTest.cpp - tiles of other documents ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// How many tiles generated attention walks where sequences are packed: a barrier each, and no other barrier is in these
// kernels.
//===----------------------------------------------------------------------===//
#include "CudaBackend.h"
#include "HostHarness.h"
#include "emu.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace drover;
using namespace drover::test;

namespace {

constexpr int64_t kHeads = 2; // of queries; one of keys

struct Packing {
  std::vector<int64_t> documents;    // of the keys
  std::vector<int64_t> queries = {}; // their places among the keys; empty: queries and keys are the same rows
  int64_t headSize = 16;
};

std::string textOf(const Packing &packing) {
  int64_t keys = packing.documents.size(), queries = packing.queries.empty() ? keys : packing.queries.size();
  bool chosen = !packing.queries.empty();
  std::string query = llvm::formatv("tensor<1x{0}x{1}xbf16>", queries, kHeads * packing.headSize).str();
  std::string key = llvm::formatv("tensor<1x{0}x{1}xbf16>", keys, packing.headSize).str();
  std::string keyGrad = llvm::formatv("tensor<1x{0}x{1}xf32>", keys, packing.headSize).str();
  std::string sums = llvm::formatv("tensor<1x{0}x{1}xf32>", kHeads, queries).str();
  std::string ids = llvm::formatv("tensor<1x{0}xi32>", keys).str(),
              places = llvm::formatv("tensor<{0}xi64>", queries).str();
  std::string masks = chosen ? "documents %m query_index %i causal top_left" : "documents %m causal top_left";
  std::string types = chosen ? ", " + ids + ", " + places : ", " + ids;
  return llvm::formatv(R"(
func.func private @body(%q: {0}, %k: {1}, %v: {1}, %do: {0}, %m: {4}{5}) -> ({0}, {0}, {2}, {2}) attributes {{tfm.body = "forward"} {{
  %o, %l = tfm.attention %q, %k, %v {6} {{num_heads = {8} : i64, num_kv_heads = 1 : i64, scale = 0.25 : f64} : ({0}, {1}, {1}{7}) -> ({0}, {3})
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %l, %do {6} {{num_heads = {8} : i64, num_kv_heads = 1 : i64, scale = 0.25 : f64} : ({0}, {1}, {1}, {0}, {3}, {0}{7}) -> ({0}, {2}, {2})
  return %o, %dq, %dk, %dv : {0}, {0}, {2}, {2}
})",
                       query, key, keyGrad, sums, ids, chosen ? ", %i: " + places : "", masks, types, kHeads)
      .str();
}

/// Runs both directions, holds them against the interpreter, and counts the tiles that all blocks walked.
int64_t tilesWalked(const Packing &packing) {
  CompiledBodies bodies(textOf(packing));
  EXPECT_TRUE(bodies.ok()) << bodies.diagnostics();
  if (!bodies.ok())
    return -1;
  func::FuncOp body = bodies.original("body");
  std::vector<Tensor> arguments = randomArguments(body, 7, 0);
  arguments[4].ints = packing.documents;
  if (!packing.queries.empty())
    arguments[5].ints = packing.queries;
  drover_emu_counters before, after;
  drover_emu_read_counters(&before);
  std::vector<Tensor> got = bodies.run("body", arguments, {});
  drover_emu_read_counters(&after);
  SmallVector<Tensor> want;
  std::string reason;
  EXPECT_TRUE(succeeded(interpret(body, arguments, want, interpreterAt({}), &reason))) << reason;
  for (size_t i = 0; i < want.size(); ++i)
    expectClose(got[i], want[i], kBF16, i);
  return static_cast<int64_t>(after.barriers - before.barriers);
}

/// Documents of equal lengths one after the other, of which the last may be cut off.
std::vector<int64_t> documentsOf(int64_t rows, int64_t length) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < rows; ++i)
    ids.push_back(i / length);
  return ids;
}

// The forward, the kernel of dQ and that of dK and dV walk the same pairs of tiles, each for both heads.
constexpr int64_t kKernels = 3;

TEST(CudaDocuments, OneDocumentIsTheCausalHalf) {
  EXPECT_EQ(tilesWalked({documentsOf(256, 256)}), kKernels * kHeads * 10);
}

TEST(CudaDocuments, DocumentsOfATileMeetThemselvesOnly) {
  EXPECT_EQ(tilesWalked({documentsOf(256, 64)}), kKernels * kHeads * 4);
}

// Rows 64 to 127 are of two documents: they meet the tile before them, and the tile behind them meets them.
TEST(CudaDocuments, DocumentsThatShareATileMeet) {
  EXPECT_EQ(tilesWalked({documentsOf(256, 96)}), kKernels * kHeads * 6);
}

// The last tile has 36 rows, of the fourth and the fifth document.
TEST(CudaDocuments, APartOfATileHasItsOwnDocuments) {
  EXPECT_EQ(tilesWalked({documentsOf(228, 52)}), kKernels * kHeads * 7);
}

TEST(CudaDocuments, DocumentsInTurnAreComparedPairByPair) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 256; ++i)
    ids.push_back(i % 2);
  EXPECT_EQ(tilesWalked({ids}), kKernels * kHeads * 10);
}

// More tiles than a warp looks at in one go, and none of them near.
TEST(CudaDocuments, DistantTilesAreFound) {
  std::vector<int64_t> ids = documentsOf(34 * 64, 64);
  std::fill(ids.end() - 64, ids.end(), 0); // the last tile is of the first document again
  EXPECT_EQ(tilesWalked({ids}), kKernels * kHeads * 35);
}

// Tiles of 32 rows walk by blocks of 64.
TEST(CudaDocuments, LongHeadsWalkSmallerTiles) {
  EXPECT_EQ(tilesWalked({documentsOf(128, 64), {}, 128}), kKernels * kHeads * 4);
}

// A rank's two chunks of a sequence: no bound of positions holds, documents alone say which tiles meet.
TEST(CudaDocuments, ChosenQueriesMeetTheirDocuments) {
  std::vector<int64_t> queries;
  for (int64_t i = 0; i < 64; ++i)
    queries.push_back(i);
  for (int64_t i = 192; i < 256; ++i)
    queries.push_back(i);
  EXPECT_EQ(tilesWalked({documentsOf(256, 64), queries}), kKernels * kHeads * 2);
}

} // namespace
