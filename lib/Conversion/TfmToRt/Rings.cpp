//===- Rings.cpp - matmuls in steps around a ring of ranks ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A step a rank: a matmul of the rows of one part, and a shift of a part to the next rank under way beside it. Parts
// travel in two buffers that take turns, so that nothing touches what is under way (Wang et al., Overlap Communication
// with Dependent Computation via Decomposition in Large Deep Learning Models, 2023).
//===----------------------------------------------------------------------===//
#include "Rings.h"
#include "Collectives.h"
#include "LibraryCalls.h"
#include "drover/Dialect/Tfm/IR/Distribution.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

bool lower::isRing(Operation *op) { return isa<tfm::GatherLinearOp, tfm::LinearScatterOp>(op); }

static ArrayAttr axisNames(Operation *op) { return op->getAttrOfType<ArrayAttr>("axes"); }

LogicalResult lower::verifyRing(Operation *op) {
  FailureOr<Axes> axes = axesOf(op, axisNames(op));
  tfm::Grid grid = tfm::gridOf(op);
  // With one kv head the replicas are all of tp.
  auto isAllOfTp = [&] {
    std::optional<rt::Communicator> communicator = communicatorOf(*axes);
    return communicator && *communicator != rt::Communicator::Cp &&
           countRanks(*axes) == grid.product(grid.tensorAxes());
  };
  if (failed(axes) || !isAllOfTp())
    return op->emitOpError("expects a ring over tp, or over kv and replica, not over ") << axisNames(op);
  for (Value value : llvm::concat<Value>(op->getOperands(), op->getResults()))
    if (Type type = elementTypeOf(value); !type.isF32() && !type.isBF16())
      return op->emitOpError("is supported in f32 and bf16 by the host target, not in ") << type;
  return isa<tfm::LinearScatterOp>(op) ? verifyReductionId(op) : success();
}

bool lower::ringOperandFits(Operation *op, unsigned index, const View &view) {
  unsigned inputs = isa<tfm::GatherLinearOp>(op) ? 1 : cast<tfm::LinearScatterOp>(op).getInputs().size();
  if (index >= inputs)
    return matrixView(view).has_value();
  return ArrayRef(view.strides) == ArrayRef(contiguousStrides(view.shape));
}

SmallVector<std::pair<Type, int64_t>> lower::ringScratch(Operation *op) {
  if (auto gather = dyn_cast<tfm::GatherLinearOp>(op)) {
    std::pair<Type, int64_t> part = {elementTypeOf(gather.getInput()), product(shapeOf(gather.getInput()))};
    return {part, part};
  }
  Value result = cast<tfm::LinearScatterOp>(op).getResult();
  std::pair<Type, int64_t> part = {elementTypeOf(result), product(shapeOf(result))};
  return {part, part, {Float32Type::get(op->getContext()), part.second}};
}

namespace {
/// Rows [outer, rows, cols] of a flat buffer, `outerStride` elements from one outer index to the next.
struct Rows {
  Value buffer;
  int64_t offset = 0;
  int64_t outer = 1, rows = 1, cols = 1, outerStride = 0;
};

class RingEmitter {
public:
  /// `part` is the shape of a rank's part of what is cut on `dim`.
  RingEmitter(BodyEmitter &emitter, Operation *op, int64_t dim, ArrayRef<int64_t> part)
      : emitter(emitter), axes(*axesOf(op, axisNames(op))), ranks(countRanks(axes)),
        outer(product(part.take_front(dim))), rows(product(part.drop_front(dim).drop_back())) {
    place = arith::IndexCastOp::create(emitter.body, emitter.body.getIndexType(),
                                       linearIndex(emitter.body, emitter.call, axes));
  }

  int64_t numRanks() const { return ranks; }
  /// A part that lies in one piece.
  Rows packed(Value buffer, int64_t cols, int64_t offset = 0) const {
    return {buffer, offset, outer, rows, cols, rows * cols};
  }
  /// The part `back` ranks before the own one, in a whole tensor.
  Value partOf(const View &whole, int64_t back) {
    int64_t cols = whole.shape.back();
    Rows part = {emitter.buffer(whole.root), whole.offset, outer, rows, cols, ranks * rows * cols};
    return matrix(part, scaled(owner(back), rows * cols));
  }
  Value matrix(const Rows &part) { return matrix(part, Value()); }

  void multiply(Value lhs, const View &weight, bool inOut, Value result, rt::Store store) {
    bool transposed = !inOut;
    Value rhs = matrixOperand(emitter, weight, transposed, outer);
    rt::MatmulOp::create(emitter.body, emitter.call, lhs, rhs, result, store, false, transposed);
  }

  void startShift(Value from, Value to, IntegerAttr reduction) {
    int64_t count = cast<MemRefType>(from.getType()).getNumElements();
    rt::CollectiveStartOp::create(emitter.body, emitter.call, rt::CollectiveKind::Shift, rt::Communicator::Tp,
                                  rt::Reduction::Sum, kRingSlot, from, to, ranks, 1, count, 1, /*two_chunk=*/false,
                                  reduction);
  }
  void wait() { rt::CollectiveWaitOp::create(emitter.body, emitter.call, kRingSlot); }

  /// Copies a packed part to its place in a whole tensor.
  void unpack(const Rows &part, const View &whole, int64_t back);
  /// to = product, or arrived + product: in f32, rounded once.
  void add(Value arrived, Value product, const Rows &to);

private:
  /// The rank `back` places before this one.
  Value owner(int64_t back) {
    Value sum = arith::AddIOp::create(emitter.body, place, emitter.index(ranks - back));
    return arith::RemUIOp::create(emitter.body, sum, emitter.index(ranks));
  }
  Value scaled(Value value, int64_t factor) {
    return arith::MulIOp::create(emitter.body, value, emitter.index(factor));
  }
  /// Rank 2, or 3 where there are several outer indices; `shift` is added to the offset.
  Value matrix(const Rows &part, Value shift);
  /// A kernel over the rows of a part: what `prepare` makes of a row, and some of its columns at a time.
  void perRow(KernelBuilder &k, int64_t cols, function_ref<Value(Value)> prepare,
              function_ref<void(Value, Value, Value, int64_t)> columns);

  BodyEmitter &emitter;
  Axes axes;
  int64_t ranks, outer, rows;
  Value place;
};
} // namespace

Value RingEmitter::matrix(const Rows &part, Value shift) {
  ImplicitLocOpBuilder &b = emitter.body;
  Type element = cast<MemRefType>(part.buffer.getType()).getElementType();
  SmallVector<int64_t> shape = {part.rows, part.cols}, strides = {part.cols, 1};
  if (outer > 1) {
    shape.insert(shape.begin(), part.outer);
    strides.insert(strides.begin(), part.outerStride);
  }
  int64_t offset = shift ? ShapedType::kDynamic : part.offset;
  auto type = MemRefType::get(shape, element, StridedLayoutAttr::get(b.getContext(), offset, strides));
  if (!shift)
    return memref::ReinterpretCastOp::create(b, type, part.buffer, part.offset, shape, strides);
  Value start = arith::AddIOp::create(b, shift, emitter.index(part.offset));
  SmallVector<OpFoldResult> sizes, steps;
  for (auto [size, stride] : llvm::zip(shape, strides)) {
    sizes.push_back(b.getIndexAttr(size));
    steps.push_back(b.getIndexAttr(stride));
  }
  return memref::ReinterpretCastOp::create(b, type, part.buffer, OpFoldResult(start), sizes, steps);
}

void RingEmitter::perRow(KernelBuilder &k, int64_t cols, function_ref<Value(Value)> prepare,
                         function_ref<void(Value, Value, Value, int64_t)> columns) {
  if (emitter.target == Target::Cuda) { // neighbouring threads have neighbouring elements
    k.indices([&](Value i) {
      Value row = arith::DivUIOp::create(k.b, i, k.index(cols));
      columns(row, prepare(row), arith::RemUIOp::create(k.b, i, k.index(cols)), 1);
    });
    return k.launch(outer * rows * cols, 1);
  }
  int64_t lanes = emitter.lanes, vectors = cols / lanes * lanes;
  k.indices([&](Value row) {
    Value target = prepare(row);
    if (vectors > 0)
      k.loop(k.index(0), k.index(vectors), lanes, {}, [&](Value j, ValueRange) {
        columns(row, target, j, lanes);
        return SmallVector<Value>();
      });
    if (cols > vectors)
      columns(row, target, k.index(vectors), cols - vectors);
  });
  k.launch(outer * rows, 16384 / std::max<int64_t>(1, cols));
}

void RingEmitter::unpack(const Rows &part, const View &whole, int64_t back) {
  Type storage = elementTypeOf(whole.root);
  std::unique_ptr<KernelBuilder> kernel = emitter.kernel();
  KernelBuilder &k = *kernel;
  Value source = k.argument(part.buffer), target = k.buffer(whole.root);
  perRow(
      k, part.cols,
      [&](Value row) -> Value {
        Value from = arith::RemUIOp::create(k.b, k.add(k.rankIndex(axes), k.index(ranks - back)), k.index(ranks));
        Value index = arith::DivUIOp::create(k.b, row, k.index(rows));
        Value inPart = arith::RemUIOp::create(k.b, row, k.index(rows));
        Value number = k.add(k.scale(k.add(k.scale(index, ranks), from), rows), inPart);
        return k.add(k.scale(number, part.cols), k.index(whole.offset));
      },
      [&](Value row, Value at, Value j, int64_t width) {
        Value value = k.load(source, k.add(k.add(k.scale(row, part.cols), k.index(part.offset)), j), storage, width, 1);
        k.store(value, target, k.add(at, j), storage, width, 1, /*rounded=*/true);
      });
}

void RingEmitter::add(Value arrived, Value product, const Rows &to) {
  Type f32 = emitter.body.getF32Type(), storage = cast<MemRefType>(to.buffer.getType()).getElementType();
  std::unique_ptr<KernelBuilder> kernel = emitter.kernel();
  KernelBuilder &k = *kernel;
  Value own = k.argument(product), target = k.argument(to.buffer), other = arrived ? k.argument(arrived) : Value();
  perRow(
      k, to.cols, [&](Value row) { return k.scale(row, to.cols); },
      [&](Value, Value at, Value j, int64_t width) {
        Value place = k.add(at, j), value = k.load(own, place, f32, width, 1);
        if (other)
          value = arith::AddFOp::create(k.b, k.load(other, place, storage, width, 1), value);
        k.store(value, target, to.offset ? k.add(place, k.index(to.offset)) : place, storage, width, 1);
      });
}

//===----------------------------------------------------------------------===//
// The two rings
//===----------------------------------------------------------------------===//

/// Step t multiplies the part that was t ranks back; it goes on meanwhile.
static void emitGatherLinear(BodyEmitter &emitter, const Views &views, tfm::GatherLinearOp op) {
  RingEmitter ring(emitter, op, op.getDim(), shapeOf(op.getInput()));
  View input = views.of(op.getInput());
  int64_t cols = input.shape.back(), ranks = ring.numRanks();
  Rows here = ring.packed(emitter.buffer(input.root), cols, input.offset);
  Value travelling = emitter.strided(input);
  for (int64_t step = 0; step < ranks; ++step) {
    Value landing = emitter.scratch(step % 2);
    if (step + 1 < ranks)
      ring.startShift(travelling, landing, {});
    for (auto [weight, inOut, result] : llvm::zip(op.getWeights(), op.getInOut(), op.getResults()))
      ring.multiply(ring.matrix(here), views.of(weight), inOut, ring.partOf(views.of(result), step),
                    rt::Store::Overwrite);
    if (Value gathered = op.getGathered())
      ring.unpack(here, views.of(gathered), step);
    if (step + 1 == ranks)
      break;
    ring.wait();
    travelling = landing;
    here = ring.packed(landing, cols);
  }
}

/// Step t adds this rank's share to the part that the rank t + 1 back keeps, so that the own part comes last.
static void emitLinearScatter(BodyEmitter &emitter, const Views &views, tfm::LinearScatterOp op) {
  RingEmitter ring(emitter, op, op.getDim(), shapeOf(op.getResult()));
  View result = views.of(op.getResult());
  int64_t cols = result.shape.back(), ranks = ring.numRanks();
  IntegerAttr reduction = reductionId(op);
  auto multiply = [&](int64_t step, Value into) {
    rt::Store store = rt::Store::Overwrite;
    for (auto [input, weight, inOut] : llvm::zip(op.getInputs(), op.getWeights(), op.getInOut())) {
      ring.multiply(ring.partOf(views.of(input), (step + 1) % ranks), views.of(weight), inOut,
                    ring.matrix(ring.packed(into, cols)), store);
      store = rt::Store::Add;
    }
  };
  Value sending = emitter.scratch(0), landing = emitter.scratch(1), share = emitter.scratch(2);
  // A single product is rounded by the matmul.
  bool isDirect = op.getInputs().size() == 1 || elementTypeOf(op.getResult()).isF32();
  multiply(0, isDirect ? sending : share);
  if (!isDirect)
    ring.add({}, share, ring.packed(sending, cols));
  for (int64_t step = 1; step < ranks; ++step) {
    ring.startShift(sending, landing, reduction);
    multiply(step, share);
    ring.wait();
    bool isLast = step + 1 == ranks;
    ring.add(landing, share,
             isLast ? ring.packed(emitter.buffer(result.root), cols, result.offset) : ring.packed(landing, cols));
    std::swap(sending, landing);
  }
}

void lower::emitRing(BodyEmitter &emitter, const Views &views, Operation *op) {
  if (auto gather = dyn_cast<tfm::GatherLinearOp>(op))
    emitGatherLinear(emitter, views, gather);
  else
    emitLinearScatter(emitter, views, cast<tfm::LinearScatterOp>(op));
}
