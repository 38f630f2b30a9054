//===- GridProgram.cpp - a small model over many ranks --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GridProgram.h"
#include "../ToyBodies.h"
#include "drover/Schedule/Serialize.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

using namespace drover::schedule;

namespace drover::rt::test {

//===----------------------------------------------------------------------===//
// Bodies: T ranks of tp; R rows, W wide
//===----------------------------------------------------------------------===//

static constexpr int64_t R = 8, W = gridWidth, V = gridVocabulary;
/// A rank's rows of the table and of N.
template <int T> constexpr int64_t localRows = (V + T - 1) / T;
template <int T> constexpr int64_t localHidden = gridHidden / T;

static const float *in(void *const *operands, int i) { return static_cast<const float *>(operands[i]); }
static float *out(void *const *operands, int i) { return static_cast<float *>(operands[i]); }
static const int64_t *ints(void *const *operands, int i) { return static_cast<const int64_t *>(operands[i]); }

template <int T> static void sumOverTp(const drover_call *call, float *values, int64_t count, int32_t reduction) {
  if (T == 1)
    return;
  drover_collective sum = {DROVER_COMM_TP, DROVER_ALL_REDUCE, DROVER_SUM, DROVER_F32, 0, reduction, 1, count, 1};
  drover_rt_collective_start(call, &sum, values, values, 0);
  drover_rt_collective_wait(call, 0);
}

static void begin(const drover_call *call, float *accumulator, int64_t count) {
  if (!call->accumulate)
    std::fill_n(accumulator, count, 0.0f);
}

/// ids, table -> x
template <int T> static void embed(void *const *operands, void *, const drover_call *call) {
  int64_t first = call->coordinates[DROVER_AXIS_TP] * localRows<T>;
  float *x = out(operands, 2);
  for (int64_t r = 0; r < R; ++r) {
    int64_t row = ints(operands, 0)[r] - first;
    for (int64_t w = 0; w < W; ++w)
      x[r * W + w] = row >= 0 && row < localRows<T> ? in(operands, 1)[row * W + w] : 0;
  }
  sumOverTp<T>(call, x, R * W, 0);
}

/// x, M, N, scale -> y, h, z
template <int T> static void layer(void *const *operands, void *, const drover_call *call) {
  constexpr int64_t H = localHidden<T>;
  const float *x = in(operands, 0), *m = in(operands, 1), *n = in(operands, 2), *scale = in(operands, 3);
  float *y = out(operands, 4), *h = out(operands, 5), *z = out(operands, 6);
  for (int64_t r = 0; r < R; ++r) {
    for (int64_t j = 0; j < H; ++j) {
      float sum = 0;
      for (int64_t w = 0; w < W; ++w)
        sum += x[r * W + w] * m[w * H + j];
      h[r * H + j] = std::tanh(sum);
    }
    for (int64_t w = 0; w < W; ++w) {
      z[r * W + w] = 0;
      for (int64_t j = 0; j < H; ++j)
        z[r * W + w] += h[r * H + j] * n[j * W + w];
    }
  }
  sumOverTp<T>(call, z, R * W, 1);
  for (int64_t i = 0; i < R * W; ++i)
    y[i] = x[i] + z[i] * scale[i % W];
}

/// The logits of all rows of the table.
template <int T> static void logitsOf(const drover_call *call, const float *x, const float *table, float *logits) {
  int64_t first = call->coordinates[DROVER_AXIS_TP] * localRows<T>;
  std::fill_n(logits, R * V, 0.0f);
  for (int64_t r = 0; r < R; ++r)
    for (int64_t v = first; v < std::min(V, first + localRows<T>); ++v)
      for (int64_t w = 0; w < W; ++w)
        logits[r * V + v] += x[r * W + w] * table[(v - first) * W + w];
  sumOverTp<T>(call, logits, R * V, 2);
}

/// x, table, labels -> probabilities, loss
template <int T> static void head(void *const *operands, void *, const drover_call *call) {
  float *p = out(operands, 3);
  logitsOf<T>(call, in(operands, 0), in(operands, 1), p);
  double loss = 0;
  for (int64_t r = 0; r < R; ++r) {
    int64_t label = ints(operands, 2)[r];
    double sum = 0;
    for (int64_t v = 0; v < V; ++v)
      sum += std::exp(double(p[r * V + v]));
    loss += label < 0 ? 0 : std::log(sum) - double(p[r * V + label]);
    for (int64_t v = 0; v < V; ++v)
      p[r * V + v] = float(std::exp(double(p[r * V + v])) / sum);
  }
  *static_cast<double *>(operands[4]) = loss;
}

/// x, table -> logits, of the forward task
template <int T> static void logits(void *const *operands, void *, const drover_call *call) {
  logitsOf<T>(call, in(operands, 0), in(operands, 1), out(operands, 2));
}

/// Calls `fn` with row, row of the rank's part of the table, and gradient of that logit.
template <int T, typename Fn>
static void forEachLogit(const drover_call *call, const int64_t *labels, const float *p, float seed, Fn fn) {
  int64_t first = call->coordinates[DROVER_AXIS_TP] * localRows<T>;
  for (int64_t r = 0; r < R; ++r)
    for (int64_t v = first; labels[r] >= 0 && v < std::min(V, first + localRows<T>); ++v)
      fn(r, v - first, seed * (p[r * V + v] - float(v == labels[r])));
}

/// table, labels, probabilities, seed -> dx
template <int T> static void headInputGrad(void *const *operands, void *, const drover_call *call) {
  const float *table = in(operands, 0);
  float *dx = out(operands, 4);
  std::fill_n(dx, R * W, 0.0f);
  forEachLogit<T>(call, ints(operands, 1), in(operands, 2), *in(operands, 3), [&](int64_t r, int64_t row, float d) {
    for (int64_t w = 0; w < W; ++w)
      dx[r * W + w] += d * table[row * W + w];
  });
  sumOverTp<T>(call, dx, R * W, 3);
}

/// x, labels, probabilities, seed, table accumulator
template <int T> static void headWeightGrad(void *const *operands, void *, const drover_call *call) {
  const float *x = in(operands, 0);
  float *sums = out(operands, 4);
  begin(call, sums, localRows<T> * W);
  forEachLogit<T>(call, ints(operands, 1), in(operands, 2), *in(operands, 3), [&](int64_t r, int64_t row, float d) {
    for (int64_t w = 0; w < W; ++w)
      sums[row * W + w] += d * x[r * W + w];
  });
}

/// x, table, labels, probabilities, seed, table accumulator -> dx
template <int T> static void headGrad(void *const *operands, void *workspace, const drover_call *call) {
  void *const weights[] = {operands[0], operands[2], operands[3], operands[4], operands[5]};
  void *const inputs[] = {operands[1], operands[2], operands[3], operands[4], operands[6]};
  headWeightGrad<T>(weights, workspace, call);
  headInputGrad<T>(inputs, workspace, call);
}

/// M, N, scale, h, dy -> dx, gradient in front of the activation
template <int T> static void layerInputGrad(void *const *operands, void *, const drover_call *call) {
  constexpr int64_t H = localHidden<T>;
  const float *m = in(operands, 0), *n = in(operands, 1), *scale = in(operands, 2), *h = in(operands, 3),
              *dy = in(operands, 4);
  float *dx = out(operands, 5), *before = out(operands, 6);
  std::fill_n(dx, R * W, 0.0f);
  for (int64_t r = 0; r < R; ++r)
    for (int64_t j = 0; j < H; ++j) {
      float dh = 0;
      for (int64_t w = 0; w < W; ++w)
        dh += dy[r * W + w] * scale[w] * n[j * W + w];
      before[r * H + j] = dh * (1 - h[r * H + j] * h[r * H + j]);
      for (int64_t w = 0; w < W; ++w)
        dx[r * W + w] += before[r * H + j] * m[w * H + j];
    }
  sumOverTp<T>(call, dx, R * W, 4);
  for (int64_t i = 0; i < R * W; ++i)
    dx[i] += dy[i];
}

/// x, scale, h, z, dy, gradient in front of the activation, accumulators of M, N, scale. Each tp rank adds up scale's
/// gradient over its rows.
template <int T> static void layerWeightGrad(void *const *operands, void *, const drover_call *call) {
  constexpr int64_t H = localHidden<T>;
  const float *x = in(operands, 0), *scale = in(operands, 1), *h = in(operands, 2), *z = in(operands, 3),
              *dy = in(operands, 4), *before = in(operands, 5);
  float *dm = out(operands, 6), *dn = out(operands, 7), *ds = out(operands, 8);
  begin(call, dm, W * H);
  begin(call, dn, H * W);
  begin(call, ds, W);
  for (int64_t r = 0; r < R; ++r) {
    for (int64_t w = 0; w < W && r % T == call->coordinates[DROVER_AXIS_TP]; ++w)
      ds[w] += dy[r * W + w] * z[r * W + w];
    for (int64_t j = 0; j < H; ++j)
      for (int64_t w = 0; w < W; ++w) {
        dn[j * W + w] += h[r * H + j] * (dy[r * W + w] * scale[w]);
        dm[w * H + j] += x[r * W + w] * before[r * H + j];
      }
  }
}

/// x, M, N, scale, h, z, dy, accumulators of M, N, scale -> dx
template <int T> static void layerGrad(void *const *operands, void *workspace, const drover_call *call) {
  float before[R * localHidden<T>];
  void *const inputs[] = {operands[1], operands[2], operands[3], operands[4], operands[6], operands[10], before};
  layerInputGrad<T>(inputs, workspace, call);
  void *const weights[] = {operands[0], operands[3], operands[4], operands[5], operands[6],
                           before,      operands[7], operands[8], operands[9]};
  layerWeightGrad<T>(weights, workspace, call);
}

/// ids, dx, table accumulator
template <int T> static void embedGrad(void *const *operands, void *, const drover_call *call) {
  int64_t first = call->coordinates[DROVER_AXIS_TP] * localRows<T>;
  float *sums = out(operands, 2);
  begin(call, sums, localRows<T> * W);
  for (int64_t r = 0; r < R; ++r) {
    int64_t row = ints(operands, 0)[r] - first;
    for (int64_t w = 0; w < W && row >= 0 && row < localRows<T>; ++w)
      sums[row * W + w] += in(operands, 1)[r * W + w];
  }
}

/// `split`: the weight gradients are bodies of their own.
template <int T> static std::vector<drover_body_fn> bodiesFor(bool train, bool split) {
  return {embed<T>,
          layer<T>,
          train ? head<T> : logits<T>,
          split ? headInputGrad<T> : headGrad<T>,
          split ? layerInputGrad<T> : layerGrad<T>,
          embedGrad<T>,
          adamwBody,
          squaresBody,
          headWeightGrad<T>,
          layerWeightGrad<T>};
}

//===----------------------------------------------------------------------===//
// The microbatch program
//===----------------------------------------------------------------------===//

namespace {
class ModelBuilder {
public:
  explicit ModelBuilder(const GridOptions &options)
      : options(options), tp(options.plan.tp), split(options.plan.schedule() == ScheduleKind::ZeroBubbleH1) {}

  MicrobatchProgram build();

private:
  uint32_t value(ValueKind kind, int32_t index, int64_t elements, DType type = DType::F32);
  uint32_t activation() { return value(ValueKind::Result, -1, R * W); }
  uint32_t parameter(const std::string &name, std::vector<int64_t> shape, std::vector<int64_t> localShape,
                     std::vector<DimCut> cut, GridAxis sum, GridAxis replicated);
  void call(uint32_t body, int32_t layer, bool backward, std::vector<uint32_t> operands, std::vector<uint32_t> results,
            std::vector<uint32_t *> accumulators = {});
  uint32_t accumulator(uint32_t of);
  void backward();

  const GridOptions &options;
  int64_t tp;
  bool split; // weight gradients apart
  uint32_t ids, labels, table, x, probabilities, seed;
  std::vector<uint32_t> in, out, scale, inputs, h, z; // by layer
  MicrobatchProgram program;
};
} // namespace

uint32_t ModelBuilder::value(ValueKind kind, int32_t index, int64_t elements, DType type) {
  int64_t width = type == DType::F32 ? 4 : 8;
  program.values.push_back({kind, index, type, elements * width, false});
  return uint32_t(program.values.size() - 1);
}

uint32_t ModelBuilder::parameter(const std::string &name, std::vector<int64_t> shape, std::vector<int64_t> localShape,
                                 std::vector<DimCut> cut, GridAxis sum, GridAxis replicated) {
  Parameter result;
  result.name = name;
  result.decay = shape.size() > 1;
  result.shape = std::move(shape);
  result.initNormal = true;
  result.initValue = 0.7;
  if (tp > 1) {
    result.localShape = std::move(localShape);
    result.cut = std::move(cut);
    result.sum = sum;
    result.replicated = replicated;
  }
  int64_t elements = result.elements();
  program.parameters.push_back(std::move(result));
  return value(ValueKind::Parameter, int32_t(program.parameters.size() - 1), elements);
}

/// Accumulators are operands, and results in their memory.
void ModelBuilder::call(uint32_t body, int32_t layer, bool backward, std::vector<uint32_t> operands,
                        std::vector<uint32_t> results, std::vector<uint32_t *> accumulators) {
  Call made{body, layer, backward, std::move(operands), std::move(results), {}, false};
  made.inPlace.assign(made.results.size(), -1);
  for (uint32_t *sum : accumulators) {
    made.inPlace.push_back(int32_t(made.operands.size()));
    made.operands.push_back(*sum);
    *sum = value(ValueKind::Result, -1, program.values[*sum].bytes / 4);
    made.results.push_back(*sum);
  }
  program.calls.push_back(std::move(made));
}

uint32_t ModelBuilder::accumulator(uint32_t of) {
  return value(ValueKind::Accumulator, program.values[of].index, program.values[of].bytes / 4);
}

/// From the head's input `x` down to the embedding.
void ModelBuilder::backward() {
  auto weights = [&](uint32_t body, int32_t layer, std::vector<uint32_t> operands,
                     std::vector<uint32_t *> accumulators) {
    call(body, layer, true, std::move(operands), {}, std::move(accumulators));
    program.calls.back().weightGradient = split;
  };
  uint32_t tableSum = accumulator(table), gradient = activation();
  if (split) {
    call(3, -1, true, {table, labels, probabilities, seed}, {gradient});
    weights(8, -1, {x, labels, probabilities, seed}, {&tableSum});
  } else {
    call(3, -1, true, {x, table, labels, probabilities, seed}, {gradient}, {&tableSum});
  }
  for (int32_t i = options.layers - 1; i >= 0; --i) {
    uint32_t next = activation(), inSum = accumulator(in[i]), outSum = accumulator(out[i]),
             scaleSum = accumulator(scale[i]);
    if (split) {
      uint32_t before = value(ValueKind::Result, -1, R * gridHidden / tp);
      call(4, i, true, {in[i], out[i], scale[i], h[i], gradient}, {next, before});
      weights(9, i, {inputs[i], scale[i], h[i], z[i], gradient, before}, {&inSum, &outSum, &scaleSum});
    } else {
      call(4, i, true, {inputs[i], in[i], out[i], scale[i], h[i], z[i], gradient}, {next},
           {&inSum, &outSum, &scaleSum});
    }
    gradient = next;
  }
  weights(5, -1, {ids, gradient}, {&tableSum});
}

MicrobatchProgram ModelBuilder::build() {
  int64_t cp = options.plan.cp, rows = (V + tp - 1) / tp, hidden = gridHidden / tp;
  std::vector<int64_t> shape = {R / (gridLength / cp), gridLength / cp};
  int64_t cutDim = cp > 1 ? 1 : -1;
  program.train = options.train;
  program.tokensPerMicrobatch = R;
  program.vocabulary = V;
  BodyCollective sum{DROVER_COMM_TP, DROVER_ALL_REDUCE, DType::F32, R * W * 4, 0};
  std::vector<BodyCollective> sums, logitSums;
  if (tp > 1) {
    sums = {sum};
    sum.bytes = R * V * 4;
    logitSums = {sum};
  }
  program.bodies = {{"embed", 0, 10, 0, sums},       {"layer", 1000, 10, 0, sums},      {"head", 500, 10, 0, logitSums},
                    {"head_grad", 1000, 5, 0, sums}, {"layer_grad", 2000, 10, 0, sums}, {"embed_grad", 0, 10, 0, {}},
                    {"adamw_update", 0, 0, 0, {}},   {"sum_of_squares", 0, 0, 0, {}}};
  if (split) {
    program.bodies[3].name = "head_input_grad";
    program.bodies[4].name = "layer_input_grad";
  }
  program.bodies.push_back({"head_weight_grad", 500, 10, 0, {}});
  program.bodies.push_back({"layer_weight_grad", 1000, 10, 0, {}});
  program.inputs = {{"input_ids", DType::I64, shape, "tokens", "tokens", cutDim}};
  if (options.train)
    program.inputs.push_back({"labels", DType::I64, shape, "labels", "labels", cutDim});
  ids = value(ValueKind::Input, 0, R, DType::I64);
  labels = options.train ? value(ValueKind::Input, 1, R, DType::I64) : 0;
  table = parameter("table", {V, W}, {rows, W}, {{0, GridAxis::Tp, {{V, 1, 1, rows * tp}}}}, GridAxis::None,
                    GridAxis::None);
  for (int32_t i = 0; i < options.layers; ++i) {
    std::string prefix = "layer." + std::to_string(i) + ".";
    in.push_back(parameter(prefix + "in", {W, gridHidden}, {W, hidden}, {{1, GridAxis::Tp, {}}}, GridAxis::None,
                           GridAxis::None));
    out.push_back(parameter(prefix + "out", {gridHidden, W}, {hidden, W}, {{0, GridAxis::Tp, {}}}, GridAxis::None,
                            GridAxis::None));
    scale.push_back(parameter(prefix + "scale", {W}, {W}, {}, GridAxis::Tp, GridAxis::Tp));
  }
  x = activation();
  call(0, -1, false, {ids, table}, {x});
  for (int32_t i = 0; i < options.layers; ++i) {
    uint32_t y = activation();
    inputs.push_back(x);
    h.push_back(value(ValueKind::Result, -1, R * hidden));
    z.push_back(activation());
    call(1, i, false, {x, in[i], out[i], scale[i]}, {y, h[i], z[i]});
    x = y;
  }
  probabilities = value(ValueKind::Result, -1, R * V);
  if (!options.train) {
    call(2, -1, false, {x, table}, {probabilities});
    Output output{"logits", probabilities, {shape[0], shape[1], V}, {}};
    if (cp > 1)
      output.cut = {{1, GridAxis::Cp, {}}};
    program.outputs = {output};
    return std::move(program);
  }
  uint32_t loss = value(ValueKind::Result, -1, 1, DType::F64);
  seed = value(ValueKind::Seed, -1, 1);
  program.loss = loss;
  call(2, -1, false, {x, table, labels}, {probabilities, loss});
  backward();
  program.updateBody = 6;
  program.normBody = 7;
  return std::move(program);
}

GridProgram::GridProgram(GridOptions options) {
  Plan &plan = options.plan;
  plan.microbatch = R / (gridLength / plan.cp);
  plan.sequenceLength = gridLength;
  plan.computeType = "f32";
  if (plan.globalBatches.empty())
    plan.globalBatches = {options.train ? 16 : plan.microbatch * plan.dp};
  microbatch = ModelBuilder(options).build();
  Result<StepProgram> built = buildStepProgram(microbatch, plan);
  if (!built)
    throw std::invalid_argument(built.error());
  step = std::move(*built);
  if (plan.tp > 2)
    throw std::invalid_argument("bodies for tp 1 and 2");
  bool split = plan.schedule() == ScheduleKind::ZeroBubbleH1;
  bodies = plan.tp == 1 ? bodiesFor<1>(options.train, split) : bodiesFor<2>(options.train, split);
  finish();
}

void GridProgram::finish() {
  metadata = serializeMetadata(step);
  describeOperands();
  embedded = {DROVER_PROGRAM_VERSION,
              uint32_t(bodies.size()),
              metadata.data(),
              metadata.size(),
              step.actions.data(),
              step.actions.size(),
              bodies.data(),
              nullptr,
              0,
              nullptr,
              0};
}

/// What the bodies' activations are: the results that --dump writes. Hidden values, which tp cuts, are left out.
void GridProgram::describeOperands() {
  nlohmann::json json = nlohmann::json::parse(metadata);
  nlohmann::json argument = {{"dtype", "f32"}, {"shape", {1}}}, x = {{"dtype", "f32"}, {"shape", {}}, {"result", true}};
  x["shape"] = {json["inputs"][0]["shape"][0], json["inputs"][0]["shape"][1], W};
  for (auto [body, arguments] : {std::pair("layer", 4), std::pair("layer_grad", 10)})
    for (nlohmann::json &entry : json["bodies"])
      if (entry["name"] == body) {
        entry["operands"] = nlohmann::json::array();
        for (int i = 0; i < arguments; ++i)
          entry["operands"].push_back(argument);
        entry["operands"].push_back(x);
      }
  metadata = json.dump();
}

} // namespace drover::rt::test
