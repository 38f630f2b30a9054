//===- SpecialKernels.cpp - ops that are not rows ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// What an importer could not raise, and sums to one value: plain loops, parallel over what is independent.
//===----------------------------------------------------------------------===//
#include "SpecialKernels.h"
#include "Collectives.h"
#include "LibraryCalls.h"
#include "Rings.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

/// Blocks of a sum of squares: fixed, so that the order of summation depends on the size alone.
static constexpr int64_t kSquareBlocks = 64, kGpuSquareBlocks = 528;
/// Columns of one index of a scatter, on the host.
static constexpr int64_t kScatterColumns = 64;
static constexpr int64_t kGrain = 16384;

Value lower::viewPosition(KernelBuilder &k, const View &view, Value number) {
  Sizes shape = view.shape, strides = view.strides;
  collapse(shape, strides);
  Value position = k.index(view.offset), rest = number;
  for (size_t i = shape.size(); i-- > 0;) {
    Value coordinate = rest;
    if (i > 0) {
      Value size = k.index(shape[i]);
      coordinate = arith::RemUIOp::create(k.b, rest, size);
      rest = arith::DivUIOp::create(k.b, rest, size);
    }
    if (strides[i] != 0)
      position = k.add(position, k.scale(coordinate, strides[i]));
  }
  return position;
}

/// Writes `source`, or zeros where there is none, to a part of a buffer.
static void emitCopy(BodyEmitter &emitter, const Views &views, Value source, const View &target, Value targetValue) {
  RowProgram program;
  Sizes shape = target.shape;
  program.domain = shape.empty() ? Domain{} : Domain{product(ArrayRef(shape).drop_back()), shape.back()};
  RowProgramBuilder builder(program, views, emitter.module.getContext());
  NodeId node = source ? builder.element(source) : builder.zero(elementTypeOf(targetValue));
  Sink sink(node, targetValue);
  sink.access = accessOf(target, Role::Element, program.domain.cols);
  program.sinks.push_back(sink);
  emitRowKernel(emitter, program);
}

/// The part of a view that starts at offsets and steps by strides.
static View part(View view, ArrayRef<int64_t> offsets, ArrayRef<int64_t> strides, ArrayRef<int64_t> shape) {
  for (size_t i = 0; i < shape.size(); ++i) {
    view.offset += offsets[i] * view.strides[i];
    view.strides[i] *= strides[i];
    view.shape[i] = shape[i];
  }
  return view;
}

static void emitConcat(BodyEmitter &emitter, const Views &views, tfm::ConcatOp op) {
  View result = views.of(op.getResult());
  Sizes offsets(result.shape.size(), 0), strides(result.shape.size(), 1);
  for (Value input : op.getInputs()) {
    View target = part(result, offsets, strides, shapeOf(input));
    if (!views.isPlaced(input))
      emitCopy(emitter, views, input, target, op.getResult());
    offsets[op.getAxis()] += shapeOf(input)[op.getAxis()];
  }
}

static void emitPad(BodyEmitter &emitter, const Views &views, tfm::PadOp op) {
  View result = views.of(op.getResult());
  emitCopy(emitter, views, {}, result, op.getResult());
  emitCopy(emitter, views, op.getInput(), part(result, op.getOffsets(), op.getStrides(), shapeOf(op.getInput())),
           op.getResult());
}

//===----------------------------------------------------------------------===//
// Reductions over any dimensions
//===----------------------------------------------------------------------===//

/// Nested loops over a view's elements from `at` on, carrying values.
static SmallVector<Value> nest(KernelBuilder &k, ArrayRef<int64_t> shape, ArrayRef<int64_t> strides, Value at,
                               ValueRange carried,
                               function_ref<SmallVector<Value>(Value at, ValueRange carried)> build) {
  if (shape.empty())
    return build(at, carried);
  return k.loop(k.index(0), k.index(shape.front()), 1, carried, [&](Value i, ValueRange inner) {
    Value next = k.add(at, k.scale(i, strides.front()));
    return nest(k, shape.drop_front(), strides.drop_front(), next, inner, build);
  });
}

static Value reduceTwo(KernelBuilder &k, tfm::ReduceKind kind, Value a, Value x) {
  bool isFloat = isa<FloatType>(a.getType());
  switch (kind) {
  case tfm::ReduceKind::Sum:
  case tfm::ReduceKind::Mean:
    return isFloat ? arith::AddFOp::create(k.b, a, x).getResult() : arith::AddIOp::create(k.b, a, x).getResult();
  case tfm::ReduceKind::Prod:
    return isFloat ? arith::MulFOp::create(k.b, a, x).getResult() : arith::MulIOp::create(k.b, a, x).getResult();
  case tfm::ReduceKind::Max:
    return isFloat ? k.combine(a, x, RowReduction::Max) : arith::MaxSIOp::create(k.b, a, x).getResult();
  case tfm::ReduceKind::Min:
    return isFloat ? k.combine(a, x, RowReduction::Min) : arith::MinSIOp::create(k.b, a, x).getResult();
  }
  llvm_unreachable("a kind of reduction");
}

static Value reduceStart(KernelBuilder &k, tfm::ReduceKind kind, Type type) {
  if (kind == tfm::ReduceKind::Sum || kind == tfm::ReduceKind::Mean)
    return k.constant(type, 0.0);
  if (kind == tfm::ReduceKind::Prod)
    return k.constant(type, 1.0);
  bool max = kind == tfm::ReduceKind::Max;
  if (isa<FloatType>(type))
    return k.constant(type, KernelBuilder::neutral(max ? RowReduction::Max : RowReduction::Min));
  unsigned width = type.getIntOrFloatBitWidth();
  return arith::ConstantOp::create(
      k.b, k.b.getIntegerAttr(type, max ? APInt::getSignedMinValue(width) : APInt::getSignedMaxValue(width)));
}

static void emitReduce(BodyEmitter &emitter, const Views &views, tfm::ReduceOp op) {
  View input = views.of(op.getInput()), kept = input, result = views.of(op.getResult());
  Sizes reducedShape, reducedStrides;
  kept.shape.clear();
  kept.strides.clear();
  for (size_t i = 0; i < input.shape.size(); ++i) {
    bool reduced = llvm::is_contained(op.getAxes(), static_cast<int64_t>(i));
    (reduced ? reducedShape : kept.shape).push_back(input.shape[i]);
    (reduced ? reducedStrides : kept.strides).push_back(input.strides[i]);
  }
  Type storage = elementTypeOf(op.getInput()), type = computeType(storage);
  std::unique_ptr<KernelBuilder> kernel = emitter.kernel();
  KernelBuilder &k = *kernel;
  k.indices([&](Value i) {
    Value buffer = k.buffer(input.root);
    Value total = nest(k, reducedShape, reducedStrides, viewPosition(k, kept, i), reduceStart(k, op.getKind(), type),
                       [&](Value at, ValueRange carried) -> SmallVector<Value> {
                         return {reduceTwo(k, op.getKind(), carried[0], k.load(buffer, at, storage))};
                       })[0];
    if (op.getKind() == tfm::ReduceKind::Mean) {
      int64_t count = product(reducedShape);
      total = isa<FloatType>(type)
                  ? arith::DivFOp::create(k.b, total, k.constant(type, count)).getResult()
                  : arith::DivSIOp::create(k.b, total, k.constant(type, std::max<int64_t>(count, 1))).getResult();
    }
    k.store(total, k.buffer(result.root), viewPosition(k, result, i), storage);
  });
  k.launch(product(kept.shape), kGrain / std::max<int64_t>(1, product(reducedShape)));
}

/// Over another dimension than the last.
static void emitSoftmax(BodyEmitter &emitter, const Views &views, tfm::SoftmaxOp op) {
  View input = views.of(op.getInput()), result = views.of(op.getResult());
  size_t axis = op.getAxis();
  int64_t count = input.shape[axis], stride = input.strides[axis], resultStride = result.strides[axis];
  for (View *view : {&input, &result}) {
    view->shape.erase(view->shape.begin() + axis);
    view->strides.erase(view->strides.begin() + axis);
  }
  Type storage = elementTypeOf(op.getInput()), type = computeType(storage);
  std::unique_ptr<KernelBuilder> kernel = emitter.kernel();
  KernelBuilder &k = *kernel;
  k.indices([&](Value i) {
    Value from = viewPosition(k, input, i), to = viewPosition(k, result, i);
    Value buffer = k.buffer(input.root), target = k.buffer(result.root);
    auto over = [&](Value start, function_ref<Value(Value x, Value carried, Value j)> build) {
      return k.loop(k.index(0), k.index(count), 1, start, [&](Value j, ValueRange carried) -> SmallVector<Value> {
        return {build(k.load(buffer, k.add(from, k.scale(j, stride)), storage), carried[0], j)};
      })[0];
    };
    auto shifted = [&](Value x, Value max) -> Value {
      return math::ExpOp::create(k.b, arith::SubFOp::create(k.b, x, max));
    };
    Value max = over(k.constant(type, KernelBuilder::neutral(RowReduction::Max)),
                     [&](Value x, Value carried, Value) { return k.combine(carried, x, RowReduction::Max); });
    Value sum = over(k.constant(type, 0.0), [&](Value x, Value carried, Value) -> Value {
      return arith::AddFOp::create(k.b, carried, shifted(x, max));
    });
    over(sum, [&](Value x, Value carried, Value j) {
      k.store(arith::DivFOp::create(k.b, shifted(x, max), sum), target, k.add(to, k.scale(j, resultStride)), storage);
      return carried;
    });
  });
  k.launch(product(input.shape), kGrain / std::max<int64_t>(1, count));
}

/// A product in types that the library does not have; sums in f32, or f64 for f64.
static void emitGenericMatmul(BodyEmitter &emitter, const Views &views, Operation *op) {
  std::optional<MatmulViews> product =
      matmulViews(op, views.of(op->getOperand(0)), views.of(op->getOperand(1)), views.of(op->getResult(0)));
  assert(product && "operands were made contiguous");
  View lhs = product->lhs, rhs = product->rhs, result = product->result;
  size_t rank = lhs.shape.size();
  if (product->transposeLhs) {
    std::swap(lhs.shape[rank - 1], lhs.shape[rank - 2]);
    std::swap(lhs.strides[rank - 1], lhs.strides[rank - 2]);
  }
  if (product->transposeRhs) {
    std::swap(rhs.shape[rank - 1], rhs.shape[rank - 2]);
    std::swap(rhs.strides[rank - 1], rhs.strides[rank - 2]);
  }
  int64_t depth = lhs.shape.back(), depthStride = lhs.strides.back(), rhsStride = rhs.strides[rank - 2];
  View left = lhs, right = rhs; // as they are read for element [.., m, n] of the result, at depth 0
  left.shape = right.shape = result.shape;
  left.strides.back() = 0;
  right.strides[rank - 2] = 0;
  Type leftType = elementTypeOf(op->getOperand(0)), rightType = elementTypeOf(op->getOperand(1));
  Type resultType = elementTypeOf(op->getResult(0));
  bool f64 = leftType.isF64() || resultType.isF64();
  std::unique_ptr<KernelBuilder> kernel = emitter.kernel();
  KernelBuilder &k = *kernel;
  Type sumType = f64 ? k.b.getF64Type() : k.b.getF32Type();
  auto widen = [&](Value value) -> Value {
    return value.getType() == sumType ? value : arith::ExtFOp::create(k.b, sumType, value).getResult();
  };
  k.indices([&](Value i) {
    Value leftAt = viewPosition(k, left, i), rightAt = viewPosition(k, right, i);
    Value sum =
        k.loop(k.index(0), k.index(depth), 1, k.constant(sumType, 0.0),
               [&](Value j, ValueRange carried) -> SmallVector<Value> {
                 Value a = k.load(k.buffer(left.root), k.add(leftAt, k.scale(j, depthStride)), leftType);
                 Value x = k.load(k.buffer(right.root), k.add(rightAt, k.scale(j, rhsStride)), rightType);
                 return {arith::AddFOp::create(k.b, carried[0], arith::MulFOp::create(k.b, widen(a), widen(x)))};
               })[0];
    if (f64 && !resultType.isF64())
      sum = arith::TruncFOp::create(k.b, k.b.getF32Type(), sum);
    k.store(sum, k.buffer(result.root), viewPosition(k, result, i), resultType);
  });
  k.launch(lower::product(result.shape), kGrain / std::max<int64_t>(1, depth));
}

//===----------------------------------------------------------------------===//
// Scatters
//===----------------------------------------------------------------------===//

/// In index order, parallel over the other dimensions; summed in the compute type.
static void emitScatterAdd(BodyEmitter &emitter, const Views &views, tfm::ScatterAddOp op) {
  View updates = views.of(op.getUpdates()), ids = views.of(op.getIndices()), result = views.of(op.getResult());
  int64_t axis = op.getAxis(), size = result.shape[axis], count = product(ids.shape);
  int64_t outer = product(ArrayRef(result.shape).take_front(axis));
  int64_t inner = product(ArrayRef(result.shape).drop_front(axis + 1));
  int64_t columns = emitter.target == Target::Host ? kScatterColumns : 1;
  int64_t blocks = (inner + columns - 1) / columns;
  Type storage = elementTypeOf(op.getResult()), type = computeType(storage);
  Type idType = elementTypeOf(op.getIndices());
  std::unique_ptr<KernelBuilder> kernel = emitter.kernel();
  KernelBuilder &k = *kernel;
  k.indices([&](Value i) {
    Value target = type == storage ? k.buffer(result.root) : k.argument(emitter.scratch(0));
    Value source = k.buffer(updates.root), indices = k.buffer(ids.root);
    Value block = arith::RemUIOp::create(k.b, i, k.index(blocks)), o = arith::DivUIOp::create(k.b, i, k.index(blocks));
    Value from = k.scale(block, columns);
    Value to = arith::MinUIOp::create(k.b, k.add(from, k.index(columns)), k.index(inner));
    auto overColumns = [&](function_ref<void(Value)> build) {
      k.loop(from, to, 1, {}, [&](Value j, ValueRange) {
        build(j);
        return SmallVector<Value>();
      });
    };
    auto overRows = [&](int64_t rows, function_ref<void(Value)> build) {
      k.loop(k.index(0), k.index(rows), 1, {}, [&](Value row, ValueRange) {
        build(row);
        return SmallVector<Value>();
      });
    };
    auto at = [&](int64_t rows, Value row, Value j) { return k.add(k.scale(k.add(k.scale(o, rows), row), inner), j); };
    overRows(size, [&](Value row) {
      overColumns([&](Value j) { k.store(k.constant(type, 0.0), target, at(size, row, j), type); });
    });
    overRows(count, [&](Value n) {
      Value row = k.position(k.load(indices, viewPosition(k, ids, n), idType), size, /*fromEnd=*/true, "scatter_add");
      overColumns([&](Value j) {
        Value position = at(size, row, j);
        Value value = k.load(source, viewPosition(k, updates, at(count, n, j)), storage);
        k.store(arith::AddFOp::create(k.b, k.load(target, position, type), value), target, position, type);
      });
    });
    if (type != storage)
      overRows(size, [&](Value row) {
        overColumns([&](Value j) {
          Value position = at(size, row, j);
          k.store(k.load(target, position, type), k.buffer(result.root), position, storage);
        });
      });
  });
  k.launch(outer * blocks, 1);
}

/// A copy, then the slices in index order.
static void emitScatterNd(BodyEmitter &emitter, const Views &views, tfm::ScatterNdOp op) {
  View result = views.of(op.getResult()), ids = views.of(op.getIndices()), updates = views.of(op.getUpdates());
  emitCopy(emitter, views, op.getInput(), result, op.getResult());
  int64_t depth = ids.shape.back(), tuples = product(ArrayRef(ids.shape).drop_back());
  int64_t inner = product(ArrayRef(result.shape).drop_front(depth));
  Type storage = elementTypeOf(op.getResult()), idType = elementTypeOf(op.getIndices());
  std::unique_ptr<KernelBuilder> kernel = emitter.kernel();
  KernelBuilder &k = *kernel;
  k.indices([&](Value) {
    k.loop(k.index(0), k.index(tuples), 1, {}, [&](Value n, ValueRange) {
      Value position = k.index(0);
      for (int64_t d = 0; d < depth; ++d) {
        Value at = viewPosition(k, ids, k.add(k.scale(n, depth), k.index(d)));
        Value index = k.position(k.load(k.buffer(ids.root), at, idType), result.shape[d], true, "scatter_nd");
        position = k.add(position, k.scale(index, result.strides[d]));
      }
      k.loop(k.index(0), k.index(inner), 1, {}, [&](Value j, ValueRange) {
        Value value = k.load(k.buffer(updates.root), viewPosition(k, updates, k.add(k.scale(n, inner), j)), storage);
        k.store(value, k.buffer(result.root), k.add(position, j), storage, /*rounded=*/true);
        return SmallVector<Value>();
      });
      return SmallVector<Value>();
    });
  });
  k.launch(1, 1);
}

//===----------------------------------------------------------------------===//
// Sums to one value, in f64
//===----------------------------------------------------------------------===//

Value lower::toF64(KernelBuilder &k, Value value) {
  Type f64 = k.b.getF64Type();
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    f64 = vector.clone(f64);
  return value.getType() == f64 ? value : arith::ExtFOp::create(k.b, f64, value).getResult();
}

Value lower::addTokenLoss(KernelBuilder &k, const Views &views, tfm::CrossEntropyOp op, Value i, Value sum) {
  auto loadAt = [&](Value value) {
    View view = views.of(value);
    return k.load(k.buffer(view.root), viewPosition(k, view, i), elementTypeOf(value));
  };
  Value label = loadAt(op.getLabels());
  Value counts = arith::CmpIOp::create(k.b, arith::CmpIPredicate::sge, label, k.constant(label.getType(), 0));
  Value log = math::LogOp::create(k.b, toF64(k, loadAt(op.getSum())));
  Value logSum = arith::AddFOp::create(k.b, log, toF64(k, loadAt(op.getMaximum())));
  Value term = arith::SubFOp::create(k.b, logSum, toF64(k, loadAt(op.getTarget())));
  return arith::SelectOp::create(k.b, counts, arith::AddFOp::create(k.b, sum, term), sum);
}

/// In position order, on one thread: a logarithm a token.
static void emitCrossEntropy(BodyEmitter &emitter, const Views &views, tfm::CrossEntropyOp op) {
  std::unique_ptr<KernelBuilder> kernel = emitter.kernel();
  KernelBuilder &k = *kernel;
  k.indices([&](Value) {
    Value loss = k.loop(k.index(0), k.index(product(shapeOf(op.getLabels()))), 1, k.constant(k.b.getF64Type(), 0.0),
                        [&](Value i, ValueRange carried) -> SmallVector<Value> {
                          return {addTokenLoss(k, views, op, i, carried[0])};
                        })[0];
    k.store(loss, k.buffer(views.of(op.getLoss()).root), k.index(0), loss.getType());
  });
  k.launch(1, 1);
}

static void emitSumOfSquares(BodyEmitter &emitter, const Views &views, tfm::SumOfSquaresOp op) {
  View input = views.of(op.getInput());
  Type storage = elementTypeOf(op.getInput());
  bool dynamic = ShapedType::isDynamic(product(input.shape));
  Value partial = emitter.scratch(0);
  {
    std::unique_ptr<KernelBuilder> kernel = emitter.kernel();
    KernelBuilder &k = *kernel;
    Type f64 = k.b.getF64Type();
    constexpr int64_t width = 8;
    k.indices([&](Value block) {
      Value size = dynamic ? k.callSize() : k.index(product(input.shape));
      Value buffer = k.buffer(input.root);
      // Blocks are whole vectors long.
      Value padded = k.add(size, k.index(kSquareBlocks * width - 1));
      Value length = k.scale(arith::DivUIOp::create(k.b, padded, k.index(kSquareBlocks * width)), width);
      Value from = arith::MinUIOp::create(k.b, arith::MulIOp::create(k.b, block, length), size);
      Value to = arith::MinUIOp::create(k.b, k.add(from, length), size);
      Value left = arith::SubIOp::create(k.b, to, from);
      Value whole = arith::SubIOp::create(k.b, left, arith::RemUIOp::create(k.b, left, k.index(2 * width)));
      Value middle = k.add(from, whole);
      auto square = [&](Value at, Value sum, int64_t lanes) -> Value {
        Value x = toF64(k, k.load(buffer, at, storage, lanes, 1));
        return arith::AddFOp::create(k.b, sum, arith::MulFOp::create(k.b, x, x));
      };
      Value zero = k.constant(VectorType::get({width}, f64), 0.0), one = k.constant(VectorType::get({1}, f64), 0.0);
      SmallVector<Value> sums =
          k.loop(from, middle, 2 * width, {zero, zero}, [&](Value i, ValueRange carried) -> SmallVector<Value> {
            return {square(i, carried[0], width), square(k.add(i, k.index(width)), carried[1], width)};
          });
      Value tail = k.loop(middle, to, 1, one, [&](Value i, ValueRange carried) -> SmallVector<Value> {
        return {square(i, carried[0], 1)};
      })[0];
      Value total = k.horizontal(arith::AddFOp::create(k.b, sums[0], sums[1]), RowReduction::Sum);
      total = arith::AddFOp::create(k.b, total, k.horizontal(tail, RowReduction::Sum));
      k.store(total, k.argument(partial), block, f64);
    });
    k.launch(kSquareBlocks, 1);
  }
  std::unique_ptr<KernelBuilder> kernel = emitter.kernel();
  KernelBuilder &k = *kernel;
  Type f64 = k.b.getF64Type();
  k.indices([&](Value) {
    Value total = k.loop(k.index(0), k.index(kSquareBlocks), 1, k.constant(f64, 0.0),
                         [&](Value i, ValueRange carried) -> SmallVector<Value> {
                           return {arith::AddFOp::create(k.b, carried[0], k.load(k.argument(partial), i, f64))};
                         })[0];
    k.store(total, k.buffer(views.of(op.getResult()).root), k.index(0), f64);
  });
  k.launch(1, 1);
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

bool lower::isSpecialKernel(Operation *op) {
  return (isMatmul(op) && !isLibraryCall(op)) || isRankKernel(op) || isRing(op) ||
         isa<tfm::ConcatOp, tfm::CrossEntropyOp, tfm::PadOp, tfm::ReduceOp, tfm::RopeOp, tfm::ScatterAddOp,
             tfm::ScatterNdOp, tfm::SoftmaxOp, tfm::SumOfSquaresOp>(op);
}

SmallVector<std::pair<Type, int64_t>> lower::specialScratch(Operation *op, Target target) {
  if (isRing(op))
    return ringScratch(op);
  if (isa<tfm::SumOfSquaresOp>(op))
    return {{Float64Type::get(op->getContext()), target == Target::Host ? kSquareBlocks : kGpuSquareBlocks}};
  if (auto scatter = dyn_cast<tfm::ScatterAddOp>(op); scatter && isNarrowFloat(elementTypeOf(scatter.getResult())))
    return {{Float32Type::get(op->getContext()), product(shapeOf(scatter.getResult()))}};
  return {};
}

void lower::emitSpecialKernel(BodyEmitter &emitter, const Views &views, Operation *op) {
  if (isMatmul(op))
    return emitGenericMatmul(emitter, views, op);
  if (isRankKernel(op))
    return emitRankKernel(emitter, views, op);
  if (isRing(op))
    return emitRing(emitter, views, op);
  bool gpu = emitter.target == Target::Cuda;
  TypeSwitch<Operation *>(op)
      .Case([&](tfm::ConcatOp concat) { emitConcat(emitter, views, concat); })
      .Case([&](tfm::CrossEntropyOp loss) {
        gpu ? emitGpuCrossEntropy(emitter, views, loss) : emitCrossEntropy(emitter, views, loss);
      })
      .Case([&](tfm::PadOp pad) { emitPad(emitter, views, pad); })
      .Case([&](tfm::ReduceOp reduce) { emitReduce(emitter, views, reduce); })
      .Case([&](tfm::RopeOp rope) { gpu ? emitGpuRope(emitter, views, rope) : emitRope(emitter, views, rope); })
      .Case([&](tfm::ScatterAddOp scatter) { emitScatterAdd(emitter, views, scatter); })
      .Case([&](tfm::ScatterNdOp scatter) { emitScatterNd(emitter, views, scatter); })
      .Case([&](tfm::SoftmaxOp softmax) { emitSoftmax(emitter, views, softmax); })
      .Case([&](tfm::SumOfSquaresOp sum) {
        gpu ? emitGpuSumOfSquares(emitter, views, sum) : emitSumOfSquares(emitter, views, sum);
      });
}
