//===- RaiseMasks.cpp - masks by what they compute ------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "MaskHypothesis.h"
#include "Matchers.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "drover/Interpreter/Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include <cmath>
#include <random>

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMRAISEMASKS
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {
/// Integers that appear in the computation of a value, each with the constants that hold it: a window's
/// width is one of them.
using Integers = llvm::MapVector<int64_t, SmallVector<Value>>;

/// What a mask is computed from.
struct Sources {
  SmallVector<BlockArgument> inputs;
  Integers integers;
  bool evaluable = true;
};

Sources sourcesOf(Value mask) {
  Sources sources;
  walkSources(mask, [&](Value value) {
    Type element = getElementTypeOrSelf(value);
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      sources.inputs.push_back(argument);
      sources.evaluable &= element.isInteger() && !isParameter(value);
    } else if (matchPattern(value, m_Constant()) && !element.isInteger(1)) {
      if (std::optional<double> number = splatValue(value);
          number && *number > 1 && *number < (1 << 24) && *number == std::floor(*number))
        sources.integers[static_cast<int64_t>(*number)].push_back(value);
    }
    return WalkResult::advance();
  });
  llvm::sort(sources.inputs, [](BlockArgument a, BlockArgument b) { return a.getArgNumber() < b.getArgNumber(); });
  return sources;
}

/// Evaluates the mask of an attention at many sizes and inputs.
class Sampler {
public:
  Sampler(AttentionOp op, Sources sources) : op(op), mask(op.getMask()), sources(std::move(sources)) {}

  std::optional<MaskHypothesis> explain();
  ArrayRef<BlockArgument> keyMasks() const { return candidates; }

private:
  enum class Filling { Ones, Random, PaddedLeft, PaddedRight };
  bool sample(ArrayRef<int64_t> symbols, Filling filling, std::vector<MaskSample> &samples,
              ArrayRef<std::pair<Value, int64_t>> replaced = {});
  bool sampleLength(int64_t batch, int64_t length, std::vector<MaskSample> &samples,
                    ArrayRef<std::pair<Value, int64_t>> replaced = {});
  Tensor fillInput(BlockArgument input, ArrayRef<int64_t> symbols, Filling filling);
  std::optional<MaskHypothesis> explainLargeWindow(MaskHypothesis hypothesis);

  /// Beyond this length a window is found by evaluating with smaller ones in its place.
  static constexpr int64_t kLongest = 1100;

  AttentionOp op;
  Value mask;
  Sources sources;
  SmallVector<BlockArgument> candidates;
  std::mt19937 random{2166136261u};
};

Tensor Sampler::fillInput(BlockArgument input, ArrayRef<int64_t> symbols, Filling filling) {
  SmallVector<int64_t> shape;
  Sizes sizes = *symbolicSizes(input);
  for (const Size &size : sizes)
    shape.push_back(size.evaluate(symbols));
  Tensor tensor(*elementKind(getElementTypeOrSelf(input)), shape);
  int64_t length = shape.empty() ? 1 : std::max<int64_t>(shape.back(), 1);
  bool isMask = llvm::is_contained(candidates, input);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    int64_t column = i % length, row = i / length;
    switch (filling) {
    case Filling::Ones:
      tensor.ints[i] = isMask ? 1 : column;
      break;
    case Filling::Random:
      tensor.ints[i] = isMask ? random() % 3 != 0 : random() % length;
      break;
    case Filling::PaddedLeft:
      tensor.ints[i] = isMask ? column >= (row + 1) % length : std::max<int64_t>(column - row - 1, 0);
      break;
    case Filling::PaddedRight:
      tensor.ints[i] = isMask ? column < length - (row + 1) % length : column;
      break;
    }
  }
  return tensor;
}

bool Sampler::sample(ArrayRef<int64_t> symbols, Filling filling, std::vector<MaskSample> &samples,
                     ArrayRef<std::pair<Value, int64_t>> replaced) {
  InterpreterOptions options;
  options.symbols.assign(symbols.begin(), symbols.end());
  options.maxElements = int64_t{1} << 25;
  Interpreter interpreter(options);
  MaskSample result;
  for (BlockArgument input : sources.inputs) {
    Tensor tensor = fillInput(input, symbols, filling);
    if (llvm::is_contained(candidates, input))
      result.keyMasks.push_back(tensor);
    interpreter.bind(input, std::move(tensor));
  }
  for (auto [constant, number] : replaced) {
    auto type = cast<RankedTensorType>(constant.getType());
    Tensor tensor(*elementKind(type.getElementType()), type.getShape());
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.setDouble(i, number);
    interpreter.bind(constant, std::move(tensor));
  }
  FailureOr<TensorRef> value = interpreter.evaluate(mask);
  if (failed(value))
    return false;
  result.mask = **value;
  std::optional<Sizes> query = symbolicSizes(op.getQuery()), key = symbolicSizes(op.getKey());
  result.batch = (*query)[0].evaluate(symbols);
  result.heads = op.getNumHeads();
  result.queries = (*query)[1].evaluate(symbols);
  result.keys = (*key)[1].evaluate(symbols);
  samples.push_back(std::move(result));
  return true;
}

/// Samples one length with every filling of the inputs. Symbols in the batch size get `batch`, the others
/// `length` and what is near it.
bool Sampler::sampleLength(int64_t batch, int64_t length, std::vector<MaskSample> &samples,
                           ArrayRef<std::pair<Value, int64_t>> replaced) {
  unsigned count = numSymbols(op);
  AffineExpr batchExpr = (*symbolicSizes(op.getQuery()))[0].expr(op.getContext());
  AffineExpr lengthExpr = (*symbolicSizes(op.getQuery()))[1].expr(op.getContext());
  SmallVector<int64_t> symbols;
  for (unsigned symbol = 0; symbol < count; ++symbol)
    symbols.push_back(batchExpr.isFunctionOfSymbol(symbol)    ? batch
                      : lengthExpr.isFunctionOfSymbol(symbol) ? length
                                                              : length / 2 + 1);
  SmallVector<Filling> fillings{Filling::Ones};
  if (!sources.inputs.empty()) {
    fillings.push_back(Filling::Random);
    if (length < 200)
      fillings.append({Filling::PaddedLeft, Filling::PaddedRight, Filling::Random});
  }
  return llvm::all_of(fillings, [&](Filling filling) { return sample(symbols, filling, samples, replaced); });
}

std::optional<MaskHypothesis> Sampler::explain() {
  std::optional<Sizes> query = symbolicSizes(op.getQuery()), key = symbolicSizes(op.getKey());
  if (!query || !key)
    return std::nullopt;
  for (BlockArgument input : sources.inputs) {
    std::optional<Sizes> sizes = symbolicSizes(input);
    if (!sizes || failed(elementKind(getElementTypeOrSelf(input))))
      return std::nullopt;
    if (sizes->size() == 2 && ((*sizes)[0] == (*query)[0] || (*sizes)[0].isOne()) && (*sizes)[1] == (*key)[1])
      candidates.push_back(input);
  }
  std::vector<MaskSample> samples;
  if (numSymbols(op) == 0) {
    if (!sampleLength(1, 1, samples))
      return std::nullopt;
    return explainMask(samples, candidates.size());
  }
  static constexpr std::pair<int64_t, int64_t> shapes[] = {{1, 1},  {2, 2},  {1, 3},  {3, 5},  {2, 7},
                                                           {1, 16}, {2, 33}, {1, 64}, {1, 129}};
  for (auto [batch, length] : shapes)
    if (!sampleLength(batch, length, samples))
      return std::nullopt;
  // A window shows at the lengths around its width only.
  int64_t large = 0;
  for (const auto &[number, constants] : sources.integers) {
    if (number > kLongest)
      large = std::max(large, number);
    else if (number > 64)
      for (int64_t length : {number, number + 1, number + 3})
        if (!sampleLength(1, length, samples))
          return std::nullopt;
  }
  std::optional<MaskHypothesis> hypothesis = explainMask(samples, candidates.size());
  return hypothesis && large ? explainLargeWindow(*hypothesis) : hypothesis;
}

/// The samples were all shorter than some integers of the graph. Each in turn is replaced by small
/// numbers: where the mask then is the hypothesis with a window that moves with the number, the window is
/// as wide as the original says; where nothing changes, the number has nothing to do with the mask.
std::optional<MaskHypothesis> Sampler::explainLargeWindow(MaskHypothesis hypothesis) {
  for (const auto &[number, constants] : sources.integers) {
    if (number <= kLongest)
      continue;
    std::optional<int64_t> offset; // of the window from the number
    bool matters = false;
    for (int64_t small : {5, 12, 20}) {
      std::vector<MaskSample> samples;
      SmallVector<std::pair<Value, int64_t>> replaced;
      for (Value constant : constants)
        replaced.push_back({constant, small});
      if (!sampleLength(2, 7, samples, replaced) || !sampleLength(1, 33, samples, replaced))
        return std::nullopt;
      std::optional<MaskHypothesis> found = explainMask(samples, candidates.size());
      if (!found || found->causal != hypothesis.causal || found->keyMask != hypothesis.keyMask)
        return std::nullopt;
      if (found->window == hypothesis.window)
        continue;
      if (!found->window || (offset && *offset != *found->window - small))
        return std::nullopt;
      offset = *found->window - small;
      matters = true;
    }
    if (matters)
      hypothesis.window = number + *offset;
  }
  return hypothesis;
}

struct RaiseMasks : impl::TfmRaiseMasksBase<RaiseMasks> {
  using TfmRaiseMasksBase::TfmRaiseMasksBase;

  struct Known {
    std::optional<MaskHypothesis> hypothesis;
    SmallVector<BlockArgument> keyMasks;
  };
  /// Layers share their masks.
  llvm::DenseMap<Value, Known> known;

  void runOnOperation() override {
    known.clear();
    getOperation().walk([&](AttentionOp op) {
      if (op.getMask())
        raise(op);
    });
  }

  void raise(AttentionOp op) {
    // What the op already says about its mask would have to be combined with what is found.
    if (op.getCausal() != CausalKind::None || op.getWindow() || op.getKeyMask() || op.getAlibiSlopes())
      return;
    auto [entry, isNew] = known.try_emplace(op.getMask());
    if (isNew) {
      Sources sources = sourcesOf(op.getMask());
      if (sources.evaluable) {
        Sampler sampler(op, std::move(sources));
        entry->second.hypothesis = sampler.explain();
        entry->second.keyMasks.assign(sampler.keyMasks().begin(), sampler.keyMasks().end());
      }
    }
    if (!entry->second.hypothesis) {
      ++numKept;
      return;
    }
    const MaskHypothesis &hypothesis = *entry->second.hypothesis;
    ++numRaised;
    op.getMaskMutable().clear();
    CausalKind causal = hypothesis.causal;
    op.setCausal(causal);
    if (hypothesis.window)
      op.setWindow(*hypothesis.window);
    if (hypothesis.keyMask)
      op.getKeyMaskMutable().assign(entry->second.keyMasks[*hypothesis.keyMask]);
    if (!hypothesis.alibiSlopes.empty())
      op.setAlibiSlopes(hypothesis.alibiSlopes);
  }
};
} // namespace
} // namespace drover::tfm
