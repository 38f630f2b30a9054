//===- GpuTiles.cpp - products of tiles by warps ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GpuTiles.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

static constexpr int64_t kAccessBytes = 16;

GpuTiles::GpuTiles(GpuKernel &k, Type element, int64_t warps)
    : k(k), element(element), threads(warps * GpuKernel::kWarp) {
  Value warpSize = k.index(GpuKernel::kWarp), quad = k.index(4);
  lane = arith::RemUIOp::create(k.b, k.thread(), warpSize);
  firstRow = k.scale(arith::DivUIOp::create(k.b, k.thread(), warpSize), kRows);
  group = arith::DivUIOp::create(k.b, lane, quad);
  member = arith::RemUIOp::create(k.b, lane, quad);
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

SharedTile GpuTiles::allocate(int64_t rows, int64_t columns, int64_t stages) {
  SharedTile tile;
  tile.rows = rows;
  tile.columns = columns;
  tile.rowBytes = columns * bytesOf(element) + kAccessBytes;
  tile.start = k.index(k.allocateShared(tile.bytes() * stages));
  return tile;
}

SharedTile GpuTiles::stage(const SharedTile &first, Value number) {
  SharedTile tile = first;
  tile.start = k.add(first.start, k.scale(number, first.bytes()));
  return tile;
}

Value GpuTiles::address(const SharedTile &tile, Value row, Value column) {
  Value at = k.add(k.scale(row, tile.rowBytes), k.scale(column, bytesOf(element)));
  return k.sharedAddress(k.add(tile.start, at));
}

void GpuTiles::startCopy(const SharedTile &tile, const Source &source, Value row, Value end,
                         function_ref<Value(Value)> position) {
  int64_t width = std::min(source.aligned, kAccessBytes / bytesOf(element)), bytes = width * bytesOf(element);
  bool isAsync = bytes >= 4; // cp.async copies 4, 8 or 16 bytes
  copiesAsync |= isAsync;
  int64_t steps = tile.columns / width;
  k.loop(k.thread(), k.index(tile.rows * steps), threads, {}, [&](Value i, ValueRange) {
    Value tileRow = arith::DivUIOp::create(k.b, i, k.index(steps));
    Value column = k.scale(arith::RemUIOp::create(k.b, i, k.index(steps)), width);
    Value from = k.add(row, tileRow), isThere = k.lessThan(from, end);
    if (source.columns < tile.columns)
      isThere = arith::AndIOp::create(k.b, isThere, k.lessThan(column, k.index(source.columns)));
    Value to = address(tile, tileRow, column), at = k.add(position(from), column);
    if (isAsync) {
      // Nothing is read where no byte is copied, but the address has to be one of the buffer.
      Value safe = arith::SelectOp::create(k.b, isThere, at, k.index(0));
      auto size = [&](int64_t n) { return arith::ConstantOp::create(k.b, k.b.getI32IntegerAttr(n)); };
      Value copied = arith::SelectOp::create(k.b, isThere, size(bytes), size(0));
      auto cache = bytes == kAccessBytes ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
      NVVM::CpAsyncOp::create(k.b, to, k.globalAddress(source.buffer, safe, element), static_cast<uint32_t>(bytes),
                              cache, copied);
      return SmallVector<Value>();
    }
    auto type = VectorType::get({width}, element);
    auto branch = scf::IfOp::create(k.b, TypeRange(type), isThere, /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(branch.thenBlock());
      Value from = k.globalAddress(source.buffer, at, element);
      scf::YieldOp::create(k.b, ValueRange(LLVM::LoadOp::create(k.b, type, from, bytes)));
      k.b.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(k.b, ValueRange(k.constant(type, 0.0)));
    }
    LLVM::StoreOp::create(k.b, branch.getResult(0), to, bytes);
    return SmallVector<Value>();
  });
}

void GpuTiles::commitCopies() {
  if (copiesAsync)
    NVVM::CpAsyncCommitGroupOp::create(k.b);
}

void GpuTiles::finishCopies() {
  if (copiesAsync)
    NVVM::CpAsyncWaitGroupOp::create(k.b, 0);
}

//===----------------------------------------------------------------------===//
// Tensor cores
//===----------------------------------------------------------------------===//

/// Four 8x8 matrices: thread i gives the address of row i % 8 of number i / 8.
SmallVector<Value> GpuTiles::loadMatrices(const SharedTile &tile, Value row, Value column, bool transposed) {
  Type i32 = k.b.getI32Type();
  auto type = LLVM::LLVMStructType::getLiteral(k.b.getContext(), SmallVector<Type>(4, i32));
  auto shape = NVVM::LdStMatrixShapeAttr::get(k.b.getContext(), 8, 8);
  Value all = NVVM::LdMatrixOp::create(k.b, type, address(tile, row, column), 4,
                                       transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row, shape,
                                       NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> registers;
  for (int64_t i = 0; i < 4; ++i)
    registers.push_back(LLVM::ExtractValueOp::create(k.b, all, ArrayRef<int64_t>{i}));
  return registers;
}

/// Two values of f32 as a register of bf16, the first in its lower half.
Value GpuTiles::pack(Value low, Value high) {
  auto wide = VectorType::get({2}, k.b.getF32Type());
  Value both = vector::FromElementsOp::create(k.b, wide, ValueRange{low, high});
  Value narrow = arith::TruncFOp::create(k.b, VectorType::get({2}, element), both);
  return LLVM::BitcastOp::create(k.b, k.b.getI32Type(), narrow);
}

/// Adds a product of 16x16 and 16x8 to the sums of columns 8 * tile and on.
void GpuTiles::multiply(Fragment &sums, size_t tile, ValueRange a, Value low, Value high) {
  auto type = LLVM::LLVMStructType::getLiteral(k.b.getContext(), SmallVector<Type>(4, k.b.getF32Type()));
  MutableArrayRef<Value> c = MutableArrayRef(sums).slice(4 * tile, 4);
  Value product = NVVM::MmaOp::create(
      k.b, type, a, ValueRange{low, high}, c, ArrayRef<int64_t>{16, 8, 16}, std::nullopt, std::nullopt,
      std::array{NVVM::MMATypes::bf16, NVVM::MMATypes::bf16}, std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (auto [i, sum] : llvm::enumerate(c))
    sum = LLVM::ExtractValueOp::create(k.b, product, ArrayRef<int64_t>{static_cast<int64_t>(i)});
}

//===----------------------------------------------------------------------===//
// Without tensor cores
//===----------------------------------------------------------------------===//

SmallVector<Value> GpuTiles::loadFloats(const SharedTile &tile, Value row, Value column, int64_t width) {
  auto type = VectorType::get({width}, element);
  Value all = LLVM::LoadOp::create(k.b, type, address(tile, row, column), width * bytesOf(element));
  SmallVector<Value> values;
  for (int64_t i = 0; i < width; ++i)
    values.push_back(vector::ExtractOp::create(k.b, all, i));
  return values;
}

Value GpuTiles::fma(Value a, Value x, Value sum) { return math::FmaOp::create(k.b, a, x, sum); }

/// Where each warp lays a fragment out as rows, for all products of the kernel.
SharedTile &GpuTiles::fragmentRows(int64_t columns) {
  if (!floats.start)
    floats = allocate(threads / GpuKernel::kWarp * kRows, columns);
  assert(floats.columns == columns && "expects fragments of one width");
  return floats;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Fragment GpuTiles::zeros(GpuKernel &k, int64_t columns) {
  return Fragment(columns / 8 * 4, k.constant(k.b.getF32Type(), 0.0));
}

Fragment GpuTiles::multiplyTransposed(const SharedTile &a, const SharedTile &x) {
  Fragment sums = zeros(k, x.rows);
  Value eight = k.index(8);
  if (isNarrow()) {
    Value lower = arith::RemUIOp::create(k.b, lane, k.index(16)),
          upper = arith::DivUIOp::create(k.b, lane, k.index(16));
    Value rowOfA = k.add(firstRow, lower), columnOfA = k.scale(upper, 8);
    Value rowOfX = k.add(arith::RemUIOp::create(k.b, lane, eight), columnOfA);
    Value columnOfX = k.scale(arith::DivUIOp::create(k.b, lower, eight), 8);
    for (int64_t depth = 0; depth < a.columns; depth += 16) {
      SmallVector<Value> left = loadMatrices(a, rowOfA, k.add(columnOfA, k.index(depth)), false);
      for (int64_t row = 0; row < x.rows; row += 16) {
        Value at = k.add(rowOfX, k.index(row));
        SmallVector<Value> right = loadMatrices(x, at, k.add(columnOfX, k.index(depth)), false);
        multiply(sums, row / 8, left, right[0], right[1]);
        multiply(sums, row / 8 + 1, left, right[2], right[3]);
      }
    }
    return sums;
  }
  constexpr int64_t width = 4;
  Value row = k.add(firstRow, group), rowOfX = k.scale(member, 2);
  return k.loop(k.index(0), k.index(a.columns), width, sums, [&](Value depth, ValueRange carried) {
    Fragment next = llvm::to_vector(carried);
    SmallVector<Value> left[] = {loadFloats(a, row, depth, width), loadFloats(a, k.add(row, eight), depth, width)};
    for (int64_t i = 0; i < x.rows; i += 8)
      for (int64_t column : {0, 1}) {
        SmallVector<Value> right = loadFloats(x, k.add(rowOfX, k.index(i + column)), depth, width);
        for (int64_t half : {0, 1}) {
          Value &sum = next[i / 2 + 2 * half + column];
          for (int64_t j = 0; j < width; ++j)
            sum = fma(left[half][j], right[j], sum);
        }
      }
    return next;
  });
}

void GpuTiles::addProduct(Fragment &sums, const Fragment &p, const SharedTile &x) {
  if (isNarrow()) {
    Value rowOfX = arith::RemUIOp::create(k.b, lane, k.index(16));
    Value columnOfX = k.scale(arith::DivUIOp::create(k.b, lane, k.index(16)), 8);
    for (int64_t depth = 0; depth < x.rows; depth += 16) {
      const Value *low = &p[depth / 2], *high = low + 4; // of two times 8 columns
      Value left[] = {pack(low[0], low[1]), pack(low[2], low[3]), pack(high[0], high[1]), pack(high[2], high[3])};
      Value row = k.add(rowOfX, k.index(depth));
      for (int64_t column = 0; column < x.columns; column += 16) {
        SmallVector<Value> right = loadMatrices(x, row, k.add(columnOfX, k.index(column)), true);
        multiply(sums, column / 8, left, right[0], right[1]);
        multiply(sums, column / 8 + 1, left, right[2], right[3]);
      }
    }
    return;
  }
  constexpr int64_t width = 4;
  SharedTile &rows = fragmentRows(x.rows);
  Value row = k.add(firstRow, group), other = k.add(row, k.index(8)), pair = k.scale(member, 2);
  Value ownRows[] = {row, other};
  k.warpBarrier(); // all have read what was there before
  for (int64_t i = 0; i < x.rows; i += 8)
    for (auto [half, to] : llvm::enumerate(ownRows)) {
      Value both =
          vector::FromElementsOp::create(k.b, VectorType::get({2}, element), ValueRange(p).slice(i / 2 + 2 * half, 2));
      LLVM::StoreOp::create(k.b, both, address(rows, to, k.add(pair, k.index(i))), 2 * bytesOf(element));
    }
  k.warpBarrier();
  sums = k.loop(k.index(0), k.index(x.rows), width, sums, [&](Value depth, ValueRange carried) {
    Fragment next = llvm::to_vector(carried);
    SmallVector<Value> left[] = {loadFloats(rows, row, depth, width), loadFloats(rows, other, depth, width)};
    for (int64_t j = 0; j < width; ++j)
      for (int64_t i = 0; i < x.columns; i += 8) {
        SmallVector<Value> right = loadFloats(x, k.add(depth, k.index(j)), k.add(pair, k.index(i)), 2);
        for (int64_t half : {0, 1})
          for (int64_t column : {0, 1}) {
            Value &sum = next[i / 2 + 2 * half + column];
            sum = fma(left[half][j], right[column], sum);
          }
      }
    return next;
  });
}

Value GpuTiles::reduceRow(Value value, RowReduction kind) { return k.reduce(value, kind, 4); }
