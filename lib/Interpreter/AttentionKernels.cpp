//===- AttentionKernels.cpp - rope and attention ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Kernels.h"
#include <cmath>

using namespace mlir;
using namespace drover;
using namespace drover::interpreter;

static LogicalResult rope(tfm::RopeOp op, Call &call) {
  const Tensor &input = call.operand(0), &positions = call.operand(1);
  int64_t head = op.getHeadSize(), half = op.getRotaryDim() / 2, sequence = input.shape[1], width = input.shape[2];
  if (width % head || positions.shape[1] != sequence ||
      (positions.shape[0] != 1 && positions.shape[0] != input.shape[0]))
    return call.fail("operands of different sizes");
  SmallVector<float> frequencies = op.getFrequencies();
  double magnitude = op.getMagnitude().convertToDouble();
  if (failed(call.allocate(0, input.shape)))
    return failure();
  call.results[0].floats = input.floats;
  for (int64_t row = 0; row < input.shape[0] * sequence; ++row) {
    float position = positions.ints[row % positions.size()];
    for (int64_t c = 0; c < half; ++c) {
      // Angle, cos and sin in f32, as the reference implementation has them.
      float angle = position * frequencies[c];
      double cosine = static_cast<float>(std::cos(angle) * magnitude);
      double sine = static_cast<float>(std::sin(angle) * magnitude) * (op.getInverse() ? -1.0 : 1.0);
      for (int64_t start = row * width; start < (row + 1) * width; start += head) {
        int64_t first = start + (op.getInterleaved() ? 2 * c : c), second = first + (op.getInterleaved() ? 1 : half);
        double a = input.floats[first], b = input.floats[second];
        call.results[0].floats[first] = a * cosine - b * sine;
        call.results[0].floats[second] = b * cosine + a * sine;
      }
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
/// What forward and backward share: sizes, operands and the scores of one query.
template <typename OpT> class Scores {
public:
  Scores(OpT op, Call &call) : query(call.operand(0)), key(call.operand(1)), value(call.operand(2)) {
    unsigned next = op.getOperation()->getNumOperands() - bool(op.getMask()) - bool(op.getKeyMask()) -
                    bool(op.getDocuments()) - bool(op.getQueryIndex());
    mask = op.getMask() ? &call.operand(next++) : nullptr;
    keyMask = op.getKeyMask() ? &call.operand(next++) : nullptr;
    documents = op.getDocuments() ? &call.operand(next++) : nullptr;
    queryIndex = op.getQueryIndex() ? &call.operand(next++) : nullptr;
    heads = op.getNumHeads();
    kvHeads = op.getNumKvHeads();
    batch = query.shape[0];
    queries = query.shape[1];
    keys = key.shape[1];
    size = query.shape[2] / heads;
    valueSize = value.shape[2] / kvHeads;
    scale = op.getScale().convertToDouble();
    if (op.getSoftcap())
      softcap = op.getSoftcap()->convertToDouble();
    if (op.getWindow())
      window = static_cast<int64_t>(*op.getWindow());
    if (op.getAlibiSlopes())
      slopes.assign(op.getAlibiSlopes()->begin(), op.getAlibiSlopes()->end());
    causal = op.getCausal() != tfm::CausalKind::None;
    shift = op.getCausal() == tfm::CausalKind::BottomRight ? keys - queries : 0;
  }

  LogicalResult check(Call &call) const {
    bool agree = key.shape[0] == batch && value.shape[0] == batch && value.shape[1] == keys &&
                 query.shape[2] == size * heads && key.shape[2] == size * kvHeads &&
                 value.shape[2] == valueSize * kvHeads;
    auto fits = [](int64_t have, int64_t want) { return have == 1 || have == want; };
    if (mask)
      agree &= fits(mask->shape[0], batch) && fits(mask->shape[1], heads) && fits(mask->shape[2], queries) &&
               mask->shape[3] == keys;
    if (keyMask)
      agree &= fits(keyMask->shape[0], batch) && keyMask->shape[1] == keys;
    if (documents)
      agree &= documents->shape[0] == batch && documents->shape[1] == keys && (queryIndex || queries == keys);
    if (queryIndex)
      agree &= queryIndex->shape[0] == queries;
    if (!agree)
      return call.fail("operands of different sizes");
    for (int64_t index : queryIndex ? ArrayRef<int64_t>(queryIndex->ints) : ArrayRef<int64_t>())
      if (index < 0 || index >= keys)
        return call.fail("query_index " + Twine(index) + " is not in [0, " + Twine(keys) + ")");
    return success();
  }

  /// Where head `h` of row (b, i) starts in a tensor of `count` heads of `width`.
  static int64_t at(int64_t b, int64_t length, int64_t i, int64_t count, int64_t h, int64_t width) {
    return ((b * length + i) * count + h) * width;
  }
  const double *queryRow(int64_t b, int64_t h, int64_t i) const {
    return query.floats.data() + at(b, queries, i, heads, h, size);
  }
  int64_t keyAt(int64_t b, int64_t h, int64_t j) const { return at(b, keys, j, kvHeads, h / (heads / kvHeads), size); }
  int64_t valueAt(int64_t b, int64_t h, int64_t j) const {
    return at(b, keys, j, kvHeads, h / (heads / kvHeads), valueSize);
  }

  /// scale * <q, k>, before softcap.
  double product(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const double *q = queryRow(b, h, i), *k = key.floats.data() + keyAt(b, h, j);
    double even = 0, odd = 0;
    int64_t c = 0;
    for (; c + 1 < size; c += 2) {
      even += q[c] * k[c];
      odd += q[c + 1] * k[c + 1];
    }
    return scale * (c < size ? even + odd + q[c] * k[c] : even + odd);
  }

  /// The score of query i and key j from their product; -inf where the pair takes no part.
  double score(int64_t b, int64_t h, int64_t i, int64_t j, double product) const {
    if (!allowed(b, h, i, j))
      return -INFINITY;
    double score = softcap ? *softcap * std::tanh(product / *softcap) : product;
    if (mask && isFloat(mask->kind))
      score += mask->floats[maskAt(b, h, i, j)];
    if (!slopes.empty())
      score += slopes[h] * static_cast<double>(j);
    return score;
  }

  /// The derivative of the score with respect to the product.
  double slope(double product) const {
    if (!softcap)
      return 1;
    double t = std::tanh(product / *softcap);
    return 1 - t * t;
  }

  const Tensor &query, &key, &value;
  int64_t heads, kvHeads, batch, queries, keys, size, valueSize;
  double scale;

private:
  int64_t maskAt(int64_t b, int64_t h, int64_t i, int64_t j) const {
    ArrayRef<int64_t> shape = mask->shape;
    return ((b % shape[0] * shape[1] + h % shape[1]) * shape[2] + i % shape[2]) * keys + j;
  }
  bool allowed(int64_t b, int64_t h, int64_t i, int64_t j) const {
    int64_t position = queryIndex ? queryIndex->ints[i] : i + shift;
    if ((causal && j > position) || (window && std::abs(position - j) >= *window))
      return false;
    if (mask && !isFloat(mask->kind) && !mask->ints[maskAt(b, h, i, j)])
      return false;
    if (keyMask && !keyMask->ints[b % keyMask->shape[0] * keys + j])
      return false;
    return !documents || documents->ints[b * keys + position] == documents->ints[b * keys + j];
  }

  const Tensor *mask, *keyMask, *documents, *queryIndex;
  std::optional<double> softcap;
  std::optional<int64_t> window;
  SmallVector<double> slopes;
  bool causal;
  int64_t shift; // of a query's position among the keys
};
} // namespace

static LogicalResult attention(tfm::AttentionOp op, Call &call) {
  Scores scores(op, call);
  if (failed(scores.check(call)) ||
      failed(call.allocate(0, {scores.batch, scores.queries, scores.heads * scores.valueSize})) ||
      failed(call.allocate(1, {scores.batch, scores.heads, scores.queries})))
    return failure();
  std::vector<double> row(scores.keys);
  for (int64_t b = 0; b < scores.batch; ++b) {
    for (int64_t h = 0; h < scores.heads; ++h) {
      for (int64_t i = 0; i < scores.queries; ++i) {
        double maximum = -INFINITY, sum = 0;
        for (int64_t j = 0; j < scores.keys; ++j) {
          row[j] = scores.score(b, h, i, j, scores.product(b, h, i, j));
          maximum = std::fmax(maximum, row[j]);
        }
        double &logSumExp = call.results[1].floats[(b * scores.heads + h) * scores.queries + i];
        logSumExp = -INFINITY;
        if (maximum == -INFINITY)
          continue; // nothing takes part: the row stays zero
        for (double &score : row)
          sum += score = std::exp(score - maximum);
        logSumExp = maximum + std::log(sum);
        double *out =
            call.results[0].floats.data() + scores.at(b, scores.queries, i, scores.heads, h, scores.valueSize);
        for (int64_t j = 0; j < scores.keys; ++j)
          for (int64_t c = 0; row[j] != 0 && c < scores.valueSize; ++c)
            out[c] += row[j] / sum * scores.value.floats[scores.valueAt(b, h, j) + c];
      }
    }
  }
  return success();
}

/// P = exp(score - lse), dP = <dO, V>, dScore = P (dP - <dO, O>) (Dao, arXiv 2307.08691, section 2.3).
static LogicalResult attentionGrad(tfm::AttentionGradOp op, Call &call) {
  Scores scores(op, call);
  const Tensor &result = call.operand(3), &logSumExp = call.operand(4), &gradient = call.operand(5);
  if (failed(scores.check(call)))
    return failure();
  if (result.size() != scores.batch * scores.queries * scores.heads * scores.valueSize ||
      gradient.size() != result.size() || logSumExp.size() != scores.batch * scores.heads * scores.queries)
    return call.fail("operands of different sizes");
  for (unsigned i = 0; i < 3; ++i)
    if (failed(call.allocate(i, call.operand(i).shape)))
      return failure();
  for (int64_t b = 0; b < scores.batch; ++b) {
    for (int64_t h = 0; h < scores.heads; ++h) {
      for (int64_t i = 0; i < scores.queries; ++i) {
        double lse = logSumExp.floats[(b * scores.heads + h) * scores.queries + i];
        if (lse == -INFINITY)
          continue;
        int64_t rowAt = scores.at(b, scores.queries, i, scores.heads, h, scores.valueSize);
        const double *dOut = gradient.floats.data() + rowAt, *out = result.floats.data() + rowAt;
        double delta = 0;
        for (int64_t c = 0; c < scores.valueSize; ++c)
          delta += dOut[c] * out[c];
        const double *q = scores.queryRow(b, h, i);
        double *dq = call.results[0].floats.data() + (q - scores.query.floats.data());
        for (int64_t j = 0; j < scores.keys; ++j) {
          double product = scores.product(b, h, i, j), score = scores.score(b, h, i, j, product);
          if (score == -INFINITY)
            continue;
          double p = std::exp(score - lse), dp = 0;
          int64_t keyAt = scores.keyAt(b, h, j), valueAt = scores.valueAt(b, h, j);
          for (int64_t c = 0; c < scores.valueSize; ++c) {
            dp += dOut[c] * scores.value.floats[valueAt + c];
            call.results[2].floats[valueAt + c] += p * dOut[c];
          }
          double dProduct = scores.scale * p * (dp - delta) * scores.slope(product);
          for (int64_t c = 0; c < scores.size; ++c) {
            dq[c] += dProduct * scores.key.floats[keyAt + c];
            call.results[1].floats[keyAt + c] += dProduct * q[c];
          }
        }
      }
    }
  }
  return success();
}

void interpreter::addAttentionKernels(KernelTable &table) {
  table.add<tfm::RopeOp>(rope);
  table.add<tfm::AttentionOp>(attention);
  table.add<tfm::AttentionGradOp>(attentionGrad);
}
