//===- HostCollectivesTest.cpp - bodies that communicate --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Each rank is a thread with its own arguments; a world completes operations as early or as late as is allowed, so that
// a wait in the wrong place, or a buffer that is reused too soon, changes a result.
//===----------------------------------------------------------------------===//
#include "../../Runtime/Comm/Ranks.h"
#include "HostHarness.h"
#include <gtest/gtest.h>
#include <map>

using namespace mlir;
using namespace drover;
using namespace drover::test;

namespace {

/// tp outermost, of which kv and replica are the factors, then cp.
struct Grid {
  int32_t tp = 1, cp = 1, kv = 1;
  int32_t ranks() const { return tp * cp; }
  Coordinates at(int32_t rank) const {
    Coordinates c = {};
    c[DROVER_AXIS_TP] = rank / cp;
    c[DROVER_AXIS_CP] = rank % cp;
    c[DROVER_AXIS_KV] = c[DROVER_AXIS_TP] / (tp / kv);
    c[DROVER_AXIS_REPLICA] = c[DROVER_AXIS_TP] % (tp / kv);
    return c;
  }
};

/// The groups of one rank: those that agree in all but the axes of the group.
class Groups {
public:
  Groups(rt::World &world, const Grid &grid) {
    Coordinates own = grid.at(world.rank());
    auto add = [&](int id, const char *name, std::vector<int> fixed) {
      std::vector<int> members;
      for (int32_t rank = 0; rank < grid.ranks(); ++rank) {
        Coordinates other = grid.at(rank);
        if (llvm::all_of(fixed, [&](int axis) { return other[axis] == own[axis]; }))
          members.push_back(rank);
      }
      if (members.size() < 2)
        return;
      groups.push_back(world.createCommunicator(id, name, members));
      communicators.set(id, groups.back().get());
    };
    add(DROVER_COMM_TP, "tp", {DROVER_AXIS_CP});
    add(DROVER_COMM_KV, "kv", {DROVER_AXIS_CP, DROVER_AXIS_REPLICA});
    add(DROVER_COMM_REPLICA, "replica", {DROVER_AXIS_CP, DROVER_AXIS_KV});
    add(DROVER_COMM_CP, "cp", {DROVER_AXIS_TP});
  }
  drover_communicators communicators;

private:
  std::vector<std::unique_ptr<rt::Communicator>> groups;
};

using Results = std::vector<std::vector<Tensor>>; // by rank

/// Runs @body on every rank under both extremes of timing, which must agree, and returns what it gives.
Results runRanks(const std::string &text, const Grid &grid, const std::vector<std::vector<Tensor>> &arguments) {
  CompiledBodies bodies(text);
  EXPECT_TRUE(bodies.ok()) << bodies.diagnostics();
  Results first(grid.ranks());
  if (!bodies.ok())
    return first;
  for (rt::Timing timing : {rt::Timing::Late, rt::Timing::Early}) {
    Results results(grid.ranks());
    std::vector<std::string> errors = rt::test::runThreads(grid.ranks(), timing, [&](rt::World &world) {
      Groups groups(world, grid);
      Run run;
      run.coordinates = grid.at(world.rank());
      run.communicators = &groups.communicators;
      results[world.rank()] = bodies.run("body", arguments[world.rank()], run);
      groups.communicators.check();
    });
    EXPECT_EQ(errors, std::vector<std::string>(grid.ranks()));
    if (timing == rt::Timing::Late) {
      first = results;
      continue;
    }
    for (int32_t rank = 0; rank < grid.ranks(); ++rank)
      for (auto [a, b] : llvm::zip(first[rank], results[rank]))
        EXPECT_EQ(encode(a), encode(b)) << "rank " << rank << " depends on timing";
  }
  return first;
}

/// Small integers: sums of them are exact in any order.
Tensor counting(SmallVector<int64_t> shape, int64_t start, ElementKind kind = ElementKind::F32) {
  Tensor tensor(kind, shape);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.setDouble(i, static_cast<double>((start + 7 * i) % 31 - 15));
  return tensor;
}

/// What the interpreter says of a body without collectives.
std::vector<Tensor> interpretWhole(const std::string &text, ArrayRef<Tensor> arguments) {
  CompiledBodies bodies(text);
  EXPECT_TRUE(bodies.ok()) << bodies.diagnostics();
  SmallVector<Tensor> results;
  std::string reason;
  EXPECT_TRUE(succeeded(interpret(bodies.original("body"), arguments, results, {}, &reason))) << reason;
  return std::vector<Tensor>(results.begin(), results.end());
}

/// Rows [begin, begin + count) of dimension `dim`.
Tensor slice(const Tensor &whole, int64_t dim, int64_t begin, int64_t count) {
  SmallVector<int64_t> shape(whole.shape);
  int64_t inner = 1, length = shape[dim];
  for (int64_t d = dim + 1; d < whole.rank(); ++d)
    inner *= shape[d];
  shape[dim] = count;
  Tensor part(whole.kind, shape);
  for (int64_t i = 0; i < part.size(); ++i) {
    int64_t row = i / inner % count, outer = i / inner / count;
    part.setDouble(i, whole.asDouble((outer * length + begin + row) * inner + i % inner));
  }
  return part;
}

void expectEqual(const Tensor &got, const Tensor &want, const std::string &what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (int64_t i = 0; i < want.size(); ++i)
    ASSERT_EQ(got.asDouble(i), want.asDouble(i)) << what << " element " << i;
}

std::string module(const std::string &grid, const std::string &shape, const std::string &function) {
  return "module attributes {tfm.grid = {" + grid + "}} {\nshard.grid @grid(shape = " + shape +
         ")\nfunc.func private @body" + function + "\n}\n";
}

/// Sequence parallelism: rows are gathered before the first product, and what is partial is scattered after the last.
TEST(HostCollectives, ColumnAndRowParallelProductsGiveTheWhole) {
  Tensor x = counting({2, 8, 6}, 1), up = counting({12, 6}, 2), down = counting({6, 12}, 3);
  std::vector<Tensor> whole = interpretWhole(
      R"(func.func private @body(%x: tensor<2x8x6xf32>, %u: tensor<12x6xf32>, %d: tensor<6x12xf32>) -> tensor<2x8x6xf32> attributes {tfm.body = "forward"} {
        %h = tfm.linear %x, %u : (tensor<2x8x6xf32>, tensor<12x6xf32>) -> tensor<2x8x12xf32>
        %y = tfm.linear %h, %d : (tensor<2x8x12xf32>, tensor<6x12xf32>) -> tensor<2x8x6xf32>
        %r = arith.addf %x, %y : tensor<2x8x6xf32>
        return %r : tensor<2x8x6xf32>
      })",
      {x, up, down});
  std::vector<std::vector<Tensor>> arguments;
  for (int64_t rank = 0; rank < 4; ++rank)
    arguments.push_back({slice(x, 1, rank * 2, 2), slice(up, 0, rank * 3, 3), slice(down, 1, rank * 3, 3)});
  Results results = runRanks(
      module(
          "tp = 4", "4x1x1",
          R"((%x: tensor<2x2x6xf32>, %u: tensor<3x6xf32>, %d: tensor<6x3xf32>) -> tensor<2x2x6xf32> attributes {tfm.body = "forward"} {
        %g = shard.all_gather %x on @grid grid_axes = [0] gather_axis = 1 : tensor<2x2x6xf32> -> tensor<2x8x6xf32>
        %h = tfm.linear %g, %u : (tensor<2x8x6xf32>, tensor<3x6xf32>) -> tensor<2x8x3xf32>
        %y = tfm.linear %h, %d : (tensor<2x8x3xf32>, tensor<6x3xf32>) -> tensor<2x8x6xf32>
        %s = shard.reduce_scatter %y on @grid grid_axes = [0] scatter_axis = 1 {tfm.reduction = 0 : i64} : tensor<2x8x6xf32> -> tensor<2x2x6xf32>
        %r = arith.addf %x, %s : tensor<2x2x6xf32>
        return %r : tensor<2x2x6xf32>
      })"),
      {4, 1, 1}, arguments);
  for (int64_t rank = 0; rank < 4; ++rank)
    expectEqual(results[rank][0], slice(whole[0], 1, rank * 2, 2), "rank " + std::to_string(rank));
}

/// Sums and maxima over the whole of tp and over its factors.
TEST(HostCollectives, GroupsOfTheFactorsOfTp) {
  std::string function =
      R"((%x: tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<6x5xf32>) attributes {tfm.body = "forward"} {
        %0 = arith.addf %x, %x : tensor<3x5xf32>
        %a = shard.all_reduce %0 on @grid grid_axes = [0, 1] {tfm.reduction = 0 : i64} : tensor<3x5xf32> -> tensor<3x5xf32>
        %1 = arith.mulf %x, %x : tensor<3x5xf32>
        %b = shard.all_reduce %1 on @grid grid_axes = [0] {tfm.reduction = 1 : i64} : tensor<3x5xf32> -> tensor<3x5xf32>
        %c = shard.all_reduce %x on @grid grid_axes = [1] reduction = max {tfm.reduction = 2 : i64} : tensor<3x5xf32> -> tensor<3x5xf32>
        %d = shard.all_reduce %x on @grid grid_axes = [2] {tfm.reduction = 3 : i64} : tensor<3x5xf32> -> tensor<3x5xf32>
        %e = shard.all_gather %x on @grid grid_axes = [1] gather_axis = 0 : tensor<3x5xf32> -> tensor<6x5xf32>
        %f = arith.addf %a, %b : tensor<3x5xf32>
        return %a, %f, %c, %d, %e : tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<6x5xf32>
      })";
  Grid grid = {4, 2, 2};
  std::vector<std::vector<Tensor>> arguments;
  for (int64_t rank = 0; rank < 8; ++rank)
    arguments.push_back({counting({3, 5}, rank * 5)});
  Results results = runRanks(module("tp = 4, kv = 2, replica = 2, cp = 2", "2x2x2x1", function), grid, arguments);
  for (int32_t rank = 0; rank < 8; ++rank) {
    Coordinates own = grid.at(rank);
    Tensor sum(ElementKind::F32, {3, 5}), squares = sum, maximum = sum, overCp = sum,
                                          gathered(ElementKind::F32, {6, 5});
    std::fill(maximum.floats.begin(), maximum.floats.end(), -100.0);
    for (int32_t other = 0; other < 8; ++other) {
      Coordinates place = grid.at(other);
      bool cp = place[DROVER_AXIS_CP] == own[DROVER_AXIS_CP], kv = place[DROVER_AXIS_KV] == own[DROVER_AXIS_KV];
      bool replica = place[DROVER_AXIS_REPLICA] == own[DROVER_AXIS_REPLICA];
      for (int64_t i = 0; i < 15; ++i) {
        double value = arguments[other][0].floats[i];
        sum.floats[i] += cp ? 2 * value : 0.0;
        squares.floats[i] += cp && replica ? value * value : 0.0;
        maximum.floats[i] = cp && kv ? std::max(maximum.floats[i], value) : maximum.floats[i];
        overCp.floats[i] += kv && replica ? value : 0.0;
        if (cp && kv)
          gathered.floats[place[DROVER_AXIS_REPLICA] * 15 + i] = value;
      }
    }
    Tensor both = sum;
    for (int64_t i = 0; i < 15; ++i)
      both.floats[i] += squares.floats[i];
    std::string name = "rank " + std::to_string(rank);
    expectEqual(results[rank][0], sum, name + " tp");
    expectEqual(results[rank][1], both, name + " tp and kv");
    expectEqual(results[rank][2], maximum, name + " replica");
    expectEqual(results[rank][3], overCp, name + " cp");
    expectEqual(results[rank][4], gathered, name + " gather over replica");
  }
}

/// CP's chunks are reordered by a gather, a scatter and a slice alike.
TEST(HostCollectives, TwoChunksRoundTrip) {
  std::string function =
      R"((%x: tensor<2x4x3xbf16>) -> (tensor<2x8x3xbf16>, tensor<2x4x3xbf16>, tensor<2x4x3xf32>) attributes {tfm.body = "forward"} {
        %g = shard.all_gather %x on @grid grid_axes = [1] gather_axis = 1 {tfm.two_chunk} : tensor<2x4x3xbf16> -> tensor<2x8x3xbf16>
        %s = shard.all_slice %g on @grid grid_axes = [1] slice_axis = 1 {tfm.two_chunk} : tensor<2x8x3xbf16> -> tensor<2x4x3xbf16>
        %w = arith.extf %g : tensor<2x8x3xbf16> to tensor<2x8x3xf32>
        %r = shard.reduce_scatter %w on @grid grid_axes = [1] scatter_axis = 1 {tfm.reduction = 0 : i64, tfm.two_chunk} : tensor<2x8x3xf32> -> tensor<2x4x3xf32>
        return %g, %s, %r : tensor<2x8x3xbf16>, tensor<2x4x3xbf16>, tensor<2x4x3xf32>
      })";
  Tensor whole = counting({2, 8, 3}, 4, ElementKind::BF16);
  std::vector<std::vector<Tensor>> arguments;
  auto part = [&](int64_t rank) {
    Tensor first = slice(whole, 1, rank * 2, 2), second = slice(whole, 1, (3 - rank) * 2, 2),
           both = slice(whole, 1, 0, 4);
    for (int64_t i = 0; i < both.size(); ++i) {
      int64_t batch = i / 12, row = i / 3 % 4;
      both.floats[i] = (row < 2 ? first : second).floats[(batch * 2 + row % 2) * 3 + i % 3];
    }
    return both;
  };
  for (int64_t rank = 0; rank < 2; ++rank)
    arguments.push_back({part(rank)});
  Results results = runRanks(module("cp = 2", "1x2x1", function), {1, 2, 1}, arguments);
  for (int64_t rank = 0; rank < 2; ++rank) {
    expectEqual(results[rank][0], whole, "gathered");
    expectEqual(results[rank][1], part(rank), "sliced");
    Tensor twice = part(rank);
    for (double &value : twice.floats)
      value *= 2;
    expectEqual(results[rank][2], twice, "scattered");
  }
}

/// More collectives at once than there are slots, all read at the end.
TEST(HostCollectives, ManyInFlight) {
  std::string ops, sum = "%x";
  for (int i = 0; i < 20; ++i) {
    std::string n = std::to_string(i);
    ops += "%c" + n + " = arith.constant dense<" + n + ".0> : tensor<40xf32>\n%p" + n + " = arith.mulf %x, %c" + n +
           " : tensor<40xf32>\n%r" + n + " = shard.all_reduce %p" + n +
           " on @grid grid_axes = [0] {tfm.reduction = " + n + " : i64} : tensor<40xf32> -> tensor<40xf32>\n";
  }
  for (int i = 0; i < 20; ++i) {
    std::string n = std::to_string(i);
    ops += "%s" + n + " = arith.addf " + sum + ", %r" + n + " : tensor<40xf32>\n";
    sum = "%s" + n;
  }
  std::vector<std::vector<Tensor>> arguments;
  for (int64_t rank = 0; rank < 3; ++rank)
    arguments.push_back({counting({40}, rank)});
  Results results = runRanks(module("tp = 3", "3x1x1",
                                    "(%x: tensor<40xf32>) -> tensor<40xf32> attributes {tfm.body = \"forward\"} {\n" +
                                        ops + "return " + sum + " : tensor<40xf32>\n}"),
                             {3, 1, 1}, arguments);
  for (int64_t rank = 0; rank < 3; ++rank)
    for (int64_t i = 0; i < 40; ++i) {
      double total = 0;
      for (int64_t other = 0; other < 3; ++other)
        total += arguments[other][0].floats[i];
      ASSERT_EQ(results[rank][0].floats[i], arguments[rank][0].floats[i] + 190 * total);
    }
}

/// A vocabulary of 11 over two ranks: maxima and sums are reduced between the ops of the loss.
TEST(HostCollectives, LossOverTheVocabulary) {
  Tensor logits = counting({2, 5, 11}, 3), labels(ElementKind::I64, {2, 5}), seed(ElementKind::F32, {});
  labels.ints = {0, 10, -1, 5, 6, 2, -100, 9, 7, 3};
  seed.floats = {0.125};
  std::vector<Tensor> whole = interpretWhole(
      R"(func.func private @body(%l: tensor<2x5x11xf32>, %y: tensor<2x5xi64>, %seed: tensor<f32>) -> (tensor<f64>, tensor<2x5x11xf32>) attributes {tfm.body = "forward"} {
        %m = tfm.logits_max %l : (tensor<2x5x11xf32>) -> tensor<2x5xf32>
        %s, %t = tfm.logits_sum %l, %y, %m : (tensor<2x5x11xf32>, tensor<2x5xi64>, tensor<2x5xf32>) -> (tensor<2x5xf32>, tensor<2x5xf32>)
        %loss = tfm.cross_entropy %y, %m, %s, %t : (tensor<2x5xi64>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<f64>
        %d = tfm.cross_entropy_grad %l, %y, %m, %s, %seed : (tensor<2x5x11xf32>, tensor<2x5xi64>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<f32>) -> tensor<2x5x11xf32>
        return %loss, %d : tensor<f64>, tensor<2x5x11xf32>
      })",
      {logits, labels, seed});
  Tensor padded(ElementKind::F32, {2, 5, 12});
  for (int64_t i = 0; i < padded.size(); ++i)
    padded.floats[i] = i % 12 < 11 ? logits.floats[i / 12 * 11 + i % 12] : 1000.0;
  std::vector<std::vector<Tensor>> arguments;
  for (int64_t rank = 0; rank < 2; ++rank)
    arguments.push_back({slice(padded, 2, rank * 6, 6), labels, seed});
  Results results = runRanks(
      module(
          "tp = 2", "2x1x1",
          R"((%l: tensor<2x5x6xf32>, %y: tensor<2x5xi64>, %seed: tensor<f32>) -> (tensor<f64>, tensor<2x5x6xf32>) attributes {tfm.body = "forward"} {
        %o = tfm.shard_offset {axes = ["tp"], size = 6 : i64} : tensor<i64>
        %pm = tfm.logits_max %l offset %o {vocabulary = 11 : i64} : (tensor<2x5x6xf32>, tensor<i64>) -> tensor<2x5xf32>
        %m = shard.all_reduce %pm on @grid grid_axes = [0] reduction = max {tfm.reduction = 0 : i64} : tensor<2x5xf32> -> tensor<2x5xf32>
        %ps, %pt = tfm.logits_sum %l, %y, %m offset %o {vocabulary = 11 : i64} : (tensor<2x5x6xf32>, tensor<2x5xi64>, tensor<2x5xf32>, tensor<i64>) -> (tensor<2x5xf32>, tensor<2x5xf32>)
        %s = shard.all_reduce %ps on @grid grid_axes = [0] {tfm.reduction = 1 : i64} : tensor<2x5xf32> -> tensor<2x5xf32>
        %t = shard.all_reduce %pt on @grid grid_axes = [0] {tfm.reduction = 2 : i64} : tensor<2x5xf32> -> tensor<2x5xf32>
        %loss = tfm.cross_entropy %y, %m, %s, %t : (tensor<2x5xi64>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<f64>
        %d = tfm.cross_entropy_grad %l, %y, %m, %s, %seed offset %o {vocabulary = 11 : i64} : (tensor<2x5x6xf32>, tensor<2x5xi64>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<f32>, tensor<i64>) -> tensor<2x5x6xf32>
        return %loss, %d : tensor<f64>, tensor<2x5x6xf32>
      })"),
      {2, 1, 1}, arguments);
  Tensor paddedGrad(ElementKind::F32, {2, 5, 12});
  for (int64_t i = 0; i < paddedGrad.size(); ++i)
    paddedGrad.floats[i] = i % 12 < 11 ? whole[1].floats[i / 12 * 11 + i % 12] : 0.0;
  for (int64_t rank = 0; rank < 2; ++rank) {
    test::expectClose(results[rank][0], whole[0], kF32, 0);
    test::expectClose(results[rank][1], slice(paddedGrad, 2, rank * 6, 6), kF32, 1);
  }
}

} // namespace
