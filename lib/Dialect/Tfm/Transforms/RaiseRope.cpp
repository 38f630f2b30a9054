//===- RaiseRope.cpp - rotary position embedding --------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Channels.h"
#include "RopeFrequencies.h"
#include "SampleSizes.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "drover/Interpreter/Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <cmath>

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMRAISEROPE
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {
/// A value whose channels are those of `source` from `offset` on, the first `rotary` of them rotated.
struct Rotation {
  Value source;
  int64_t offset = 0, rotary = 0;
  bool interleaved = false, inverse = false;
  std::vector<Term> cosines, sines; // by rotated channel; scale of a sine made positive

  int64_t frequencyOf(int64_t channel) const { return interleaved ? channel / 2 : channel % (rotary / 2); }
};

std::optional<Rotation> matchRotation(Value value) {
  std::optional<std::vector<LinearForm>> forms = channelsOf(value);
  if (!forms || forms->size() < 2 || forms->front().size() != 2)
    return std::nullopt;
  Rotation rotation;
  rotation.source = forms->front().front().source;
  rotation.offset = INT64_MAX;
  for (const LinearForm &form : *forms) {
    for (const Term &term : form) {
      if (term.source != rotation.source)
        return std::nullopt;
      rotation.offset = std::min(rotation.offset, term.channel);
    }
    if (form.size() == 2 && rotation.rotary >= 0)
      ++rotation.rotary;
  }
  int64_t rotary = rotation.rotary, size = forms->size();
  if (rotation.source == value || rotary % 2 || isTable(rotation.source))
    return std::nullopt;
  std::vector<int64_t> partner(rotary);
  std::vector<double> sign(rotary);
  for (int64_t c = 0; c < size; ++c) {
    LinearForm &form = (*forms)[c];
    if (c >= rotary) { // passed through
      if (form.size() != 1 || form[0].table || form[0].scale != 1 || form[0].channel != rotation.offset + c)
        return std::nullopt;
      continue;
    }
    if (form.size() != 2 || !form[0].table || !form[1].table)
      return std::nullopt;
    if (form[1].channel == rotation.offset + c)
      std::swap(form[0], form[1]);
    if (form[0].channel != rotation.offset + c)
      return std::nullopt;
    partner[c] = form[1].channel - rotation.offset;
    sign[c] = form[1].scale < 0 ? -1 : 1;
    form[1].scale = std::abs(form[1].scale);
    rotation.cosines.push_back(form[0]);
    rotation.sines.push_back(form[1]);
  }
  rotation.interleaved = rotary > 2 && partner[0] == 1;
  rotation.inverse = sign[0] > 0;
  for (int64_t c = 0; c < rotary; ++c) {
    bool first = rotation.interleaved ? c % 2 == 0 : c < rotary / 2;
    int64_t distance = rotation.interleaved ? 1 : rotary / 2;
    if (partner[c] != (first ? c + distance : c - distance) || sign[c] != (first != rotation.inverse ? -1 : 1))
      return std::nullopt;
  }
  return rotation;
}

/// The integer values that a table reads, below views and casts, and the inputs that it depends on.
void collectPositions(Value table, llvm::SetVector<Value> &integers, llvm::SetVector<Value> &inputs) {
  SmallVector<std::pair<Value, bool>> worklist{{table, false}};
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    auto [value, below] = worklist.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    auto type = cast<RankedTensorType>(value.getType());
    if (!below && type.getElementType().isInteger() && type.getRank() > 0 && !splatValue(value)) {
      below = true;
      Value positions = value;
      while (true) {
        if (View view = View::trace(positions, /*broadcasts=*/true); view.root != positions && !view.dims.empty()) {
          positions = view.root;
          continue;
        }
        Operation *op = positions.getDefiningOp();
        if (!op || !isa<arith::ExtSIOp, arith::TruncIOp>(op))
          break;
        positions = op->getOperand(0);
      }
      integers.insert(positions);
    }
    if (isa<BlockArgument>(value))
      inputs.insert(value);
    if (Operation *op = value.getDefiningOp())
      for (Value operand : op->getOperands())
        worklist.push_back({operand, below});
  }
}

/// What the tables of a rotation compute.
struct Angles {
  SmallVector<double> frequencies;
  double magnitude = 1;
  unsigned sequenceDim = 0;
  Value positions; // null: they count up from 0
};

/// Evaluates the tables of rotations and explains them.
class TableReader {
public:
  std::optional<Angles> read(const Rotation &rotation, Value rotated);

private:
  std::optional<Angles> readAnew(const Rotation &rotation, Value rotated, ArrayRef<Size> shape);
  bool readAt(const Rotation &rotation, ArrayRef<Size> shape, ArrayRef<int64_t> symbols, Angles &angles, bool first);

  /// Layers share their tables.
  struct Known {
    Rotation rotation;
    Sizes shape;
    std::optional<Angles> angles;
  };
  std::vector<Known> known;
};

bool sameTables(const Rotation &a, const Rotation &b) {
  auto same = [](const std::vector<Term> &x, const std::vector<Term> &y) {
    return x.size() == y.size() && llvm::all_of(llvm::zip(x, y), [](auto pair) {
             auto &[s, t] = pair;
             return s.table == t.table && s.tableChannel == t.tableChannel && s.scale == t.scale;
           });
  };
  return a.interleaved == b.interleaved && same(a.cosines, b.cosines) && same(a.sines, b.sines);
}

/// The length of a row of positions: its last size that is not 1.
int64_t rowLength(ArrayRef<int64_t> shape) {
  for (int64_t size : llvm::reverse(shape))
    if (size != 1)
      return size;
  return 1;
}

std::optional<Angles> TableReader::read(const Rotation &rotation, Value rotated) {
  std::optional<Sizes> shape = symbolicSizes(rotated);
  if (!shape)
    return std::nullopt;
  for (const Known &entry : known)
    if (entry.shape == *shape && sameTables(entry.rotation, rotation))
      return entry.angles;
  known.push_back({rotation, *shape, readAnew(rotation, rotated, *shape)});
  return known.back().angles;
}

std::optional<Angles> TableReader::readAnew(const Rotation &rotation, Value rotated, ArrayRef<Size> shape) {
  llvm::SetVector<Value> tables, integers, inputs;
  for (const auto *terms : {&rotation.cosines, &rotation.sines})
    for (const Term &term : *terms)
      tables.insert(term.table);
  for (Value table : tables)
    collectPositions(table, integers, inputs);
  // What positions may be, the simplest first: they count up, or are an input, or what the tables read.
  SmallVector<Value> candidates;
  if (inputs.empty())
    candidates.push_back(Value());
  if (inputs.size() == 1)
    candidates.push_back(inputs.front());
  if (integers.size() == 1 && !inputs.contains(integers.front()))
    candidates.push_back(integers.front());
  for (Value positions : candidates) {
    Angles angles;
    angles.positions = positions;
    bool first = true, explained = true;
    for (const SmallVector<int64_t> &symbols : sampleSizes(rotated.getDefiningOp())) {
      explained = readAt(rotation, shape, symbols, angles, first);
      first = false;
      if (!explained)
        break;
    }
    if (explained)
      return angles;
  }
  return std::nullopt;
}

bool TableReader::readAt(const Rotation &rotation, ArrayRef<Size> shape, ArrayRef<int64_t> symbols, Angles &angles,
                         bool first) {
  InterpreterOptions options;
  options.symbols.assign(symbols.begin(), symbols.end());
  Interpreter interpreter(options);
  SmallVector<int64_t> leading; // concrete sizes but the last
  for (const Size &size : shape.drop_back())
    leading.push_back(size.evaluate(symbols));
  int64_t rows = 1;
  for (int64_t size : leading)
    rows *= size;

  // Positions that are data get values of our own: a permutation of 0 .. S-1 in every row.
  Tensor given;
  if (angles.positions) {
    std::optional<Sizes> sizes = symbolicSizes(angles.positions);
    if (!sizes || sizes->empty() || !getElementTypeOrSelf(angles.positions).isInteger())
      return false;
    SmallVector<int64_t> concrete;
    for (const Size &size : *sizes)
      concrete.push_back(size.evaluate(symbols));
    FailureOr<ElementKind> kind = elementKind(getElementTypeOrSelf(angles.positions));
    if (failed(kind))
      return false;
    given = Tensor(*kind, concrete);
    int64_t length = rowLength(concrete);
    for (int64_t i = 0; i < given.size(); ++i)
      given.ints[i] = (i / length + length - 1 - i % length) % length;
    interpreter.bind(angles.positions, given);
  }

  llvm::DenseMap<Value, TensorRef> values;
  for (const auto *terms : {&rotation.cosines, &rotation.sines})
    for (const Term &term : *terms) {
      if (values.count(term.table))
        continue;
      FailureOr<TensorRef> tensor = interpreter.evaluate(term.table);
      if (failed(tensor))
        return false;
      values[term.table] = *tensor;
    }
  auto at = [&](const Term &term, int64_t row) {
    const Tensor &tensor = *values[term.table];
    return term.scale * tensor.asDouble(row * (tensor.size() / rows) + term.tableChannel);
  };

  // The sequence is the one dimension, beside the batch's, along which the sines change.
  auto indexAlong = [&](int64_t row, unsigned dim) {
    for (unsigned d = leading.size(); d-- > dim + 1;)
      row /= leading[d];
    return row % leading[dim];
  };
  if (first) {
    llvm::SmallDenseSet<unsigned> varying;
    for (unsigned dim = 1; dim < leading.size(); ++dim) {
      int64_t stride = 1;
      for (unsigned d = dim + 1; d < leading.size(); ++d)
        stride *= leading[d];
      for (int64_t row = 0; row + stride < rows; ++row)
        if (indexAlong(row, dim) + 1 < leading[dim] &&
            at(rotation.sines[0], row) != at(rotation.sines[0], row + stride))
          varying.insert(dim);
    }
    if (varying.size() != 1)
      return false;
    angles.sequenceDim = *varying.begin();
  }
  int64_t length = leading[angles.sequenceDim];
  if (angles.positions && (rowLength(given.shape) != length || given.size() / length > leading[0]))
    return false;
  auto positionOf = [&](int64_t row) -> int64_t {
    int64_t s = indexAlong(row, angles.sequenceDim);
    if (!angles.positions)
      return s;
    return given.ints[(given.size() > length ? indexAlong(row, 0) * length : 0) + s];
  };
  if (first) {
    angles.frequencies.assign(rotation.rotary / 2, 0);
    for (int64_t row = 0; row < rows; ++row) {
      if (positionOf(row) != 1)
        continue;
      for (int64_t c = 0; c < rotation.rotary; ++c) {
        double cosine = at(rotation.cosines[c], row), sine = at(rotation.sines[c], row);
        angles.frequencies[rotation.frequencyOf(c)] = std::atan2(sine, cosine);
        angles.magnitude = std::hypot(sine, cosine);
      }
      break;
    }
    if (std::abs(angles.magnitude - 1) < 2e-6)
      angles.magnitude = 1;
    if (!(angles.magnitude > 0) || llvm::any_of(angles.frequencies, [](double f) { return f == 0; }))
      return false;
  }
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < rotation.rotary; ++c) {
      double angle = positionOf(row) * angles.frequencies[rotation.frequencyOf(c)];
      // f32 rounds the angle, and the frequency was read off one rounded pair.
      double tolerance = 4e-6 + 1e-6 * std::abs(angle);
      if (std::abs(at(rotation.cosines[c], row) / angles.magnitude - std::cos(angle)) > tolerance ||
          std::abs(at(rotation.sines[c], row) / angles.magnitude - std::sin(angle)) > tolerance)
        return false;
    }
  return true;
}

/// The positions as [B, S] or [1, S].
Value positionsOperand(OpBuilder &builder, Location loc, const Angles &angles, ArrayRef<Size> shape) {
  Size length = shape[angles.sequenceDim];
  if (!angles.positions) {
    Sizes sizes{Size(1), length};
    Operation *scope = builder.getInsertionBlock()->getParentOp();
    return IotaOp::create(builder, loc, tensorType(sizes, builder.getI64Type()), 1, 0, 1, shapeMap(sizes, scope));
  }
  Size total;
  Sizes own = *symbolicSizes(angles.positions);
  for (const Size &size : own)
    total = total * size;
  std::optional<Size> batch = total.dividedBy(length);
  if (!batch || (!batch->isOne() && *batch != shape[0]))
    return {};
  return buildReshape(builder, loc, angles.positions, {*batch, length});
}

/// Replaces `value` by tfm.rope on [B, S, heads * size], brought there and back.
bool raise(OpBuilder &builder, Operation *op, const Rotation &rotation, const Angles &angles) {
  Value value = op->getResult(0);
  Location loc = op->getLoc();
  Sizes shape = *symbolicSizes(value);
  unsigned rank = shape.size();
  std::optional<int64_t> head = shape.back().constant();
  if (rank < 3 || rank > 4 || !head)
    return false;
  builder.setInsertionPoint(op);
  Value positions = positionsOperand(builder, loc, angles, shape);
  if (!positions)
    return false;

  // The rotated channels may be a part of the source's.
  Sizes sourceShape(ArrayRef(shape).drop_back());
  std::optional<Sizes> sourceSizes = symbolicSizes(rotation.source);
  if (!sourceSizes)
    return false;
  Size channels;
  for (const Size &size : ArrayRef(*sourceSizes).drop_front(rank - 1))
    channels = channels * size;
  sourceShape.push_back(channels);
  Value input = buildReshape(builder, loc, rotation.source, sourceShape);
  if (rotation.offset != 0 || channels != shape.back()) {
    SmallVector<int64_t> offsets(rank, 0), strides(rank, 1);
    offsets.back() = rotation.offset;
    input =
        SliceOp::create(builder, loc, value.getType(), input, offsets, strides, AffineMapAttr(), shapeMap(shape, op));
  }
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (rank == 4 && angles.sequenceDim == 2)
    std::swap(permutation[1], permutation[2]);
  Sizes hidden{shape[0], shape[angles.sequenceDim], shape.back()};
  Sizes split(shape);
  for (unsigned i = 0; i < rank; ++i)
    split[i] = shape[permutation[i]];
  if (rank == 4)
    hidden[2] = split[2] * split[3];
  if (!hidden[2].constant())
    return false;
  input = buildTranspose(builder, loc, input, permutation);
  input = buildReshape(builder, loc, input, hidden);

  RopeFormula formula = fitRopeFormula(angles.frequencies, op->getContext());
  auto rope = RopeOp::create(
      builder, loc, input.getType(), input, positions, builder.getI64IntegerAttr(*head),
      builder.getI64IntegerAttr(rotation.rotary), builder.getF64FloatAttr(formula.theta), formula.scaling,
      formula.inverse.empty() ? DenseF32ArrayAttr() : builder.getDenseF32ArrayAttr(formula.inverse),
      builder.getF64FloatAttr(angles.magnitude), rotation.interleaved ? builder.getUnitAttr() : UnitAttr(),
      rotation.inverse ? builder.getUnitAttr() : UnitAttr());
  Value result = buildReshape(builder, loc, rope.getResult(), split);
  result = buildTranspose(builder, loc, result, permutation);
  value.replaceAllUsesWith(result);
  return true;
}

struct RaiseRope : impl::TfmRaiseRopeBase<RaiseRope> {
  using TfmRaiseRopeBase::TfmRaiseRopeBase;

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    // Outermost first: a partial rotation is a concatenation around a full one, which is dead once that is raised.
    llvm::DenseSet<Operation *> dead;
    OpBuilder builder(&getContext());
    TableReader reader;
    for (Operation *op : llvm::reverse(ops)) {
      if (op->getNumResults() == 0)
        continue;
      if (isPure(op) && llvm::all_of(op->getUsers(), [&](Operation *user) { return dead.contains(user); })) {
        dead.insert(op);
        continue;
      }
      if (!isa<arith::AddFOp, arith::SubFOp, ConcatOp>(op) || !isa<RankedTensorType>(op->getResult(0).getType()))
        continue;
      std::optional<Rotation> rotation = matchRotation(op->getResult(0));
      if (!rotation)
        continue;
      std::optional<Angles> angles = reader.read(*rotation, op->getResult(0));
      if (angles && raise(builder, op, *rotation, *angles))
        dead.insert(op);
    }
  }
};
} // namespace
} // namespace drover::tfm
