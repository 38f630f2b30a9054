//===- GpuAttention.h - attention on blocks of threads ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Tiles of queries meet tiles of keys (Dao et al., "FlashAttention", 2022); no buffer grows with the product of the
// lengths. A block of four warps has 64 rows, 16 a warp, and walks tiles of the others, of which the next is copied
// while one is computed. The sums of heads longer than 128 are too many for a warp's registers: two warps have the same
// rows, of scores each half of a tile's columns, of sums each half of a head's.
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CONVERSION_TFMTORT_GPUATTENTION_H
#define DROVER_LIB_CONVERSION_TFMTORT_GPUATTENTION_H

#include "../AttentionSizes.h"
#include "GpuTiles.h"
#include "LibraryCalls.h"

namespace drover::lower {

/// The longest heads that the kernels' registers have room for.
constexpr int64_t kLongestHead = 256;

/// On an attention that is to be computed by wgmma; marks those of a body for which there are such kernels.
constexpr llvm::StringLiteral kWarpgroupAttr = "drover.warpgroup";
void markWarpgroupAttention(mlir::Operation *body);

/// A [B, S, heads * size] operand.
struct AttentionRows {
  View view;
  mlir::Type element;
  int64_t headSize = 0;
  int64_t length() const { return view.shape[1]; }
  int64_t stride() const { return view.strides[1]; }
  /// Elements of which every row of a head starts at a multiple, at most 16 bytes.
  int64_t aligned() const;
};

/// What the kernels of an attention know when they are built.
struct AttentionProblem {
  template <typename Op> AttentionProblem(const Views &views, Op op);

  AttentionRows rows(mlir::Value value, int64_t headSize) const;
  int64_t group() const { return sizes.heads / sizes.kv_heads; }
  /// Rows of the tiles that are walked: with longer heads there are registers, and of f32 shared memory, for fewer.
  static int64_t tileRows(int64_t longestHead, mlir::Type element, bool warpgroup, bool backward) {
    if (longestHead > 128)
      return element.isF32() ? 16 : 32;
    return longestHead > 64 && (backward || !warpgroup) ? 32 : 64;
  }
  int64_t tileRows() const { return tileRows(longestHead(), query.element, warpgroup, backward); }
  int64_t longestHead() const { return std::max(query.headSize, value.headSize); }
  /// How many warps have the same rows.
  int64_t parts() const { return longestHead() > 128 ? 2 : 1; }
  int64_t padded(int64_t headSize) const { return llvm::alignTo(headSize, 16 * parts()); }
  /// From a query's number to its place among the keys, where there is no query_index.
  int64_t shift() const { return causal == tfm::CausalKind::BottomRight ? sizes.keys - sizes.queries : 0; }

  const Views &views;
  drover_attention sizes;
  double scale, softcap;
  int64_t window; // 0: none
  tfm::CausalKind causal;
  llvm::ArrayRef<float> slopes;
  mlir::Value mask, keyMask, documents, queryIndex, logSumExp;
  AttentionRows query, key, value;
  bool warpgroup, backward; // warpgroup: by wgmma
  /// Which documents a tile of keys, of queries has: the workspace's, null where there are no documents.
  mlir::Value keyDocuments, queryDocuments;
};

/// What both directions share.
class AttentionKernel {
protected:
  static constexpr int64_t kWarps = 4, kRows = kWarps * GpuTiles::kRows; // of a part

  AttentionKernel(BodyEmitter &emitter, const AttentionProblem &problem);

  int64_t tileRows() const { return p.tileRows(); }

  /// The block's tile of `length` rows, its batch, and one of `heads`: tiles with the most work come first.
  void placeBlock(int64_t length, int64_t heads, bool lastFirst);
  /// Launches the blocks that placeBlock tells apart.
  void launch(int64_t length, int64_t heads);

  SharedTile tileOf(const AttentionRows &rows, int64_t count, int64_t stages = 1) {
    return tiles.allocate(count, p.padded(rows.headSize), stages);
  }
  /// The thread's sums over the columns of a head.
  Fragment noSums(const AttentionRows &rows) { return tiles.zeros(p.padded(rows.headSize)); }
  void startCopy(const SharedTile &tile, const AttentionRows &rows, mlir::Value head, mlir::Value row);
  using Start = llvm::function_ref<void(mlir::Value step, mlir::Value stage)>;
  using Compute =
      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value step, mlir::Value stage, mlir::ValueRange)>;
  /// What is known of the documents of tiles.
  struct Meeting {
    mlir::Value ownTiles, otherTiles;
    int64_t ownLength, otherLength;
    llvm::function_ref<mlir::Value(mlir::Value step)> tileOf; // the number of a step's tile
  };
  /// Runs `compute` for those of `count` tiles that may have a document of the block's rows, and for all where there
  /// are no documents; `start` has begun to copy each while the one before was computed.
  llvm::SmallVector<mlir::Value> walk(mlir::Value count, mlir::ValueRange carried, const Meeting &meeting, Start start,
                                      Compute compute);
  /// Of the tile that starts at a row.
  mlir::Value numberOfTile(mlir::Value row) { return mlir::arith::DivUIOp::create(k.b, row, k.index(tileRows())); }
  /// The first key that queries from `firstQuery` on may see, a multiple of tileRows(), and the number of tiles.
  std::pair<mlir::Value, mlir::Value> keysOf(mlir::Value firstQuery);
  /// The same of queries for the block's keys.
  std::pair<mlir::Value, mlir::Value> queriesOf(mlir::Value firstKey);

  struct Query {
    mlir::Value number, position, document;
  };
  struct Key {
    mlir::Value number, document, takesPart, bias;
  };
  Query queryAt(mlir::Value number);
  Key keyAt(mlir::Value number, mlir::Value head);
  mlir::Value biasOf(mlir::Value key, mlir::Value head);
  /// The thread's rows of the block's tile, and its columns of a tile that starts at `first`.
  llvm::SmallVector<mlir::Value> ownRows();
  llvm::SmallVector<mlir::Value> ownColumns(mlir::Value first);

  /// What a fragment of <q, k> is of. A row is a query and a column a key, or the other way round.
  struct Pairs {
    llvm::ArrayRef<Query> queries;
    llvm::ArrayRef<Key> keys;
    mlir::Value firstQuery, firstKey, head;
    bool rowsAreKeys = false;
  };
  /// From <q, k> to scores times log2(e), -inf where a pair takes no part. `caps`: tanh of each, where there is a
  /// softcap.
  void score(Fragment &scores, const Pairs &pairs, Fragment *caps = nullptr);

  /// Stores the thread's part of a row of sums, times `factors` by row.
  void storeRows(const Fragment &sums, mlir::ArrayRef<mlir::Value> factors, const AttentionRows &rows,
                 mlir::Value head);
  mlir::Value statistic(mlir::Value head, mlir::Value query);
  /// Whether the thread is the one that stores what a row of queries has one of.
  mlir::Value leadsQuery(mlir::Value query);
  mlir::Value clamped(mlir::Value number, int64_t size, int64_t step);

  mlir::Value real(double value) { return k.constant(k.b.getF32Type(), value); }
  mlir::Value times(mlir::Value a, mlir::Value x) { return mlir::arith::MulFOp::create(k.b, a, x); }
  mlir::Value minus(mlir::Value a, mlir::Value x) { return mlir::arith::SubFOp::create(k.b, a, x); }
  mlir::Value isMinusInfinity(mlir::Value value);

  const AttentionProblem &p;
  GpuKernel k;
  GpuTiles tiles;
  mlir::Value batch, head, first; // of the block; first: of its rows

private:
  mlir::Value restricts(const Pairs &pairs);
  mlir::Value takesPart(const Query &query, const Key &key, mlir::Value head, bool checksEnd, mlir::Value &score);
  mlir::Value limit(mlir::Value value, int64_t high);
  std::pair<mlir::Value, mlir::Value> tilesOf(mlir::Value begin, mlir::Value end);
  std::pair<mlir::Value, mlir::Value> documentsOf(mlir::Value tiles, int64_t length, mlir::Value tile);
  mlir::Value nextMeeting(mlir::Value step, mlir::Value count, const Meeting &meeting, mlir::Value low,
                          mlir::Value high);
  /// The first step to walk from a step on, or `count`.
  std::function<mlir::Value(mlir::Value step)> stepsOf(mlir::Value count, const Meeting &meeting);
};

/// A view that is whole has its element (batch, i) at batch * size + i; a batch of one is for all.
mlir::Value idPosition(KernelBuilder &k, const View &view, mlir::Value batch, mlir::Value i);

/// Launches the kernels that find the documents of tiles, where there are documents; they are in the unit's workspace
/// from part `scratch` on.
void emitTileDocuments(BodyEmitter &emitter, AttentionProblem &problem, unsigned scratch);
llvm::SmallVector<int64_t> gpuAttentionScratchBytes(tfm::AttentionOp op);
llvm::SmallVector<int64_t> gpuAttentionScratchBytes(tfm::AttentionGradOp op);

/// Launches the kernels of an attention, of its gradients.
void emitGpuAttention(BodyEmitter &emitter, const Views &views, tfm::AttentionOp op);
void emitGpuAttentionGrad(BodyEmitter &emitter, const Views &views, tfm::AttentionGradOp op);

template <typename Op>
AttentionProblem::AttentionProblem(const Views &views, Op op)
    : views(views), sizes(attentionSizes(op)), scale(op.getScale().convertToDouble()),
      softcap(op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0.0), window(op.getWindow().value_or(0)),
      causal(op.getCausal()), slopes(op.getAlibiSlopes().value_or(llvm::ArrayRef<float>())), mask(op.getMask()),
      keyMask(op.getKeyMask()), documents(op.getDocuments()), queryIndex(op.getQueryIndex()),
      logSumExp(op.getLogSumExp()), query(rows(op.getQuery(), sizes.head_size)),
      key(rows(op.getKey(), sizes.head_size)), value(rows(op.getValue(), sizes.value_head_size)),
      warpgroup(op->hasAttr(kWarpgroupAttr)), backward(std::is_same_v<Op, tfm::AttentionGradOp>) {}

} // namespace drover::lower

#endif // DROVER_LIB_CONVERSION_TFMTORT_GPUATTENTION_H
