//===- RankInterpreter.cpp - all ranks of a grid in lock-step ---*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Interpreter/RankInterpreter.h"
#include "Kernels.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace drover;
using namespace drover::tfm;

namespace {
using Coordinates = std::array<int64_t, kNumAxes>;

/// Visits every index of a shape in row-major order.
void forEachIndex(ArrayRef<int64_t> shape, llvm::function_ref<void(int64_t, ArrayRef<int64_t>)> visit) {
  SmallVector<int64_t> index(shape.size(), 0);
  int64_t count = countElements(shape);
  for (int64_t element = 0; element < count; ++element) {
    visit(element, index);
    for (size_t dim = shape.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
  }
}

int64_t flatten(ArrayRef<int64_t> shape, ArrayRef<int64_t> index) {
  int64_t result = 0;
  for (auto [size, value] : llvm::zip(shape, index))
    result = result * size + value;
  return result;
}

void copyElement(const Tensor &from, int64_t source, Tensor &to, int64_t target) {
  if (isFloat(from.kind))
    to.floats[target] = from.floats[source];
  else
    to.ints[target] = from.ints[source];
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// A collective over some axes of the grid, in the words of a tensor seen from one dimension.
struct Collective {
  SmallVector<Axis> axes;
  int64_t dim = 0;
  bool twoChunk = false;
};

/// A rank's place in its group, and the group.
struct Group {
  int64_t place = 0;
  SmallVector<int64_t> members;
};

Group groupOf(const Grid &grid, int64_t rank, ArrayRef<Axis> axes) {
  Group group;
  Coordinates own = grid.coordinates(rank);
  auto at = [](const Coordinates &coordinates, Axis axis) { return coordinates[static_cast<unsigned>(axis)]; };
  group.members.resize(grid.product(axes));
  for (int64_t other = 0; other < grid.numRanks(); ++other) {
    Coordinates coordinates = grid.coordinates(other);
    int64_t place = 0;
    bool isMember = true;
    for (Axis axis : kAxes) {
      if (!llvm::is_contained(axes, axis))
        isMember &= at(coordinates, axis) == at(own, axis);
    }
    for (Axis axis : axes)
      place = place * grid.size(axis) + at(coordinates, axis);
    if (!isMember)
      continue;
    group.members[place] = other;
    if (other == rank)
      group.place = place;
  }
  return group;
}

/// Where element `index` of member `place`'s part of a dimension is in the whole; `size` is the part's.
int64_t placeInWhole(int64_t index, int64_t size, int64_t place, int64_t members, bool twoChunk) {
  if (!twoChunk)
    return place * size + index;
  int64_t chunk = size / 2;
  return index < chunk ? place * chunk + index : (2 * members - 1 - place) * chunk + index - chunk;
}

Tensor gather(ArrayRef<const Tensor *> parts, const Collective &collective) {
  SmallVector<int64_t> shape(parts[0]->shape);
  int64_t size = shape[collective.dim], members = parts.size();
  shape[collective.dim] *= members;
  Tensor whole(parts[0]->kind, shape);
  for (auto [place, part] : llvm::enumerate(parts))
    forEachIndex(part->shape, [&, place = place, part = part](int64_t element, ArrayRef<int64_t> index) {
      SmallVector<int64_t> target(index);
      target[collective.dim] = placeInWhole(index[collective.dim], size, place, members, collective.twoChunk);
      copyElement(*part, element, whole, flatten(shape, target));
    });
  return whole;
}

Tensor slice(const Tensor &whole, const Collective &collective, int64_t place, int64_t members) {
  SmallVector<int64_t> shape(whole.shape);
  shape[collective.dim] /= members;
  Tensor part(whole.kind, shape);
  forEachIndex(shape, [&](int64_t element, ArrayRef<int64_t> index) {
    SmallVector<int64_t> source(index);
    source[collective.dim] =
        placeInWhole(index[collective.dim], shape[collective.dim], place, members, collective.twoChunk);
    copyElement(whole, flatten(whole.shape, source), part, element);
  });
  return part;
}

/// In the order of the members, 0 first.
Tensor reduce(ArrayRef<const Tensor *> parts, bool isMax) {
  Tensor result = *parts[0];
  for (const Tensor *part : parts.drop_front())
    for (int64_t i = 0; i < result.size(); ++i) {
      if (isFloat(result.kind))
        result.floats[i] = isMax ? std::max(result.floats[i], part->floats[i]) : result.floats[i] + part->floats[i];
      else
        result.ints[i] = isMax ? std::max(result.ints[i], part->ints[i]) : result.ints[i] + part->ints[i];
    }
  return result;
}

//===----------------------------------------------------------------------===//
// Lock-step
//===----------------------------------------------------------------------===//

class RankInterpreter {
public:
  RankInterpreter(const Grid &grid, const InterpreterOptions &options, std::string &reason)
      : grid(grid), options(options), reason(reason) {}

  LogicalResult run(func::FuncOp function, ArrayRef<std::vector<TensorRef>> arguments,
                    std::vector<std::vector<TensorRef>> &results) {
    std::vector<Interpreter> frames;
    for (int64_t rank = 0; rank < grid.numRanks(); ++rank) {
      InterpreterOptions own = options;
      for (Axis axis : kAxes)
        own.coordinates[name(axis)] = grid.coordinates(rank)[static_cast<unsigned>(axis)];
      frames.emplace_back(own);
      for (auto [argument, tensor] : llvm::zip(function.getArguments(), arguments[rank]))
        frames.back().bind(argument, *tensor);
    }
    for (Operation &op : function.front().without_terminator())
      if (failed(step(&op, frames)))
        return failure();
    results.assign(grid.numRanks(), {});
    for (Value value : function.front().getTerminator()->getOperands())
      for (auto [rank, frame] : llvm::enumerate(frames)) {
        FailureOr<TensorRef> tensor = read(frame, value);
        if (failed(tensor))
          return failure();
        results[rank].push_back(*tensor);
      }
    return success();
  }

private:
  FailureOr<TensorRef> read(Interpreter &frame, Value value) {
    FailureOr<TensorRef> tensor = frame.evaluate(value);
    if (failed(tensor))
      reason = frame.getReason().str();
    return tensor;
  }

  LogicalResult step(Operation *op, std::vector<Interpreter> &frames) {
    if (auto call = dyn_cast<func::CallOp>(op))
      return stepCall(call, frames);
    if (isa<shard::AllGatherOp, shard::AllReduceOp, shard::AllSliceOp, shard::ReduceScatterOp>(op))
      return stepCollective(op, frames);
    if (auto ring = dyn_cast<GatherLinearOp>(op))
      return stepGatherLinear(ring, frames);
    if (auto ring = dyn_cast<LinearScatterOp>(op))
      return stepLinearScatter(ring, frames);
    for (Interpreter &frame : frames)
      for (Value result : op->getResults())
        if (failed(read(frame, result)))
          return failure();
    return success();
  }

  LogicalResult stepCall(func::CallOp call, std::vector<Interpreter> &frames) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    if (!callee || callee.isExternal()) {
      reason = ("no function @" + call.getCallee()).str();
      return failure();
    }
    std::vector<std::vector<TensorRef>> arguments(frames.size()), results;
    for (auto [frame, own] : llvm::zip(frames, arguments))
      for (Value operand : call.getOperands()) {
        FailureOr<TensorRef> tensor = read(frame, operand);
        if (failed(tensor))
          return failure();
        own.push_back(*tensor);
      }
    if (failed(run(callee, arguments, results)))
      return failure();
    for (auto [frame, own] : llvm::zip(frames, results))
      for (auto [value, tensor] : llvm::zip(call.getResults(), own))
        frame.bind(value, *tensor);
    return success();
  }

  template <typename OpT> Collective describe(OpT op, int64_t dim) {
    Collective collective;
    SmallVector<Axis, 4> axes = grid.axes();
    for (int16_t index : op.getGridAxes())
      collective.axes.push_back(axes[index]);
    collective.dim = dim;
    collective.twoChunk = op->hasAttr(TfmDialect::kTwoChunkAttr);
    return collective;
  }

  LogicalResult stepCollective(Operation *op, std::vector<Interpreter> &frames) {
    std::vector<TensorRef> operands;
    for (Interpreter &frame : frames) {
      FailureOr<TensorRef> tensor = read(frame, op->getOperand(0));
      if (failed(tensor))
        return failure();
      operands.push_back(*tensor);
    }
    Collective collective;
    bool isMax = false;
    if (auto gatherOp = dyn_cast<shard::AllGatherOp>(op))
      collective = describe(gatherOp, gatherOp.getGatherAxis().getSExtValue());
    else if (auto sliceOp = dyn_cast<shard::AllSliceOp>(op))
      collective = describe(sliceOp, sliceOp.getSliceAxis().getSExtValue());
    else if (auto scatter = dyn_cast<shard::ReduceScatterOp>(op)) {
      collective = describe(scatter, scatter.getScatterAxis().getSExtValue());
      isMax = scatter.getReduction() == shard::ReductionKind::Max;
    } else {
      collective = describe(cast<shard::AllReduceOp>(op), 0);
      isMax = cast<shard::AllReduceOp>(op).getReduction() == shard::ReductionKind::Max;
    }
    for (auto [rank, frame] : llvm::enumerate(frames)) {
      Group group = groupOf(grid, rank, collective.axes);
      SmallVector<const Tensor *> parts;
      for (int64_t member : group.members)
        parts.push_back(operands[member].get());
      Tensor result;
      if (isa<shard::AllGatherOp>(op))
        result = gather(parts, collective);
      else if (isa<shard::AllSliceOp>(op))
        result = slice(*operands[rank], collective, group.place, parts.size());
      else
        result = reduce(parts, isMax);
      if (isa<shard::ReduceScatterOp>(op))
        result = slice(result, collective, group.place, parts.size());
      if (failed(bindResult(frame, op->getResult(0), std::move(result))))
        return failure();
    }
    return success();
  }

  void round(Tensor &tensor) {
    if (isFloat(tensor.kind) && !options.exact && tensor.kind != ElementKind::F64)
      for (double &element : tensor.floats)
        element = roundTo(element, tensor.kind);
  }

  LogicalResult bindResult(Interpreter &frame, Value value, Tensor result) {
    round(result);
    if (ArrayRef<int64_t>(result.shape) != cast<RankedTensorType>(value.getType()).getShape()) {
      reason =
          ("'" + value.getDefiningOp()->getName().getStringRef() + "': result has another shape than its type").str();
      return failure();
    }
    frame.bind(value, std::move(result));
    return success();
  }

  /// Every rank's tensors of some values, by rank.
  LogicalResult readAll(ValueRange values, std::vector<Interpreter> &frames,
                        std::vector<std::vector<TensorRef>> &tensors) {
    for (Interpreter &frame : frames) {
      tensors.emplace_back();
      for (Value value : values) {
        FailureOr<TensorRef> tensor = read(frame, value);
        if (failed(tensor))
          return failure();
        tensors.back().push_back(*tensor);
      }
    }
    return success();
  }

  template <typename OpT> Collective describeRing(OpT op) {
    Collective collective;
    for (StringAttr axis : op.getAxes().template getAsRange<StringAttr>())
      collective.axes.push_back(*parseAxis(axis));
    collective.dim = op.getDim();
    return collective;
  }

  LogicalResult stepGatherLinear(GatherLinearOp op, std::vector<Interpreter> &frames) {
    std::vector<std::vector<TensorRef>> operands;
    if (failed(readAll(op->getOperands(), frames, operands)))
      return failure();
    Collective collective = describeRing(op);
    for (auto [rank, frame] : llvm::enumerate(frames)) {
      SmallVector<const Tensor *> parts;
      for (int64_t member : groupOf(grid, rank, collective.axes).members)
        parts.push_back(operands[member][0].get());
      Tensor gathered = gather(parts, collective);
      for (auto [index, inOut] : llvm::enumerate(op.getInOut())) {
        Value value = op.getResults()[index];
        Tensor result =
            interpreter::multiplyRows(gathered, *operands[rank][index + 1], inOut, *elementKind(value.getType()));
        if (failed(bindResult(frame, value, std::move(result))))
          return failure();
      }
      if (Value value = op.getGathered(); value && failed(bindResult(frame, value, std::move(gathered))))
        return failure();
    }
    return success();
  }

  /// A rank's sum of products, not rounded.
  Tensor sumOfLinears(LinearScatterOp op, ArrayRef<TensorRef> operands) {
    size_t count = op.getInputs().size();
    Tensor sum;
    for (size_t i = 0; i < count; ++i) {
      Tensor term = interpreter::multiplyRows(*operands[i], *operands[count + i], op.getInOut()[i],
                                              *elementKind(op.getResult().getType()));
      for (size_t element = 0; i > 0 && element < term.floats.size(); ++element)
        term.floats[element] += sum.floats[element];
      sum = std::move(term);
    }
    return sum;
  }

  /// A part's sum begins behind the rank that keeps it, and is rounded by each.
  LogicalResult stepLinearScatter(LinearScatterOp op, std::vector<Interpreter> &frames) {
    std::vector<std::vector<TensorRef>> operands;
    if (failed(readAll(op->getOperands(), frames, operands)))
      return failure();
    Collective collective = describeRing(op);
    std::vector<Tensor> sums;
    for (const std::vector<TensorRef> &own : operands)
      sums.push_back(sumOfLinears(op, own));
    for (auto [rank, frame] : llvm::enumerate(frames)) {
      Group group = groupOf(grid, rank, collective.axes);
      int64_t members = group.members.size();
      Tensor part;
      for (int64_t step = 1; step <= members; ++step) {
        const Tensor &whole = sums[group.members[(group.place + step) % members]];
        Tensor share = slice(whole, collective, group.place, members);
        for (size_t element = 0; step > 1 && element < share.floats.size(); ++element)
          share.floats[element] += part.floats[element];
        part = std::move(share);
        round(part);
      }
      if (failed(bindResult(frame, op.getResult(), std::move(part))))
        return failure();
    }
    return success();
  }

  const Grid &grid;
  const InterpreterOptions &options;
  std::string &reason;
};
} // namespace

LogicalResult drover::interpretRanks(func::FuncOp function, const Grid &grid, ArrayRef<std::vector<Tensor>> arguments,
                                     std::vector<std::vector<Tensor>> &results, const InterpreterOptions &options,
                                     std::string *reason) {
  std::string ignored;
  std::vector<std::vector<TensorRef>> own, returned;
  for (const std::vector<Tensor> &list : arguments) {
    own.emplace_back();
    for (const Tensor &tensor : list)
      own.back().push_back(std::make_shared<const Tensor>(tensor));
  }
  if (failed(RankInterpreter(grid, options, reason ? *reason : ignored).run(function, own, returned)))
    return failure();
  results.clear();
  for (const std::vector<TensorRef> &list : returned) {
    results.emplace_back();
    for (const TensorRef &tensor : list)
      results.back().push_back(*tensor);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// Global index of each element of each dimension of a rank's part.
static SmallVector<SmallVector<int64_t>> partIndices(RankedTensorType type, const Grid &grid, int64_t rank) {
  Distribution distribution = Distribution::of(type);
  SmallVector<SmallVector<int64_t>> indices;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    indices.push_back(globalIndices(distribution, dim, size, grid, grid.coordinates(rank)));
  return indices;
}

/// Calls `visit` with each element of a part and where it is in the whole, -1 for padding.
static void forEachElement(RankedTensorType type, ArrayRef<int64_t> globalShape, const Grid &grid, int64_t rank,
                           llvm::function_ref<void(int64_t, int64_t)> visit) {
  SmallVector<SmallVector<int64_t>> indices = partIndices(type, grid, rank);
  forEachIndex(type.getShape(), [&](int64_t element, ArrayRef<int64_t> index) {
    SmallVector<int64_t> global;
    for (auto [dim, own] : llvm::enumerate(index))
      global.push_back(indices[dim][own]);
    visit(element, llvm::is_contained(global, -1) ? -1 : flatten(globalShape, global));
  });
}

Tensor drover::takePart(const Tensor &global, RankedTensorType type, const Grid &grid, int64_t rank) {
  Tensor part(global.kind, type.getShape());
  forEachElement(type, global.shape, grid, rank, [&](int64_t element, int64_t place) {
    if (place >= 0)
      copyElement(global, place, part, element);
  });
  return part;
}

FailureOr<Tensor> drover::putTogether(ArrayRef<Tensor> parts, RankedTensorType type, const Grid &grid,
                                      std::string &reason) {
  Distribution distribution = Distribution::of(type);
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    shape.push_back(distribution.globalSize(dim, size, grid));
  Tensor whole(parts[0].kind, shape);
  for (int64_t rank = 0; rank < static_cast<int64_t>(parts.size()); ++rank) {
    const Tensor &part = parts[rank];
    // The first of the ranks that hold the same.
    SmallVector<Axis> replicated;
    for (Axis axis : grid.axes())
      if (distribution[axis] == AxisState())
        replicated.push_back(axis);
    int64_t first = groupOf(grid, rank, replicated).members.front();
    if (part.floats != parts[first].floats || part.ints != parts[first].ints) {
      reason = ("rank " + Twine(rank) + " and rank " + Twine(first) + " differ in what is replicated").str();
      return failure();
    }
    bool isCounted = first == rank, isZero = true;
    forEachElement(type, shape, grid, rank, [&](int64_t element, int64_t place) {
      if (place < 0)
        isZero &= part.asDouble(element) == 0;
      else if (isCounted)
        whole.setDouble(place, whole.asDouble(place) + part.asDouble(element));
    });
    if (!isZero) {
      reason = ("rank " + Twine(rank) + " has padding that is not zero").str();
      return failure();
    }
  }
  return whole;
}
