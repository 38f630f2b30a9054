//===- Collectives.cpp - shard ops as the runtime's collectives -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Collectives.h"
#include "SpecialKernels.h"
#include "drover/Dialect/Tfm/IR/Distribution.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include <numeric>

using namespace mlir;
using namespace drover;
using namespace drover::lower;

using tfm::TfmDialect;

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

FailureOr<Axes> lower::axesOf(Operation *op, ArrayAttr names) {
  FailureOr<SmallVector<int64_t>> sizes = tfm::gridSizes(op, names);
  if (failed(sizes))
    return failure();
  Axes axes;
  for (auto [name, size] : llvm::zip(names.getAsRange<StringAttr>(), *sizes)) {
    std::optional<rt::Axis> axis = rt::symbolizeAxis(name);
    if (!axis)
      return failure();
    axes.push_back({*axis, size});
  }
  return axes;
}

static ArrayRef<int16_t> gridAxes(Operation *op) {
  auto axes = op->getAttrOfType<DenseI16ArrayAttr>("grid_axes");
  return axes ? axes.asArrayRef() : ArrayRef<int16_t>();
}

FailureOr<Axes> lower::shardAxes(Operation *op) {
  auto grid = SymbolTable::lookupNearestSymbolFrom<shard::GridOp>(op, op->getAttrOfType<FlatSymbolRefAttr>("grid"));
  SmallVector<tfm::Axis, 4> all = tfm::gridOf(op).axes();
  SmallVector<StringRef> names;
  if (!grid || grid.getShape().size() != all.size())
    return op->emitOpError("expects a shard.grid with the ") << all.size() << " axes of tfm.grid";
  for (int16_t axis : gridAxes(op)) // below the grid's number of axes, by the op's verifier
    names.push_back(tfm::name(all[axis]));
  FailureOr<Axes> axes = axesOf(op, Builder(op->getContext()).getStrArrayAttr(names));
  if (failed(axes))
    return op->emitOpError("expects a tfm.grid with axes of sizes");
  for (auto [axis, index] : llvm::zip(*axes, gridAxes(op)))
    if (axis.second != grid.getShape()[index])
      return op->emitOpError("expects equal sizes of ")
             << rt::stringifyAxis(axis.first) << " in tfm.grid and " << grid.getSymName() << ", not " << axis.second
             << " and " << grid.getShape()[index];
  return axes;
}

Value lower::linearIndex(ImplicitLocOpBuilder &b, Value call, const Axes &axes) {
  auto constant = [&](int64_t value) -> Value { return arith::ConstantIntOp::create(b, b.getI64Type(), value); };
  Value index;
  for (auto [axis, size] : axes) {
    Value coordinate = rt::CoordinateOp::create(b, b.getI64Type(), call, axis);
    index = index ? arith::AddIOp::create(b, arith::MulIOp::create(b, index, constant(size)), coordinate) : coordinate;
  }
  return index ? index : constant(0);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

bool lower::isCollective(Operation *op) {
  return isa<shard::AllGatherOp, shard::AllReduceOp, shard::ReduceScatterOp>(op);
}

std::optional<rt::Communicator> lower::communicatorOf(const Axes &axes) {
  auto is = [&](ArrayRef<rt::Axis> names) {
    return llvm::equal(axes, names, [](const auto &axis, rt::Axis name) { return axis.first == name; });
  };
  if (is({rt::Axis::Tp}) || is({rt::Axis::Kv, rt::Axis::Replica}))
    return rt::Communicator::Tp;
  if (is({rt::Axis::Kv}))
    return rt::Communicator::Kv;
  if (is({rt::Axis::Replica}))
    return rt::Communicator::Replica;
  if (is({rt::Axis::Cp}))
    return rt::Communicator::Cp;
  return std::nullopt;
}

int64_t lower::countRanks(const Axes &axes) {
  int64_t ranks = 1;
  for (auto [axis, size] : axes)
    ranks *= size;
  return ranks;
}

/// The dimension that is cut or put together; none for all_reduce.
static std::optional<int64_t> cutDimension(Operation *op) {
  if (auto gather = dyn_cast<shard::AllGatherOp>(op))
    return gather.getGatherAxis().getSExtValue();
  if (auto scatter = dyn_cast<shard::ReduceScatterOp>(op))
    return scatter.getScatterAxis().getSExtValue();
  if (auto slice = dyn_cast<shard::AllSliceOp>(op))
    return slice.getSliceAxis().getSExtValue();
  return std::nullopt;
}

static shard::ReductionKind reductionOf(Operation *op) {
  if (auto reduce = dyn_cast<shard::AllReduceOp>(op))
    return reduce.getReduction();
  return cast<shard::ReduceScatterOp>(op).getReduction();
}

LogicalResult lower::verifyReductionId(Operation *op) {
  auto id = op->getAttrOfType<IntegerAttr>(TfmDialect::kReductionAttr);
  if (!id || id.getInt() < 0 || id.getInt() > INT32_MAX)
    return op->emitOpError("expects ") << TfmDialect::kReductionAttr
                                       << ", the number of the reduction that it discharges";
  return success();
}

IntegerAttr lower::reductionId(Operation *op) {
  return Builder(op->getContext())
      .getI32IntegerAttr(op->getAttrOfType<IntegerAttr>(TfmDialect::kReductionAttr).getInt());
}

LogicalResult lower::verifyShardOp(Operation *op) {
  FailureOr<Axes> axes = shardAxes(op);
  if (failed(axes))
    return failure();
  std::optional<int64_t> dim = cutDimension(op);
  bool twoChunk = op->hasAttr(TfmDialect::kTwoChunkAttr), communicates = isCollective(op);
  auto smaller = isa<shard::AllGatherOp>(op) ? op->getOperand(0) : op->getResult(0);
  if (twoChunk && (!dim || axes->size() != 1 || shapeOf(smaller)[*dim] % 2))
    return op->emitOpError("expects tfm.two_chunk on one axis and an even part of a dimension");
  if (!communicates)
    return success();
  if (llvm::any_of(*axes, [](const auto &axis) { return axis.first == rt::Axis::Dp; }))
    return op->emitOpError("is over dp: the model reads a sum over the batch, or a weight through arithmetic whose "
                           "gradient does, and bodies do not communicate over dp; accepted with dp 1");
  if (!communicatorOf(*axes)) {
    std::string names =
        llvm::join(llvm::map_range(*axes, [](const auto &axis) { return rt::stringifyAxis(axis.first).str(); }), ", ");
    return op->emitOpError("expects the axes tp, kv, replica, kv and replica, or cp, not ") << names;
  }
  if (countRanks(*axes) < 2)
    return op->emitOpError("expects a group of several ranks");
  if (elementTypeOf(op->getOperand(0)) != elementTypeOf(op->getResult(0)))
    return op->emitOpError("expects one element type, not ")
           << elementTypeOf(op->getOperand(0)) << " and " << elementTypeOf(op->getResult(0));
  if (isa<shard::AllGatherOp>(op))
    return success();
  if (failed(verifyReductionId(op)))
    return failure();
  shard::ReductionKind kind = reductionOf(op);
  if (kind != shard::ReductionKind::Sum && kind != shard::ReductionKind::Max)
    return op->emitOpError("expects the reduction sum or max, not ") << shard::stringifyReductionKind(kind);
  Type element = elementTypeOf(op->getOperand(0));
  if (!element.isF32() && !element.isBF16() && !element.isF64() && !element.isInteger(64))
    return op->emitOpError("expects a reduction in f32, bf16, f64 or i64, not in ") << element;
  return success();
}

void lower::emitCollectiveStart(BodyEmitter &emitter, const Views &views, Operation *op, int32_t slot) {
  Axes axes = *shardAxes(op);
  std::optional<int64_t> dim = cutDimension(op);
  // [outer, local, inner]; what is reduced whole has no dimension that is cut.
  ArrayRef<int64_t> part = shapeOf(isa<shard::AllGatherOp>(op) ? op->getOperand(0) : op->getResult(0));
  int64_t outer = dim ? product(part.take_front(*dim)) : 1, local = dim ? part[*dim] : 1;
  int64_t inner = dim ? product(part.drop_front(*dim + 1)) : product(part);
  rt::CollectiveKind kind = isa<shard::AllGatherOp>(op)       ? rt::CollectiveKind::AllGather
                            : isa<shard::ReduceScatterOp>(op) ? rt::CollectiveKind::ReduceScatter
                                                              : rt::CollectiveKind::AllReduce;
  rt::Reduction reduction = rt::Reduction::Sum;
  IntegerAttr id;
  if (kind != rt::CollectiveKind::AllGather) {
    if (reductionOf(op) == shard::ReductionKind::Max)
      reduction = rt::Reduction::Max;
    id = reductionId(op);
  }
  rt::CollectiveStartOp::create(emitter.body, emitter.call, kind, *communicatorOf(axes), reduction, slot,
                                emitter.strided(views.of(op->getOperand(0))),
                                emitter.strided(views.of(op->getResult(0))), countRanks(axes), outer, local, inner,
                                op->hasAttr(TfmDialect::kTwoChunkAttr), id);
}

//===----------------------------------------------------------------------===//
// What a rank's coordinates select
//===----------------------------------------------------------------------===//

bool lower::isRankKernel(Operation *op) { return isa<shard::AllSliceOp, tfm::GlobalIndexOp>(op); }

namespace {
/// Arithmetic on indices of a kernel.
struct IndexMath {
  KernelBuilder &k;
  Value constant(int64_t value) { return k.index(value); }
  Value add(Value a, Value x) { return k.add(a, x); }
  Value sub(Value a, Value x) { return arith::SubIOp::create(k.b, a, x); }
  Value mul(Value a, int64_t x) { return k.scale(a, x); }
  Value div(Value a, int64_t x) { return arith::DivUIOp::create(k.b, a, k.index(x)); }
  Value rem(Value a, int64_t x) { return arith::RemUIOp::create(k.b, a, k.index(x)); }
  Value less(Value a, int64_t x) { return arith::CmpIOp::create(k.b, arith::CmpIPredicate::ult, a, k.index(x)); }
  Value select(Value condition, Value yes, Value no) { return arith::SelectOp::create(k.b, condition, yes, no); }

  /// Row `row` of the rank's `local` ones in a dimension that `ranks` ranks hold in two chunks each.
  Value twoChunk(Value row, Value rank, int64_t local, int64_t ranks) {
    int64_t chunk = local / 2;
    Value mirrored = sub(constant(2 * ranks - 1), rank);
    return select(less(row, chunk), add(mul(rank, chunk), row), add(mul(mirrored, chunk), sub(row, constant(chunk))));
  }
};
} // namespace

/// Copies the rank's part of a dimension: an index has a slab of the dimensions behind it, on a GPU a step of one.
static void emitAllSlice(BodyEmitter &emitter, const Views &views, shard::AllSliceOp op) {
  View input = views.of(op.getInput()), result = views.of(op.getResult());
  Axes axes = *shardAxes(op);
  int64_t dim = *cutDimension(op), local = result.shape[dim];
  int64_t inner = product(ArrayRef(result.shape).drop_front(dim + 1)), lanes = emitter.lanes;
  View from = input, to = result; // slabs: [outer.., row]
  for (View *view : {&from, &to}) {
    view->shape.resize(dim + 1);
    view->strides.resize(dim + 1);
  }
  Type storage = elementTypeOf(op.getResult());
  int64_t count = inner; // elements of an index
  if (emitter.target == Target::Cuda) {
    count = lanes = std::gcd(inner, 16 / bytesOf(storage));
    for (const View *view : {&from, &to}) {
      lanes = std::gcd(lanes, view->offset);
      for (int64_t stride : view->strides)
        lanes = std::gcd(lanes, stride);
    }
    count = lanes;
  }
  int64_t stride = from.strides[dim], steps = inner / count;
  from.shape[dim] = local;
  from.strides[dim] = 0; // the row is chosen below
  std::unique_ptr<KernelBuilder> kernel = emitter.kernel();
  KernelBuilder &k = *kernel;
  IndexMath m{k};
  k.indices([&](Value i) {
    Value slab = m.div(i, steps), first = m.mul(m.rem(i, steps), count);
    Value rank = k.rankIndex(axes), row = m.rem(slab, local);
    row = op->hasAttr(TfmDialect::kTwoChunkAttr) ? m.twoChunk(row, rank, local, countRanks(axes))
                                                 : m.add(m.mul(rank, local), row);
    Value source = k.buffer(input.root), target = k.buffer(result.root);
    Value at = m.add(viewPosition(k, from, slab), m.mul(row, stride)), position = viewPosition(k, to, slab);
    auto copy = [&](Value j, int64_t width) {
      int64_t aligned = emitter.target == Target::Cuda ? width : 1;
      Value value = k.load(source, m.add(at, j), storage, width, 1, aligned);
      k.store(value, target, m.add(position, j), storage, width, 1, /*rounded=*/true, aligned);
    };
    if (emitter.target == Target::Cuda)
      return copy(first, count);
    int64_t whole = inner / lanes * lanes;
    if (whole > 0)
      k.loop(k.index(0), k.index(whole), lanes, {}, [&](Value j, ValueRange) {
        copy(j, lanes);
        return SmallVector<Value>();
      });
    if (inner > whole)
      copy(k.index(whole), inner - whole);
  });
  k.launch(product(to.shape) * steps, 16384 / std::max<int64_t>(1, inner));
}

static void emitGlobalIndex(BodyEmitter &emitter, const Views &views, tfm::GlobalIndexOp op) {
  View result = views.of(op.getResult());
  Axes axes = *axesOf(op, op.getAxes());
  int64_t size = result.shape[0], ranks = countRanks(axes);
  std::unique_ptr<KernelBuilder> kernel = emitter.kernel();
  KernelBuilder &k = *kernel;
  IndexMath m{k};
  k.indices([&](Value i) {
    Value rank = k.rankIndex(axes), index;
    if (op.getTwoChunk()) {
      int64_t inner = ranks / axes.front().second; // ranks that share a rank's rows of the first axis
      Value row = m.add(m.mul(m.rem(rank, inner), size), i);
      index = m.twoChunk(row, m.div(rank, inner), size * inner, axes.front().second);
    } else if (!op.getSegments()) {
      index = m.add(m.mul(rank, size), i);
    } else {
      // From the last segment to the first: the one that element i is in.
      auto segments = op.segmentList();
      SmallVector<std::pair<int64_t, int64_t>> starts; // of each segment: local and global
      int64_t local = 0, global = 0;
      for (auto segment : segments) {
        starts.push_back({local, global});
        local += segment.total * segment.padded / ranks;
        global += segment.groups * segment.valid;
      }
      Value padding = m.constant(-1);
      for (size_t s = segments.size(); s-- > 0;) {
        auto segment = segments[s];
        int64_t share = segment.total * segment.padded / ranks;
        Value p = m.add(m.mul(rank, share), m.sub(i, m.constant(starts[s].first)));
        Value group = m.div(p, segment.padded), within = m.rem(p, segment.padded);
        Value valid = arith::AndIOp::create(k.b, m.less(group, segment.groups), m.less(within, segment.valid));
        Value number = m.add(m.add(m.mul(group, segment.valid), within), m.constant(starts[s].second));
        Value here = m.select(valid, number, padding);
        index = index ? m.select(m.less(i, starts[s].first + share), here, index) : here;
      }
    }
    Type i64 = k.b.getI64Type();
    k.store(k.fromIndex(index, i64), k.buffer(result.root), viewPosition(k, result, i), i64);
  });
  k.launch(size, 1024);
}

void lower::emitRankKernel(BodyEmitter &emitter, const Views &views, Operation *op) {
  if (auto slice = dyn_cast<shard::AllSliceOp>(op))
    emitAllSlice(emitter, views, slice);
  else
    emitGlobalIndex(emitter, views, cast<tfm::GlobalIndexOp>(op));
}
