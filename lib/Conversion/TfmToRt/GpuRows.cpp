//===- GpuRows.cpp - fused kernels on blocks of threads ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A row belongs to a group of threads: one thread, a part of a warp, a warp, or a block. Thread t of a group has the
// columns (step * group + t) * width .. + width. Where what it reads fits its registers, every byte is read once and
// kept over the phases of the row; else each phase walks the columns again. Sums over rows are partial sums of fixed
// blocks of rows, in registers or in the workspace, which a second kernel adds in order.
//===----------------------------------------------------------------------===//
#include "GpuKernel.h"
#include "RowEmitter.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <numeric>

using namespace mlir;
using namespace drover;
using namespace drover::lower;

/// Bytes of the widest access of a thread.
static constexpr int64_t kAccessBytes = 16;
/// A warp takes a row of up to this many steps; longer rows are for a block.
static constexpr int64_t kWarpSteps = 4;

namespace {
/// How threads are laid over rows and columns.
struct Layout {
  int64_t width = 1;                     // elements of a step
  int64_t group = 1;                     // threads of a row
  int64_t threads = GpuKernel::kThreads; // of a block
  int64_t steps = 1;                     // of a thread along a row
  bool held = true;                      // what a row reads stays in registers, and the steps are unrolled
  bool sumsHeld = false;                 // partial column sums too
};

class GpuRowEmitter final : RowEmitter {
public:
  GpuRowEmitter(BodyEmitter &emitter, const RowProgram &program, GpuKernel &kernel)
      : RowEmitter(emitter, program, kernel), gpu(kernel) {}

  void emit();

private:
  int64_t widthLimit() const;
  int64_t numKept() const;
  void chooseLayout();
  int64_t alignedElements(const Access &access, std::optional<int64_t> gatherStride, int64_t width) const override;

  void emitFlat();
  void emitRows();
  void emitBlocksOfRows();
  void finishColumnSums();
  void emitRow(Value isRow);
  void emitPhase(unsigned phase, Value isRow);
  void emitHeldPhase(unsigned phase, Value isRow);
  void emitLoopedPhase(unsigned phase, Value isRow);
  void collectLoads(NodeId id, unsigned phase, const Step &step, llvm::SetVector<NodeId> &loads) const;
  void loadColumns(unsigned phase, Step &step, Value isActive);
  void finishReductions(ArrayRef<NodeId> reductions, ArrayRef<Value> accumulators);
  void addToPartials(Step &step, unsigned phase);
  bool needs(const Sink &sink, unsigned phase) const { return nodes[sink.node].phase == phase; }
  bool isColumnSink(const Sink &sink) const { return sink.columnSum || sink.access.colStride != 0; }
  Value neutral(NodeId reduction, int64_t width);
  Value isActive(Value column, Value isRow);
  SmallVector<const Sink *> columnSums() const;

  GpuKernel &gpu;
  Layout layout;
  Value lane;                                    // the thread's number in its group
  std::vector<Step> steps;                       // of a held row
  SmallVector<SmallVector<Value>> sums;          // of a held row: by column sum, by step
  SmallVector<std::pair<Value, Value>> partials; // by column sum: buffer, offset of the block's
};
} // namespace

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

/// Elements of the narrowest stored type that make up the widest access.
int64_t GpuRowEmitter::widthLimit() const {
  int64_t bytes = 8;
  auto visit = [&](const Access &access, Type type) {
    if (access.colStride != 0)
      bytes = std::min(bytes, bytesOf(type));
  };
  for (const Node &node : nodes)
    if (node.kind == NodeKind::Load)
      visit(node.access, node.storage);
  for (const Sink &sink : program.sinks)
    if (!sink.columnSum)
      visit(sink.access, elementTypeOf(sink.value));
  return std::min<int64_t>(kAccessBytes / bytes, 8);
}

static int64_t powerOfTwoIn(int64_t value, int64_t limit) {
  int64_t power = 1;
  while (power < limit && value % (2 * power) == 0)
    power *= 2;
  return power;
}

static int64_t ceilDiv(int64_t a, int64_t x) { return (a + x - 1) / x; }

/// Values along the row that one phase leaves to a later one.
int64_t GpuRowEmitter::numKept() const {
  llvm::DenseSet<NodeId> known, kept;
  for (unsigned phase = 0; phase < program.numPhases(); ++phase) {
    llvm::SetVector<NodeId> reached;
    SmallVector<NodeId> next;
    for (const Sink &sink : program.sinks)
      if (needs(sink, phase) && isColumnSink(sink))
        next.push_back(sink.node);
    for (NodeId id : reductionsOf(phase))
      next.push_back(nodes[id].operands[0]);
    while (!next.empty()) {
      NodeId id = next.pop_back_val();
      if (nodes[id].perRow)
        continue;
      if (known.contains(id))
        kept.insert(id);
      else if (reached.insert(id))
        llvm::append_range(next, nodes[id].operands);
    }
    known.insert(reached.begin(), reached.end());
  }
  return kept.size();
}

void GpuRowEmitter::chooseLayout() {
  int64_t cols = program.domain.cols;
  layout.width = powerOfTwoIn(cols, widthLimit());
  int64_t vectors = cols / layout.width, sums = columnSums().size();
  // What has registers of its own: what is kept from phase to phase, and sums over rows.
  int64_t kept = numKept();
  auto fits = [&](int64_t threads, int64_t steps, int64_t values) {
    // A multiprocessor has 65536 registers, a thread at most 255; the rest of it is for what is computed.
    int64_t registers = std::min<int64_t>(65536 / threads, 255);
    return steps * layout.width * std::max<int64_t>(values, 1) <= registers * 5 / 8 - 24;
  };
  if (sums == 0 && vectors <= GpuKernel::kWarp * kWarpSteps) {
    layout.group = std::min<int64_t>(llvm::PowerOf2Ceil(vectors), GpuKernel::kWarp);
    layout.steps = ceilDiv(vectors, layout.group);
    layout.held = fits(layout.threads, layout.steps, kept);
    return;
  }
  layout.held = false;
  for (int64_t threads : {256, 512, 1024}) {
    int64_t count = ceilDiv(vectors, threads);
    layout.steps = count;
    // As few threads as do the same number of steps.
    layout.threads = layout.group = ceilDiv(ceilDiv(vectors, count), GpuKernel::kWarp) * GpuKernel::kWarp;
    layout.sumsHeld = sums > 0 && fits(threads, count, kept + sums);
    layout.held = sums > 0 ? layout.sumsHeld : fits(threads, count, kept);
    if (layout.held)
      return;
  }
}

int64_t GpuRowEmitter::alignedElements(const Access &access, std::optional<int64_t> gatherStride, int64_t width) const {
  if (flat)
    return width;
  int64_t common = std::gcd(width, access.offset);
  for (int64_t stride : access.rowStrides)
    common = std::gcd(common, stride);
  if (gatherStride)
    common = std::gcd(common, *gatherStride);
  return powerOfTwoIn(common, width);
}

SmallVector<const Sink *> GpuRowEmitter::columnSums() const {
  SmallVector<const Sink *> sums;
  for (const Sink &sink : program.sinks)
    if (sink.columnSum)
      sums.push_back(&sink);
  return sums;
}

//===----------------------------------------------------------------------===//
// A row
//===----------------------------------------------------------------------===//

Value GpuRowEmitter::neutral(NodeId reduction, int64_t width) {
  const Node &node = nodes[reduction];
  return k.constant(VectorType::get({width}, node.type), KernelBuilder::neutral(node.reduction));
}

/// Whether a step from `column` on is in the row, as its group is in the domain; null where both always are.
Value GpuRowEmitter::isActive(Value column, Value isRow) {
  if (layout.steps * layout.group * layout.width == program.domain.cols)
    return isRow;
  Value inside = gpu.lessThan(column, k.index(program.domain.cols));
  return isRow ? arith::AndIOp::create(k.b, inside, isRow).getResult() : inside;
}

/// Loads along the columns that the phase needs and no earlier one has made.
void GpuRowEmitter::collectLoads(NodeId id, unsigned phase, const Step &step, llvm::SetVector<NodeId> &loads) const {
  const Node &node = nodes[id];
  if (node.perRow || step.values.contains(id))
    return;
  if (node.kind == NodeKind::Load) {
    loads.insert(id);
    return;
  }
  for (NodeId operand : node.operands)
    collectLoads(operand, phase, step, loads);
}

void GpuRowEmitter::loadColumns(unsigned phase, Step &step, Value active) {
  llvm::SetVector<NodeId> loads;
  for (const Sink &sink : program.sinks)
    if (needs(sink, phase) && isColumnSink(sink))
      collectLoads(sink.node, phase, step, loads);
  for (NodeId id : reductionsOf(phase))
    collectLoads(nodes[id].operands[0], phase, step, loads);
  if (!active || loads.empty())
    return; // where they are used
  SmallVector<Type> types;
  for (NodeId id : loads)
    types.push_back(VectorType::get({step.width}, nodes[id].type));
  auto branch = scf::IfOp::create(k.b, types, active, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(k.b);
    Step inside(step.j, step.width);
    k.b.setInsertionPointToStart(branch.thenBlock());
    SmallVector<Value> values;
    for (NodeId id : loads)
      values.push_back(vector(id, inside, phase));
    scf::YieldOp::create(k.b, values);
    k.b.setInsertionPointToStart(branch.elseBlock());
    values.clear();
    for (Type type : types)
      values.push_back(k.constant(type, 0.0));
    scf::YieldOp::create(k.b, values);
  }
  for (auto [id, value] : llvm::zip(loads, branch.getResults()))
    step.values[id] = value;
}

void GpuRowEmitter::finishReductions(ArrayRef<NodeId> reductions, ArrayRef<Value> accumulators) {
  SmallVector<Value> values;
  SmallVector<RowReduction> kinds;
  for (auto [id, accumulator] : llvm::zip(reductions, accumulators)) {
    kinds.push_back(nodes[id].reduction);
    values.push_back(k.horizontal(accumulator, kinds.back()));
  }
  for (auto [id, total] : llvm::zip(reductions, gpu.reduce(values, kinds, layout.group)))
    scalars[id] = total;
}

void GpuRowEmitter::emitHeldPhase(unsigned phase, Value isRow) {
  SmallVector<NodeId> reductions = reductionsOf(phase);
  SmallVector<Value> accumulators;
  for (NodeId id : reductions)
    accumulators.push_back(neutral(id, layout.width));
  for (auto [number, step] : llvm::enumerate(steps)) {
    Value active = isActive(step.j, isRow);
    loadColumns(phase, step, active);
    for (const Sink &sink : program.sinks)
      if (needs(sink, phase) && isColumnSink(sink))
        vector(sink.node, step, phase);
    for (auto [id, accumulator] : llvm::zip(reductions, accumulators)) {
      Value value = vector(nodes[id].operands[0], step, phase);
      if (active)
        value = arith::SelectOp::create(k.b, active, value, neutral(id, layout.width));
      accumulator = k.combine(accumulator, value, nodes[id].reduction);
    }
    for (auto [sum, sink] : llvm::enumerate(columnSums()))
      if (needs(*sink, phase))
        sums[sum][number] = arith::AddFOp::create(k.b, sums[sum][number], step.values.lookup(sink->node));
    gpu.when(active, [&, &step = step] {
      for (const Sink &sink : program.sinks)
        if (needs(sink, phase) && !sink.columnSum && sink.access.colStride != 0)
          storeStep(sink, step);
    });
  }
  if (!reductions.empty())
    finishReductions(reductions, accumulators);
}

/// Adds this row's values to the block's partial sums in the workspace, of which each thread has its own columns.
void GpuRowEmitter::addToPartials(Step &step, unsigned phase) {
  for (auto [sink, partial] : llvm::zip(columnSums(), partials)) {
    if (!needs(*sink, phase))
      continue;
    Type type = nodes[sink->node].type;
    auto [buffer, start] = partial;
    Value at = k.add(start, step.j);
    Value sum = k.load(buffer, at, type, step.width, 1, step.width);
    k.store(arith::AddFOp::create(k.b, sum, step.values.lookup(sink->node)), buffer, at, type, step.width, 1, false,
            step.width);
  }
}

void GpuRowEmitter::emitLoopedPhase(unsigned phase, Value isRow) {
  SmallVector<NodeId> reductions = reductionsOf(phase);
  SmallVector<Value> initial;
  for (NodeId id : reductions)
    initial.push_back(neutral(id, layout.width));
  Value to = k.index(program.domain.cols);
  if (isRow)
    to = arith::SelectOp::create(k.b, isRow, to, k.index(0));
  SmallVector<Value> totals =
      k.loop(k.scale(lane, layout.width), to, layout.group * layout.width, initial, [&](Value j, ValueRange carried) {
        Step step(j, layout.width);
        SmallVector<Value> accumulators = llvm::to_vector(carried);
        for (const Sink &sink : program.sinks)
          if (needs(sink, phase) && isColumnSink(sink))
            vector(sink.node, step, phase);
        for (auto [id, accumulator] : llvm::zip(reductions, accumulators))
          accumulator = k.combine(accumulator, vector(nodes[id].operands[0], step, phase), nodes[id].reduction);
        addToPartials(step, phase);
        for (const Sink &sink : program.sinks)
          if (needs(sink, phase) && !sink.columnSum && sink.access.colStride != 0)
            storeStep(sink, step);
        return accumulators;
      });
  if (!reductions.empty())
    finishReductions(reductions, totals);
}

void GpuRowEmitter::emitPhase(unsigned phase, Value isRow) {
  bool columns = !reductionsOf(phase).empty();
  for (const Sink &sink : program.sinks) {
    if (!needs(sink, phase))
      continue;
    prepare(sink.node, phase);
    if (!sink.columnSum)
      base(sink.access);
    columns |= isColumnSink(sink);
  }
  for (NodeId id : reductionsOf(phase))
    prepare(nodes[id].operands[0], phase);
  if (columns && layout.held)
    emitHeldPhase(phase, isRow);
  else if (columns)
    emitLoopedPhase(phase, isRow);
  // One thread stores what is one value a row.
  bool stores =
      llvm::any_of(program.sinks, [&](const Sink &sink) { return needs(sink, phase) && !isColumnSink(sink); });
  if (!stores)
    return;
  Value leads = layout.group > 1 ? gpu.isZero(lane) : Value();
  if (leads && isRow)
    leads = arith::AndIOp::create(k.b, leads, isRow);
  gpu.when(leads ? leads : isRow, [&] {
    for (const Sink &sink : program.sinks)
      if (needs(sink, phase) && !isColumnSink(sink))
        storeRow(sink);
  });
}

void GpuRowEmitter::emitRow(Value isRow) {
  startRow();
  steps.clear();
  for (int64_t i = 0; layout.held && i < layout.steps; ++i)
    steps.emplace_back(k.scale(k.add(lane, k.index(i * layout.group)), layout.width), layout.width);
  for (unsigned phase = 0; phase < program.numPhases(); ++phase)
    emitPhase(phase, isRow);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Threads walk all elements as one row, `width` of them each.
void GpuRowEmitter::emitFlat() {
  int64_t elements = program.domain.rows * program.domain.cols, width = widthLimit();
  bool dynamic = ShapedType::isDynamic(program.domain.cols);
  Value size = dynamic ? k.callSize() : k.index(elements);
  flatStart = k.index(0);
  Value thread = k.add(k.scale(gpu.block(), GpuKernel::kThreads), gpu.thread());
  Value start = k.scale(thread, width);
  auto element = [&](Value j, int64_t count) {
    startRow();
    Step step(j, count);
    for (const Sink &sink : program.sinks) {
      prepare(sink.node, 0);
      base(sink.access);
    }
    for (const Sink &sink : program.sinks)
      vector(sink.node, step, 0);
    for (const Sink &sink : program.sinks)
      storeStep(sink, step);
  };
  bool whole = !dynamic && elements % (width * GpuKernel::kThreads) == 0;
  Value isWhole = whole ? Value() : gpu.lessThan(k.add(start, k.index(width - 1)), size);
  gpu.when(isWhole, [&] { element(start, width); });
  if (dynamic || elements % width != 0) {
    // The last few, one by one.
    Value isLast =
        arith::AndIOp::create(k.b, gpu.lessThan(start, size), gpu.lessThan(size, k.add(start, k.index(width))));
    gpu.when(isLast, [&] {
      k.loop(start, size, 1, {}, [&](Value j, ValueRange) {
        element(j, 1);
        return SmallVector<Value>();
      });
    });
  }
  int64_t perBlock = width * GpuKernel::kThreads;
  if (!dynamic)
    return gpu.launchBlocks(ceilDiv(elements, perBlock), GpuKernel::kThreads);
  ImplicitLocOpBuilder &body = emitter.body;
  Value count = rt::CallSizeOp::create(body, body.getIndexType(), emitter.call);
  Value padded = arith::AddIOp::create(body, count, emitter.index(perBlock - 1));
  gpu.launchBlocks(arith::DivUIOp::create(body, padded, emitter.index(perBlock)), GpuKernel::kThreads);
}

void GpuRowEmitter::emitRows() {
  int64_t rows = program.domain.rows;
  if (layout.group == layout.threads) {
    row = gpu.block();
    lane = gpu.thread();
    emitRow({});
    return gpu.launchBlocks(rows, layout.threads);
  }
  Value thread = k.add(k.scale(gpu.block(), layout.threads), gpu.thread()), group = k.index(layout.group);
  Value number = arith::DivUIOp::create(k.b, thread, group);
  lane = arith::RemUIOp::create(k.b, thread, group);
  int64_t perBlock = layout.threads / layout.group;
  Value isRow = rows % perBlock == 0 ? Value() : gpu.lessThan(number, k.index(rows));
  if (layout.group == 1) {
    row = number;
    gpu.when(isRow, [&] { emitRow({}); });
  } else {
    // All lanes take part in reductions: those past the last row work on it and store nothing.
    row = isRow ? arith::SelectOp::create(k.b, isRow, number, k.index(rows - 1)).getResult() : number;
    emitRow(isRow);
  }
  gpu.launchBlocks(ceilDiv(rows, perBlock), layout.threads);
}

/// A block walks its rows, and then stores its partial sums over them.
void GpuRowEmitter::emitBlocksOfRows() {
  Domain domain = program.domain;
  int64_t rows = columnSumRows(domain, Target::Cuda), blocks = columnSumBlocks(domain, Target::Cuda);
  lane = gpu.thread();
  SmallVector<const Sink *> all = columnSums();
  for (auto [number, sink] : llvm::enumerate(all))
    partials.push_back({k.argument(emitter.scratch(number)), k.scale(gpu.block(), domain.cols)});
  // Stores what `value` gives for each sum and step.
  auto storePartials = [&](function_ref<Value(size_t sum, size_t step)> value) {
    for (int64_t i = 0; i < layout.steps; ++i) {
      Value j = k.scale(k.add(lane, k.index(i * layout.group)), layout.width);
      gpu.when(isActive(j, {}), [&] {
        for (auto [number, sink] : llvm::enumerate(all))
          k.store(value(number, i), partials[number].first, k.add(partials[number].second, j), nodes[sink->node].type,
                  layout.width, 1, false, layout.width);
      });
    }
  };
  auto zero = [&](size_t sum, size_t) {
    return k.constant(VectorType::get({layout.width}, nodes[all[sum]->node].type), 0.0);
  };
  if (!layout.sumsHeld)
    storePartials(zero);
  SmallVector<Value> initial;
  if (layout.sumsHeld)
    for (size_t sum = 0; sum < all.size(); ++sum)
      for (int64_t i = 0; i < layout.steps; ++i)
        initial.push_back(zero(sum, i));
  Value from = k.scale(gpu.block(), rows), to = k.add(from, k.index(rows));
  if (rows * blocks != domain.rows)
    to = arith::MinUIOp::create(k.b, to, k.index(domain.rows));
  SmallVector<Value> totals = k.loop(from, to, 1, initial, [&](Value i, ValueRange carried) {
    row = i;
    sums.assign(all.size(), SmallVector<Value>(layout.steps));
    for (auto [number, value] : llvm::enumerate(carried))
      sums[number / layout.steps][number % layout.steps] = value;
    emitRow({});
    if (program.numPhases() > 1)
      gpu.barrier(); // the next row's reductions use the same shared memory
    SmallVector<Value> next;
    if (layout.sumsHeld)
      for (ArrayRef<Value> sum : sums)
        llvm::append_range(next, sum);
    return next;
  });
  if (layout.sumsHeld)
    storePartials([&](size_t sum, size_t step) { return totals[sum * layout.steps + step]; });
  gpu.launchBlocks(blocks, layout.threads);
  finishColumnSums();
}

/// Adds the blocks' partial sums in order, into the results or the accumulators: a thread a column.
void GpuRowEmitter::finishColumnSums() {
  GpuKernel f(emitter);
  int64_t cols = program.domain.cols, blocks = columnSumBlocks(program.domain, Target::Cuda);
  f.indices([&](Value column) {
    for (auto [number, sink] : llvm::enumerate(columnSums())) {
      Type type = nodes[sink->node].type, targetType = elementTypeOf(sink->value);
      Value partial = f.argument(emitter.scratch(number));
      tfm::AccumulateOp accumulate = sink->accumulate;
      Value target = f.buffer(accumulate ? accumulate.getAccumulator() : sink->value);
      Value sum = f.loop(f.index(0), f.index(blocks), 1, f.constant(type, 0.0), [&](Value block, ValueRange carried) {
        Value next = f.load(partial, f.add(f.scale(block, cols), column), type);
        return SmallVector<Value>{arith::AddFOp::create(f.b, carried[0], next)};
      })[0];
      if (accumulate) // an accumulator has no contents before its first sum
        sum = f.either(f.callAccumulates(), sum,
                       [&](Value sum) { return arith::AddFOp::create(f.b, f.load(target, column, targetType), sum); });
      f.store(sum, target, column, targetType);
    }
  });
  f.launch(cols, 1);
}

void GpuRowEmitter::emit() {
  if (flat)
    return emitFlat();
  chooseLayout();
  if (layout.held)
    gpu.setResidentBlocks(1); // rather than spill for one more
  if (program.hasColumnSums())
    emitBlocksOfRows();
  else
    emitRows();
}

void lower::emitGpuRows(BodyEmitter &emitter, const RowProgram &program) {
  GpuKernel kernel(emitter);
  GpuRowEmitter(emitter, program, kernel).emit();
}
