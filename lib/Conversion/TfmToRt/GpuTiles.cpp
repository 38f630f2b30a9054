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
// The 128-byte swizzle of wgmma (PTX ISA, "Shared Memory Matrix Layout"): the 16-byte pieces of a row of 128 bytes
// stand at their number xor the row's, in patterns of 8 rows.
static constexpr int64_t kSwizzledColumns = 64, kSwizzledBytes = 128, kPatternBytes = 8 * kSwizzledBytes;

GpuTiles::GpuTiles(GpuKernel &k, Type element, int64_t warps, int64_t parts, bool warpgroup)
    : k(k), element(element), warps(warps), parts(parts), warpgroup(warpgroup) {
  assert(!warpgroup || (element.isBF16() && warps == 4 && parts == 1));
  Value warpSize = k.index(GpuKernel::kWarp), quad = k.index(4);
  Value warp = arith::DivUIOp::create(k.b, k.thread(), warpSize);
  lane = arith::RemUIOp::create(k.b, k.thread(), warpSize);
  part = parts == 1 ? k.index(0) : arith::DivUIOp::create(k.b, warp, k.index(warps)).getResult();
  firstRow = k.scale(parts == 1 ? warp : arith::RemUIOp::create(k.b, warp, k.index(warps)).getResult(), kRows);
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
  tile.swizzled = warpgroup;
  tile.rowBytes = warpgroup ? llvm::alignTo(columns, kSwizzledColumns) * bytesOf(element)
                            : columns * bytesOf(element) + kAccessBytes;
  tile.start = k.index(k.allocateShared(tile.bytes() * stages, warpgroup ? kPatternBytes : kAccessBytes));
  return tile;
}

SharedTile GpuTiles::stage(const SharedTile &first, Value number) {
  SharedTile tile = first;
  tile.start = k.add(first.start, k.scale(number, first.bytes()));
  return tile;
}

Value GpuTiles::address(const SharedTile &tile, Value row, Value column) {
  if (tile.swizzled) {
    Value width = k.index(kSwizzledColumns), eight = k.index(8);
    Value inside = k.scale(arith::RemUIOp::create(k.b, column, width), bytesOf(element));
    Value swizzle = k.scale(arith::RemUIOp::create(k.b, row, eight), kAccessBytes);
    Value at = k.add(k.scale(row, kSwizzledBytes), arith::XOrIOp::create(k.b, inside, swizzle));
    Value columns = arith::DivUIOp::create(k.b, column, width);
    return k.sharedAddress(k.add(tile.start, k.add(at, k.scale(columns, tile.rows * kSwizzledBytes))));
  }
  Value at = k.add(k.scale(row, tile.rowBytes), k.scale(column, bytesOf(element)));
  return k.sharedAddress(k.add(tile.start, at));
}

void GpuTiles::startCopy(const SharedTile &tile, const Source &source, Value row, Value end,
                         function_ref<Value(Value)> position) {
  int64_t width = std::min(source.aligned, kAccessBytes / bytesOf(element)), bytes = width * bytesOf(element);
  bool isAsync = bytes >= 4; // cp.async copies 4, 8 or 16 bytes
  copiesAsync |= isAsync;
  int64_t steps = tile.columns / width, threads = warps * parts * GpuKernel::kWarp;
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

/// wgmma reads through another proxy than the one of loads, stores and cp.async.
static void fenceProxy(GpuKernel &k) {
  MLIRContext *context = k.b.getContext();
  NVVM::FenceProxyOp::create(k.b, NVVM::ProxyKindAttr::get(context, NVVM::ProxyKind::async_shared),
                             NVVM::SharedSpaceAttr::get(context, NVVM::SharedSpace::shared_cta));
}

void GpuTiles::finishCopies() {
  if (copiesAsync)
    NVVM::CpAsyncWaitGroupOp::create(k.b, 0);
  if (warpgroup)
    fenceProxy(k);
}

/// The part's share of a tile's rows, of its columns.
SharedTile GpuTiles::rowsOfPart(SharedTile tile) {
  tile.rows /= parts;
  if (parts > 1)
    tile.start = k.add(tile.start, k.scale(part, tile.bytes()));
  return tile;
}

SharedTile GpuTiles::columnsOfPart(SharedTile tile) {
  tile.columns /= parts;
  if (parts > 1)
    tile.start = k.add(tile.start, k.scale(part, tile.columns * bytesOf(element)));
  return tile;
}

const SharedTile &GpuTiles::fragmentRows(size_t number, int64_t columns) {
  while (fragments.size() <= number)
    fragments.push_back(allocate(warps * kRows, columns));
  assert(fragments[number].columns == columns && "expects fragments of one width");
  return fragments[number];
}

/// The warp's rows, in its part's columns.
void GpuTiles::layOut(const Fragment &p, const SharedTile &rows) {
  SharedTile own = columnsOfPart(rows);
  Value row = k.add(firstRow, group), pair = k.scale(member, 2);
  Value ownRows[] = {row, k.add(row, k.index(8))};
  for (int64_t i = 0; i < own.columns; i += 8)
    for (auto [half, to] : llvm::enumerate(ownRows)) {
      ValueRange values = ValueRange(p).slice(i / 2 + 2 * half, 2);
      Value both = isNarrow() ? pack(values[0], values[1])
                              : vector::FromElementsOp::create(k.b, VectorType::get({2}, element), values).getResult();
      LLVM::StoreOp::create(k.b, both, address(own, to, k.add(pair, k.index(i))), 2 * bytesOf(element));
    }
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
// By warpgroups
//===----------------------------------------------------------------------===//

/// PTX ISA, "Matrix Descriptor Format": where a tile starts, what lies between 64 columns and the next (of the leading
/// dimension of X as it is stored; not used where the sum runs along columns), between 8 rows and the next, and the
/// swizzle. What is added to it moves the start, in units of 16 bytes.
Value GpuTiles::descriptor(const SharedTile &tile) {
  constexpr int64_t addressBits = 0x3ffff, unit = 4, leadingBit = 16, strideBit = 32, swizzle128 = int64_t(1) << 62;
  auto word = [&](int64_t value) { return arith::ConstantOp::create(k.b, k.b.getI64IntegerAttr(value)); };
  Value address = LLVM::PtrToIntOp::create(k.b, k.b.getI64Type(), k.sharedAddress(tile.start));
  address = arith::AndIOp::create(k.b, address, word(addressBits));
  int64_t leading = tile.rows * kSwizzledBytes;
  int64_t layout = (leading >> unit) << leadingBit | (kPatternBytes >> unit) << strideBit | swizzle128;
  return arith::OrIOp::create(k.b, arith::ShRUIOp::create(k.b, address, word(unit)), word(layout));
}

/// sums = a * x (+ sums) over 16 steps, from offsets in bytes on. `columnsOfX`: the sum runs along the columns of x,
/// not along its rows. Nobody may touch sums before they are settled.
Value GpuTiles::multiplyAsync(Value sums, Value a, Value x, int64_t offsetOfA, int64_t offsetOfX, bool adds,
                              bool columnsOfX) {
  MLIRContext *context = k.b.getContext();
  auto at = [&](Value start, int64_t offset) -> Value {
    return arith::AddIOp::create(k.b, start, arith::ConstantOp::create(k.b, k.b.getI64IntegerAttr(offset >> 4)));
  };
  auto one = NVVM::WGMMAScaleInAttr::get(context, NVVM::WGMMAScaleIn::one);
  auto bf16 = NVVM::WGMMATypesAttr::get(context, NVVM::WGMMATypes::bf16);
  auto layout = [&](bool columns) {
    return NVVM::MMALayoutAttr::get(context, columns ? NVVM::MMALayout::col : NVVM::MMALayout::row);
  };
  int64_t columns = cast<LLVM::LLVMStructType>(sums.getType()).getBody().size() * 2;
  return NVVM::WgmmaMmaAsyncOp::create(
      k.b, sums.getType(), sums, at(a, offsetOfA), at(x, offsetOfX), NVVM::MMAShapeAttr::get(context, 64, columns, 16),
      bf16, bf16, NVVM::WGMMATypesAttr::get(context, NVVM::WGMMATypes::f32),
      NVVM::WGMMAScaleOutAttr::get(context, adds ? NVVM::WGMMAScaleOut::one : NVVM::WGMMAScaleOut::zero), one, one,
      layout(false), layout(columnsOfX), NVVM::MMAIntOverflowAttr());
}

/// Behind a wait: an asm without instructions keeps what reads the sums behind it.
void GpuTiles::settle(Value sums, Fragment &to) {
  auto type = cast<LLVM::LLVMStructType>(sums.getType());
  SmallVector<Value> registers;
  std::string constraints;
  int64_t count = type.getBody().size();
  auto field = [&](Value all, int64_t i) -> Value {
    return LLVM::ExtractValueOp::create(k.b, all, ArrayRef<int64_t>{i});
  };
  for (int64_t i = 0; i < count; ++i) {
    registers.push_back(field(sums, i));
    constraints += "=f,";
  }
  for (int64_t i = 0; i < count; ++i)
    constraints += std::to_string(i) + (i + 1 < count ? "," : "");
  auto tied = LLVM::InlineAsmOp::create(k.b, TypeRange(type), registers, "", constraints, /*has_side_effects=*/true,
                                        /*is_align_stack=*/false, LLVM::TailCallKind::None, LLVM::AsmDialectAttr(),
                                        ArrayAttr());
  to.clear();
  for (int64_t i = 0; i < count; ++i)
    to.push_back(field(tied.getResult(0), i));
}

static Type sumsType(GpuKernel &k, int64_t columns) {
  return LLVM::LLVMStructType::getLiteral(k.b.getContext(), SmallVector<Type>(columns / 2, k.b.getF32Type()));
}

/// Bytes from the start of a tile to 16 of its columns.
static int64_t columnsAt(const SharedTile &tile, int64_t column) {
  return column / kSwizzledColumns * tile.rows * kSwizzledBytes + column % kSwizzledColumns * 2;
}

Fragment GpuTiles::multiplyTransposedAsync(const SharedTile &a, const SharedTile &x) {
  Value left = descriptor(a), right = descriptor(x), sums = LLVM::UndefOp::create(k.b, sumsType(k, x.rows));
  NVVM::WgmmaFenceAlignedOp::create(k.b);
  for (int64_t depth = 0; depth < a.columns; depth += 16)
    sums = multiplyAsync(sums, left, right, columnsAt(a, depth), columnsAt(x, depth), depth > 0, /*columnsOfX=*/true);
  NVVM::WgmmaGroupSyncAlignedOp::create(k.b);
  NVVM::WgmmaWaitGroupSyncOp::create(k.b, 0);
  Fragment result;
  settle(sums, result);
  return result;
}

void GpuTiles::addProductsAsync(ArrayRef<Product> products) {
  for (auto [i, product] : llvm::enumerate(products))
    layOut(product.p, fragmentRows(i, product.x.rows));
  fenceProxy(k);
  k.barrier();
  NVVM::WgmmaFenceAlignedOp::create(k.b);
  SmallVector<Value> results;
  for (auto [i, product] : llvm::enumerate(products)) {
    Value left = descriptor(fragments[i]), right = descriptor(product.x);
    Value sums = LLVM::UndefOp::create(k.b, sumsType(k, product.x.columns));
    for (auto [j, sum] : llvm::enumerate(product.sums))
      sums = LLVM::InsertValueOp::create(k.b, sums, sum, ArrayRef<int64_t>{static_cast<int64_t>(j)});
    for (int64_t depth = 0; depth < product.x.rows; depth += 16)
      sums = multiplyAsync(sums, left, right, columnsAt(fragments[i], depth), depth * kSwizzledBytes, true,
                           /*columnsOfX=*/false);
    results.push_back(sums);
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(k.b);
  NVVM::WgmmaWaitGroupSyncOp::create(k.b, 0);
  for (auto [product, sums] : llvm::zip(products, results))
    settle(sums, product.sums);
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

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Fragment GpuTiles::zeros(int64_t columns) {
  return Fragment(columns / parts / 8 * 4, k.constant(k.b.getF32Type(), 0.0));
}

Fragment GpuTiles::multiplyTransposed(const SharedTile &a, const SharedTile &all) {
  if (warpgroup)
    return multiplyTransposedAsync(a, all);
  Fragment sums = zeros(all.rows);
  SharedTile x = rowsOfPart(all);
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

void GpuTiles::addNarrowProduct(Fragment &sums, LeftOperand left, const SharedTile &x) {
  Value rowOfX = arith::RemUIOp::create(k.b, lane, k.index(16));
  Value columnOfX = k.scale(arith::DivUIOp::create(k.b, lane, k.index(16)), 8);
  for (int64_t depth = 0; depth < x.rows; depth += 16) {
    SmallVector<Value> a = left(depth);
    Value row = k.add(rowOfX, k.index(depth));
    for (int64_t column = 0; column < x.columns; column += 16) {
      SmallVector<Value> right = loadMatrices(x, row, k.add(columnOfX, k.index(column)), true);
      multiply(sums, column / 8, a, right[0], right[1]);
      multiply(sums, column / 8 + 1, a, right[2], right[3]);
    }
  }
}

void GpuTiles::addWideProduct(Fragment &sums, const SharedTile &p, const SharedTile &x) {
  constexpr int64_t width = 4;
  Value row = k.add(firstRow, group), other = k.add(row, k.index(8)), pair = k.scale(member, 2);
  sums = k.loop(k.index(0), k.index(x.rows), width, sums, [&](Value depth, ValueRange carried) {
    Fragment next = llvm::to_vector(carried);
    SmallVector<Value> left[] = {loadFloats(p, row, depth, width), loadFloats(p, other, depth, width)};
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

void GpuTiles::addProducts(ArrayRef<Product> products) {
  if (warpgroup)
    return addProductsAsync(products);
  auto addFromRows = [&](const Product &product, const SharedTile &rows) {
    SharedTile x = columnsOfPart(product.x);
    if (!isNarrow())
      return addWideProduct(product.sums, rows, x);
    Value row = k.add(firstRow, arith::RemUIOp::create(k.b, lane, k.index(16)));
    Value column = k.scale(arith::DivUIOp::create(k.b, lane, k.index(16)), 8);
    auto left = [&](int64_t depth) { return loadMatrices(rows, row, k.add(column, k.index(depth)), false); };
    addNarrowProduct(product.sums, left, x);
  };
  if (parts > 1) { // a warp needs what the others of its rows have
    for (auto [i, product] : llvm::enumerate(products))
      layOut(product.p, fragmentRows(i, product.x.rows));
    k.barrier();
    for (auto [i, product] : llvm::enumerate(products))
      addFromRows(product, fragments[i]);
    return;
  }
  for (const Product &product : products) {
    if (isNarrow()) {
      auto left = [&](int64_t depth) -> SmallVector<Value> {
        const Value *low = &product.p[depth / 2], *high = low + 4; // of two times 8 columns
        return {pack(low[0], low[1]), pack(low[2], low[3]), pack(high[0], high[1]), pack(high[2], high[3])};
      };
      addNarrowProduct(product.sums, left, product.x);
      continue;
    }
    const SharedTile &rows = fragmentRows(0, product.x.rows);
    k.warpBarrier(); // all have read what was there before
    layOut(product.p, rows);
    k.warpBarrier();
    addFromRows(product, rows);
  }
}

Value GpuTiles::reduceRow(Value value, RowReduction kind) { return k.reduce(value, kind, 4); }

void GpuTiles::reduceOverParts(SmallVectorImpl<Value> &values, RowReduction kind) {
  if (parts == 1)
    return;
  Type f32 = k.b.getF32Type();
  int64_t rows = warps * kRows, bytes = rows * bytesOf(f32);
  Value start = k.index(k.allocateShared(parts * bytes)), row = k.add(firstRow, group);
  auto addressOf = [&](Value part, size_t half) {
    Value at = k.scale(k.add(row, k.index(8 * half)), bytesOf(f32));
    return k.sharedAddress(k.add(start, k.add(k.scale(part, bytes), at)));
  };
  k.when(k.isZero(member), [&] {
    for (auto [half, value] : llvm::enumerate(values))
      LLVM::StoreOp::create(k.b, value, addressOf(part, half));
  });
  k.barrier();
  for (auto [half, value] : llvm::enumerate(values)) {
    value = LLVM::LoadOp::create(k.b, f32, addressOf(k.index(0), half));
    for (int64_t i = 1; i < parts; ++i)
      value = k.combine(value, LLVM::LoadOp::create(k.b, f32, addressOf(k.index(i), half)), kind);
  }
}
