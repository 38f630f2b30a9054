//===- Memory.cpp - what a layout's ranks hold ----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/Memory.h"
#include "drover/Schedule/SlotAllocator.h"
#include <algorithm>

using namespace drover;
using namespace drover::planner;
using schedule::alignTo;

namespace {

int64_t divideUp(int64_t value, int64_t by) { return (value + by - 1) / by; }

/// Sizes in bytes of one microbatch on one rank.
class TensorSizes {
public:
  TensorSizes(const cost::ModelShape &shape, const schedule::Plan &plan, const Software &software = {})
      : shape(shape), plan(plan), recompute(sizesOf(plan, software).recompute),
        ofOthers(software.recompute.has_value()), fusedLoss(software.fusedLoss),
        spread(static_cast<double>(software.sequenceParallel ? plan.tp : 1)), widths(localWidths(shape, plan.tp)),
        element(static_cast<double>(plan.computeType == "f32" ? 4 : 2)),
        rows(static_cast<double>(plan.microbatch) * static_cast<double>(plan.sequenceLength) /
             static_cast<double>(plan.cp)) {}

  /// The residual stream: all rows, and the rank's own where sequence parallelism spreads them.
  double wideResidual() const { return wide(static_cast<double>(shape.hidden)); }
  double residual() const { return wideResidual() / spread; }
  double logits() const { return rebuildsHead() ? 0 : rows * widths.vocabulary * 4; }
  double inputs() const { return rows * 8 * (plan.mask == "documents" ? 3 : 2); }

  /// What a microbatch keeps of a chunk: from forward to backward, and of a split one on to the weight part, which also
  /// reads what the input part hands over (docs/step-program.md, stash, kept and handed).
  struct Stash {
    double stash = 0, kept = 0, handed = 0;
    double forBackward() const { return stash + kept; }
    double forWeights() const { return kept + handed; }
  };
  /// Its input is in it where no stage sends that. With logits.
  Stash chunkStash(int64_t layers, bool isFirst, bool isLast) const {
    auto count = static_cast<double>(layers);
    double inputs = residual() * static_cast<double>(std::max<int64_t>(0, layers - 1) + (layers > 0 && isFirst) +
                                                     (isLast && (layers > 0 || isFirst)));
    double headNorm = isLast && !rebuildsHead() && stashes("norms") ? residual() : 0;
    Stash stash;
    stash.stash = count * layerStash() + inputs + headNorm + (isLast && !rebuildsHead() ? 2 * rows * 4 : 0) +
                  (isLast ? logits() : 0);
    if (!isSplit())
      return stash;
    stash.kept = full() ? 0 : count * operandsOfProducts() + headNorm + (stashes("norms") ? 0 : inputs);
    stash.stash -= stash.kept;
    stash.handed = handOver(layers, isLast);
    return stash;
  }

  /// Gradients between the calls of a chunk's backward, two alive at once.
  double scratch(int64_t layers, bool isFirst, bool isLast) const {
    int64_t calls = layers + isFirst + isLast;
    return static_cast<double>(std::clamp<int64_t>(calls - 1, 0, 2)) * residual();
  }

  double layerWorkspace() const;
  double headWorkspace() const;

private:
  bool isSplit() const { return plan.schedule() == schedule::ScheduleKind::ZeroBubbleH1; }

  /// Of a layer's stash what weight gradients read: attention's output, what the activation reads (from which an
  /// ungated one is made again) or makes, and norms, or the residual between from which the second one is rebuilt.
  double operandsOfProducts() const {
    double operands = (plan.recompute == "none" ? queries() : 0) + (stashes("norms") ? 2 : 1) * residual();
    return operands + (!shape.gated || stashes("act") ? ffn() : 0);
  }

  /// What an input part hands over: gradients before every product, those of row-parallel ones as they were gathered,
  /// a gated activation, and what else was recomputed that products read. A gradient that arrives from another chunk
  /// and was not gathered stays where it is.
  double handOver(int64_t layers, bool isLast) const {
    double gradients = queries() + keysAndValues() + ffn() * (shape.gated ? 2 : 1);
    double operands = plan.recompute == "none" ? 0 : queries();
    if (full() || (shape.gated && !stashes("act")))
      operands += ffn();
    if (full())
      operands += 2 * wideResidual();
    auto count = static_cast<double>(layers);
    double inner = static_cast<double>(std::max<int64_t>(0, layers - 1) + (isLast && layers > 0));
    double rowParallel = plan.tp > 1 ? 2 * count * wideResidual() : (count + inner) * residual();
    double head = isLast ? rows * widths.vocabulary * element + (full() ? wideResidual() : 0) : 0;
    return count * (gradients + operands) + rowParallel + head;
  }

  /// The whole forward of a layer runs again.
  bool full() const { return recompute == cost::Recompute::Full || recompute == cost::Recompute::Layers; }
  bool rebuildsHead() const { return recompute == cost::Recompute::Full; }
  double layerStash() const;
  double wide(double width) const { return rows * width * element; }
  /// Whether --rebuild leaves a kind of memory-bound work out, so that its result is stashed.
  bool stashes(const char *what) const {
    return plan.rebuild != "auto" && plan.rebuild.find(what) == std::string::npos;
  }
  double queries() const { return wide(widths.query); }
  double keysAndValues() const { return 2 * wide(widths.keyValue); }
  double ffn() const { return wide(widths.ffn); }

  /// Queries, keys, values, attention's output and log-sum-exp unless it runs again, the residual between, what the
  /// activation reads; and what is not rebuilt.
  double keptStash(bool attention) const {
    double stash = queries() + keysAndValues() + residual() + ffn() * (shape.gated ? 2 : 1);
    if (attention)
      stash += queries() + rows * widths.heads * 4;
    if (stashes("norms"))
      stash += 2 * residual();
    if (stashes("act"))
      stash += ffn();
    return stash;
  }

  const cost::ModelShape &shape;
  const schedule::Plan &plan;
  cost::Recompute recompute;
  bool ofOthers; // frameworks that save what products read
  bool fusedLoss;
  double spread; // ranks that the residual stream is cut over
  LocalWidths widths;
  double element, rows;
};

/// What a layer keeps between its phases, without its input.
double TensorSizes::layerStash() const {
  switch (recompute) {
  case cost::Recompute::None:
    return keptStash(true);
  case cost::Recompute::Selective: // autograd keeps what the projection behind attention reads
    return keptStash(false) + (ofOthers ? queries() : 0);
  case cost::Recompute::Full:
  case cost::Recompute::Layers:
    return 0;
  case cost::Recompute::HalfMatmuls: // of seven products the first, third, fifth and last; and attention
    return 2 * queries() + rows * widths.heads * 4 + keysAndValues() / 2 + ffn() + residual();
  case cost::Recompute::HalfLayers:
    return keptStash(true) / 2;
  }
  return 0;
}

/// The largest of the places in a layer's backward where most is alive, as bodies are lowered: the gradient of the
/// activation with its operands; the column-parallel input gathered again with its gradient and a partial sum;
/// attention's gradients, over all keys with CP. A full recompute holds the layer's stash beside. What the input part
/// of a split backward hands over is not in its workspace.
double TensorSizes::layerWorkspace() const {
  bool gathers = plan.tp > 1;
  double all = wideResidual(), own = gathers ? residual() : 0, keys = 0;
  if (plan.cp > 1)
    keys = keysAndValues() * static_cast<double>(plan.cp);
  if (full() || recompute == cost::Recompute::HalfMatmuls || recompute == cost::Recompute::HalfLayers) {
    double rebuilt = keptStash(true) - (recompute == cost::Recompute::HalfMatmuls ? layerStash() : 0);
    return rebuilt + (shape.gated ? ffn() : 2 * ffn()) + (gathers ? 3 : 2) * all + keys -
           (isSplit() ? ffn() + queries() : 0);
  }
  double halves = element == 4 ? 2 * all : 3 * all; // f32 needs no copy to round from
  if (isSplit())                                    // a ring never holds the gathered input
    return std::max(ffn() + all + keys, plan.tpOverlap == "ring" ? halves - all : halves + own);
  double activation = 3 * ffn() + (gathers ? all : 0) + keys;
  double column = shape.gated ? 2 * ffn() + halves + own : 0;
  double attention = 3 * queries() + 1.5 * keysAndValues() + 2 * all + 3 * keys;
  return std::max({activation, column, attention});
}

/// Gradients of the logits, unless they are handed over, the gathered input and its gradient.
double TensorSizes::headWorkspace() const {
  double own = plan.tp > 1 ? residual() : 0;
  double logit = (isSplit() ? 0 : element) + (fusedLoss ? 0 : 4 + element);
  double gradients = rows * widths.vocabulary * logit + 2 * wideResidual() + 2 * own;
  return gradients + (rebuildsHead() ? rows * widths.vocabulary * 4 - wideResidual() - 2 * own : 0);
}

/// Elements of a rank's part of what has buckets of its own or a share in one.
struct Parameters {
  int64_t layer = 0, norm = 0, table = 0, positions = 0;
};

Parameters parametersOf(const cost::ModelShape &shape, int64_t tp) {
  LocalWidths widths = localWidths(shape, tp);
  auto pad = [](double elements) { return alignTo(static_cast<int64_t>(elements), schedule::kBucketAlignment); };
  auto hidden = static_cast<double>(shape.hidden);
  int64_t norm = pad(hidden) * (shape.layerNorm ? 2 : 1);
  int64_t layer = 2 * pad(hidden * widths.query) + 2 * pad(hidden * widths.keyValue) +
                  (shape.gated ? 3 : 2) * pad(hidden * widths.ffn) + 2 * norm;
  if (shape.biases)
    layer += pad(widths.query) + 2 * pad(widths.keyValue) + (shape.gated ? 2 : 1) * pad(widths.ffn) + 2 * pad(hidden);
  return {layer, norm, pad(widths.vocabulary * hidden), pad(static_cast<double>(shape.positionRows) * hidden)};
}

bool keepsWeights(const schedule::Plan &plan) { return !(plan.isSharded() && plan.zero == 3); }
bool keepsAccumulators(const schedule::Plan &plan) { return !(plan.isSharded() && plan.zero >= 2); }

int64_t paddedElements(const schedule::Plan &plan, int64_t elements) {
  return alignTo(elements, schedule::kBucketAlignment * plan.cp * plan.dp);
}

/// What one bucket holds all the time. `isOwner`: of what is tied, the stage with the optimizer's state.
void addLasting(const schedule::Plan &plan, const Software &software, int64_t elements, bool isShared, bool isOwner,
                StageMemory &memory) {
  auto count = static_cast<double>(paddedElements(plan, elements));
  int64_t shards = software.shardRanks > 0 ? software.shardRanks : plan.cp * plan.dp;
  double shard = plan.isSharded() ? count / static_cast<double>(shards) : count;
  if (keepsWeights(plan) || isShared)
    memory.weights += count * elementBytes(plan);
  if (isOwner) {
    if (plan.computeType != "f32" || plan.isSharded())
      memory.optimizer += shard * 4;
    if (plan.optimizer == "adamw")
      memory.optimizer += shard * 8;
  }
  bool accumulates = keepsAccumulators(plan) || isShared;
  if (accumulates)
    memory.gradients += count * static_cast<double>(software.gradientBytes);
  // Buckets that are reduced as they appear hold their own sums.
  if (plan.isSharded() && !(accumulates && software.fineBuckets))
    memory.gradients += shard * 4;
}

/// What lasts on every stage.
std::vector<StageMemory> lastingMemory(const schedule::Plan &plan, const ChunkShape &chunks,
                                       const Software &software = {}) {
  std::vector<StageMemory> memory(static_cast<size_t>(plan.pp));
  size_t last = chunks.layers.size() - 1;
  for (size_t c = 0; c <= last; ++c)
    addLasting(plan, software, chunks.elements[c] + (last == 0 ? chunks.tiedElements : 0), false, true,
               memory[c % static_cast<size_t>(plan.pp)]);
  if (chunks.tiedElements > 0 && last > 0) {
    addLasting(plan, software, chunks.tiedElements, true, true, memory.front());
    if (plan.pp > 1)
      addLasting(plan, software, chunks.tiedElements, true, false, memory.back());
  }
  return memory;
}

/// Inside the bodies of a stage, and between them.
double workspaceOf(const TensorSizes &sizes, const ChunkShape &chunks, size_t stage, size_t stages) {
  double scratch = 0, workspace = 0;
  size_t last = chunks.layers.size() - 1;
  for (size_t c = stage; c <= last; c += stages) {
    scratch = std::max(scratch, sizes.scratch(chunks.layers[c], c == 0, c == last));
    if (chunks.layers[c] > 0)
      workspace = std::max(workspace, sizes.layerWorkspace());
    if (c == last)
      workspace = std::max(workspace, sizes.headWorkspace());
  }
  return scratch + workspace;
}

/// What the slots of a stage's microbatches take, and the categories in them.
struct Slots {
  double bytes = 0; // in the arena
  double stash = 0, logits = 0, inputs = 0, boundary = 0;
};

/// Slots of stash and inputs on every stage, and of boundaries on one stage alone, along the global order.
class Walk {
public:
  Walk(const schedule::Plan &plan, const ChunkShape &chunks, const TensorSizes &sizes, const ReplayProgram &program)
      : plan(plan), program(program), logits(sizes.logits()), stages(static_cast<size_t>(plan.pp)) {
    last = static_cast<uint32_t>(chunks.layers.size() - 1);
    for (uint32_t c = 0; c <= last; ++c)
      stashes.push_back(sizes.chunkStash(chunks.layers[c], c == 0, c == last));
    inputs = slotBytes(sizes.inputs());
    boundary = plan.pp == 1 ? slotBytes(sizes.residual()) : 0;
  }

  std::vector<Slots> run();

private:
  static int64_t slotBytes(double bytes) { return alignTo(static_cast<int64_t>(bytes), schedule::kSlotAlignment); }
  enum Kind : uint8_t { Stash, Kept, Handed, Input, X, DX, NumKinds };
  struct Stage {
    std::vector<schedule::SlotRequest> requests;
    std::vector<Kind> kinds;
    int64_t time = 0;
  };

  void use(Kind kind, uint32_t chunk, uint32_t microbatch, int64_t bytes, Stage &stage);
  Slots place(Stage &stage, bool hasLast) const;

  const schedule::Plan &plan;
  const ReplayProgram &program;
  uint32_t last = 0;
  double logits = 0;
  int64_t inputs = 0, boundary = 0;
  std::vector<TensorSizes::Stash> stashes; // by chunk
  std::vector<Stage> stages;
  std::vector<int32_t> requestOf; // by kind, chunk and microbatch
  size_t microbatches = 0;
};

void Walk::use(Kind kind, uint32_t chunk, uint32_t microbatch, int64_t bytes, Stage &stage) {
  if (bytes == 0)
    return;
  int32_t &request = requestOf[(size_t{kind} * stashes.size() + chunk) * microbatches + microbatch];
  if (request < 0) {
    request = static_cast<int32_t>(stage.requests.size());
    stage.requests.push_back({bytes, stage.time, stage.time, 0});
    stage.kinds.push_back(kind);
  }
  stage.requests[request].last = stage.time;
}

std::vector<Slots> Walk::run() {
  const std::vector<ReplayProgram::Item> &items = program.getItems();
  for (int64_t size : program.getGroups())
    microbatches += static_cast<size_t>(size);
  requestOf.assign(NumKinds * stashes.size() * microbatches, -1);
  for (size_t i = 0; i < items.size(); ++i) {
    uint32_t chunk = items[i].chunk(), microbatch = program.microbatchOf(i);
    bool forward = items[i].phase() == schedule::Phase::Forward;
    Stage &stage = stages[items[i].stage()];
    const TensorSizes::Stash &sizes = stashes[chunk];
    if (items[i].phase() != schedule::Phase::WeightGradient)
      use(Stash, chunk, microbatch, slotBytes(sizes.stash), stage);
    use(Kept, chunk, microbatch, slotBytes(sizes.kept), stage);
    if (!forward)
      use(Handed, chunk, microbatch, slotBytes(sizes.handed), stage);
    // One slot a microbatch serves embedding and loss where one stage has both.
    if (chunk == 0 || chunk == last)
      use(Input, plan.pp == 1 ? 0 : chunk, microbatch, inputs, stage);
    // A boundary is the y of the chunk before it, and its own x in both directions.
    if (chunk > 0)
      use(X, chunk, microbatch, boundary, stage);
    if (forward && chunk < last)
      use(X, chunk + 1, microbatch, boundary, stage);
    if (!forward && chunk > 0)
      use(DX, chunk, microbatch, boundary, stage);
    if (!forward && chunk < last)
      use(DX, chunk + 1, microbatch, boundary, stage);
    ++stage.time;
  }
  std::vector<Slots> slots;
  for (size_t s = 0; s < stages.size(); ++s)
    slots.push_back(place(stages[s], last % stages.size() == s));
  return slots;
}

/// Places slots as the step program does, where sizes differ and places may not be filled to the last byte.
Slots Walk::place(Stage &stage, bool hasLast) const {
  auto peakOf = [&](std::initializer_list<Kind> which) {
    std::vector<schedule::SlotRequest> chosen;
    for (size_t i = 0; i < stage.requests.size(); ++i)
      if (std::find(which.begin(), which.end(), stage.kinds[i]) != which.end())
        chosen.push_back(stage.requests[i]);
    return static_cast<double>(schedule::peakBytes(chosen));
  };
  Slots slots;
  slots.inputs = peakOf({Input});
  slots.stash = peakOf({Stash, Kept, Handed});
  slots.boundary = peakOf({X, DX});
  slots.logits = hasLast ? std::min(logits, slots.stash) : 0;
  slots.stash -= slots.logits;
  slots.bytes = static_cast<double>(schedule::placeSlots(stage.requests));
  return slots;
}

} // namespace

std::vector<std::pair<const char *, double>> planner::partsOf(const StageMemory &memory) {
  return {{"weights", memory.weights},     {"gathered", memory.gathered},
          {"gradients", memory.gradients}, {"optimizer", memory.optimizer},
          {"stash", memory.stash},         {"logits", memory.logits},
          {"buffers", memory.buffers},     {"workspace", memory.workspace},
          {"inputs", memory.inputs},       {"gaps", memory.gaps}};
}

LocalWidths planner::localWidths(const cost::ModelShape &shape, int64_t tp) {
  int64_t kvHeads = shape.kvHeads, perGroup = shape.heads / shape.kvHeads;
  while (kvHeads % tp != 0 && tp % kvHeads != 0)
    ++kvHeads;
  int64_t heads = 0;
  if (kvHeads % tp == 0) {
    kvHeads /= tp;
    heads = kvHeads * perGroup;
  } else {
    heads = divideUp(perGroup, tp / kvHeads);
    kvHeads = 1;
  }
  return {static_cast<double>(heads * shape.headSize), static_cast<double>(kvHeads * shape.headSize),
          static_cast<double>(heads), static_cast<double>(divideUp(shape.ffnHidden, tp)),
          static_cast<double>(divideUp(shape.vocabulary, tp))};
}

ChunkShape planner::chunkShapeOf(const cost::ModelShape &shape, const schedule::Plan &plan) {
  auto [layer, norm, table, positions] = parametersOf(shape, plan.tp);
  ChunkShape chunks;
  chunks.layers =
      plan.layersPerChunk.empty() ? schedule::spreadLayers(shape.layers, plan.pp * plan.chunks) : plan.layersPerChunk;
  for (int64_t layers : chunks.layers)
    chunks.elements.push_back(layers * layer);
  chunks.elements.front() += positions + (shape.tied ? 0 : table);
  chunks.elements.back() += norm + (shape.tied ? 0 : table);
  if (shape.tied)
    chunks.tiedElements = table;
  return chunks;
}

std::vector<StageMemory> planner::memoryOf(const cost::ModelShape &shape, const schedule::Plan &plan,
                                           const ReplayProgram &program, const Software &software) {
  ChunkShape chunks = chunkShapeOf(shape, plan);
  TensorSizes sizes(shape, plan, software);
  std::vector<StageMemory> memory = lastingMemory(plan, chunks, software);
  std::vector<Slots> slots = Walk(plan, chunks, sizes, program).run();
  size_t last = chunks.layers.size() - 1;
  for (size_t stage = 0; stage < memory.size(); ++stage) {
    StageMemory &of = memory[stage];
    const ReplayProgram::Dynamic &dynamic = program.dynamicOf(static_cast<int64_t>(stage));
    of.gradients += static_cast<double>(dynamic.accumulatorSpace) * 4;
    of.gathered = static_cast<double>(dynamic.parameterSpace) * elementBytes(plan);
    if (software.fineBuckets && !keepsWeights(plan)) {
      // A layer at work and the next one, or a table; and the gradients of one until they are reduced (arXiv
      // 2304.11277, section 3.3).
      Parameters own = parametersOf(shape, plan.tp);
      bool hasTable = stage == 0 || stage == last % memory.size();
      auto unit = static_cast<double>(hasTable ? std::max(own.layer, own.table) : own.layer);
      of.gathered = (static_cast<double>(own.layer) + unit) * elementBytes(plan);
      of.gradients += unit * static_cast<double>(software.gradientBytes);
    }
    of.stash = slots[stage].stash;
    of.logits = slots[stage].logits;
    of.inputs = slots[stage].inputs;
    of.buffers = slots[stage].boundary;
    of.gaps = slots[stage].bytes - of.stash - of.logits - of.inputs - of.buffers;
    if (plan.pp > 1)
      for (int64_t count : program.boundarySlots(static_cast<int64_t>(stage)))
        of.buffers += static_cast<double>(count) * sizes.residual();
    of.workspace = workspaceOf(sizes, chunks, stage, memory.size());
  }
  return memory;
}

double planner::leastMemoryOf(const cost::ModelShape &shape, const schedule::Plan &plan,
                              const std::vector<int64_t> &groups, const ReplayProgram *program) {
  ChunkShape chunks = chunkShapeOf(shape, plan);
  TensorSizes sizes(shape, plan);
  std::vector<StageMemory> memory = lastingMemory(plan, chunks);
  double most = 0;
  size_t last = chunks.layers.size() - 1;
  for (size_t stage = 0; stage < memory.size(); ++stage) {
    double bytes = memory[stage].total() + workspaceOf(sizes, chunks, stage, memory.size());
    // Of what comes and goes there is one chunk's at least.
    ReplayProgram::Dynamic dynamic;
    for (size_t c = stage; c <= last; c += memory.size())
      dynamic.parameterSpace = std::max(dynamic.parameterSpace, chunks.elements[c]);
    dynamic.accumulatorSpace = keepsAccumulators(plan) ? 0 : dynamic.parameterSpace;
    if (keepsWeights(plan))
      dynamic.parameterSpace = 0;
    if (program)
      dynamic = program->dynamicOf(static_cast<int64_t>(stage));
    bytes += static_cast<double>(dynamic.parameterSpace) * elementBytes(plan) +
             static_cast<double>(dynamic.accumulatorSpace) * 4;
    if (program && plan.pp > 1)
      for (int64_t count : program->boundarySlots(static_cast<int64_t>(stage)))
        bytes += static_cast<double>(count) * sizes.residual();
    // The first forwards of a rank run its chunks one after the other, each for the microbatches of a group. With zb-h1
    // the rank's number of microbatches wait for their weight part by the time of the peak.
    auto rank = static_cast<int64_t>(stage);
    int64_t left = schedule::expectedPeakInFlight(plan.schedule(), plan.pp, plan.chunks, groups, rank);
    if (plan.schedule() == schedule::ScheduleKind::ZeroBubbleH1) {
      left = std::min(groups.front(), plan.pp - rank);
      if (groups.front() >= plan.pp)
        bytes +=
            static_cast<double>(rank) * sizes.chunkStash(chunks.layers[stage], stage == 0, stage == last).forWeights();
    }
    for (size_t group = 0; group < groups.size() && left > 0; ++group)
      for (size_t c = stage; c <= last && left > 0; c += memory.size()) {
        int64_t forwards = std::min(left, groups[group]);
        left -= forwards;
        bytes += static_cast<double>(forwards) * sizes.chunkStash(chunks.layers[c], c == 0, c == last).forBackward();
      }
    most = std::max(most, bytes);
  }
  return most;
}
