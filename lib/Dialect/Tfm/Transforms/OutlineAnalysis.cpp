//===- OutlineAnalysis.cpp - where a model repeats --------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "OutlineAnalysis.h"

using namespace mlir;
using namespace drover::tfm;

OutlineAnalysis::OutlineAnalysis(func::FuncOp model, bool findRepetitions)
    : model(model), block(model.getBody().front()) {
  classify();
  orderStream();
  cut();
  placeRemainingResults();
  if (findRepetitions)
    findLayers();
}

/// The stream is what depends on inputs and on parameters. The rest is computed again where it is used, so
/// that masks, positions and transposed weights do not cross bodies.
void OutlineAnalysis::classify() {
  enum : unsigned { FromInput = 1, FromParameter = 2 };
  DenseMap<Value, unsigned> origins;
  for (BlockArgument argument : block.getArguments())
    origins[argument] =
        model.getArgAttr(argument.getArgNumber(), TfmDialect::kParameterAttr) ? FromParameter : FromInput;
  for (Operation &op : block.without_terminator()) {
    unsigned origin = 0;
    for (Value operand : op.getOperands())
      origin |= origins.lookup(operand);
    for (Value result : op.getResults())
      origins[result] = origin;
    if (origin == (FromInput | FromParameter))
      streamOps.insert(&op);
  }
  if (streamOps.empty())
    for (Operation &op : block.without_terminator())
      streamOps.insert(&op);
}

/// Depth first from the result with the most ancestors: then everything a cut value depends on stands before
/// it, whatever the order in the file, and equal layers have equal orders.
void OutlineAnalysis::orderStream() {
  auto visit = [&](Value root, SetVector<Operation *> &order) {
    SmallVector<std::pair<Operation *, unsigned>> stack;
    auto push = [&](Value value) {
      Operation *op = value.getDefiningOp();
      if (op && onStream(op) && !order.contains(op))
        stack.push_back({op, 0});
    };
    push(root);
    while (!stack.empty()) {
      auto &[op, next] = stack.back();
      if (order.contains(op) || next == op->getNumOperands()) {
        order.insert(op);
        stack.pop_back();
        continue;
      }
      push(op->getOperand(next++));
    }
  };
  for (Value result : block.getTerminator()->getOperands()) {
    SetVector<Operation *> order;
    visit(result, order);
    if (order.size() > ordered.size())
      ordered = std::move(order);
  }
}

/// Ends a segment wherever a single value is live.
void OutlineAnalysis::cut() {
  DenseMap<Value, unsigned> lastUse;
  for (auto [index, op] : llvm::enumerate(ordered))
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp(); producer && onStream(producer))
        lastUse[operand] = index;
  DenseMap<unsigned, unsigned> ending;
  for (auto [value, index] : lastUse)
    ++ending[index];
  unsigned live = 0;
  segments.emplace_back();
  for (auto [index, op] : llvm::enumerate(ordered)) {
    segments.back().stream.push_back(op);
    segmentOf[op] = segments.size() - 1;
    live -= ending.lookup(index);
    for (Value result : op->getResults())
      live += lastUse.contains(result);
    if (live == 1 && index + 1 < ordered.size())
      segments.emplace_back();
  }
}

/// Operations that only other results need go to the segment of their last operand.
void OutlineAnalysis::placeRemainingResults() {
  SmallVector<Operation *> worklist;
  for (Value result : block.getTerminator()->getOperands())
    if (Operation *op = result.getDefiningOp())
      worklist.push_back(op);
  DenseSet<Operation *> needed;
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (!needed.insert(op).second)
      continue;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        worklist.push_back(producer);
  }
  for (Operation &op : block.without_terminator()) {
    if (!onStream(&op) || !needed.contains(&op) || ordered.contains(&op))
      continue;
    unsigned segment = 0;
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp(); producer && onStream(producer))
        segment = std::max(segment, segmentOf.lookup(producer));
    segmentOf[&op] = segment;
    segments[segment].stream.push_back(&op);
  }
}

unsigned OutlineAnalysis::groupOf(Value operand) {
  auto argument = dyn_cast<BlockArgument>(operand);
  if (!argument)
    return 0;
  return model.getArgAttr(argument.getArgNumber(), TfmDialect::kParameterAttr) ? 2 : 1;
}

BodyShape OutlineAnalysis::shapeOf(const Segment &segment) {
  BodyShape shape;
  DenseSet<Operation *> inside;
  // Producers that are computed again stand right before their first use.
  auto include = [&](auto &&self, Operation *op) -> void {
    if (!inside.insert(op).second)
      return;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp(); producer && !onStream(producer))
        self(self, producer);
    shape.operations.push_back(op);
  };
  for (Operation *op : segment.stream)
    include(include, op);
  Operation *terminator = block.getTerminator();
  bool last = segments.empty() || segment.stream.empty() || segment.stream.back() == segments.back().stream.back();
  if (last) // A result that is no part of the stream has no segment of its own.
    for (Value result : terminator->getOperands())
      if (Operation *op = result.getDefiningOp(); op && !onStream(op))
        include(include, op);

  SetVector<Value> groups[3];
  for (Operation *op : shape.operations)
    for (Value operand : op->getOperands())
      if (isa<BlockArgument>(operand) || !inside.contains(operand.getDefiningOp()))
        groups[groupOf(operand)].insert(operand);
  for (const SetVector<Value> &group : groups)
    llvm::append_range(shape.operands, group);

  for (Operation *op : shape.operations)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return user == terminator ? onStream(op) || last : onStream(op) && !inside.contains(user);
          }))
        shape.results.push_back(result);
  shape.key = keyOf(shape, /*withAttributes=*/true);
  return shape;
}

std::vector<uintptr_t> OutlineAnalysis::keyOf(const BodyShape &shape, bool withAttributes) {
  std::vector<uintptr_t> key;
  DenseMap<Value, uintptr_t> number;
  auto add = [&](uintptr_t value) { key.push_back(value); };
  auto addPointer = [&](const void *pointer) { add(reinterpret_cast<uintptr_t>(pointer)); };
  for (Value operand : shape.operands) {
    add(groupOf(operand));
    addPointer(operand.getType().getAsOpaquePointer());
    number.try_emplace(operand, number.size());
  }
  for (Operation *op : shape.operations) {
    addPointer(op->getName().getAsOpaquePointer());
    if (withAttributes)
      addPointer(op->getAttrDictionary().getAsOpaquePointer());
    add(op->getNumOperands());
    for (Value operand : op->getOperands())
      add(number.lookup(operand));
    for (Value result : op->getResults()) {
      addPointer(result.getType().getAsOpaquePointer());
      number.try_emplace(result, number.size());
    }
  }
  for (Value result : shape.results)
    add(number.lookup(result));
  return key;
}

void OutlineAnalysis::findLayers() {
  std::map<std::vector<uintptr_t>, unsigned> numbers;
  SmallVector<unsigned> keys, weights;
  for (const Segment &segment : segments) {
    auto key = keyOf(shapeOf(segment), /*withAttributes=*/false);
    keys.push_back(numbers.try_emplace(std::move(key), numbers.size()).first->second);
    weights.push_back(segment.stream.size());
  }
  Repetition repetition = findRepetition(keys, weights);
  firstLayer = repetition.first;
  period = repetition.period;
  numLayers = repetition.count;
  if (numLayers == 0)
    findSingleLayer();
}

/// A branch beside the stream: a segment that uses what it is given more than once, and hands on a value of that type.
bool OutlineAnalysis::isResidual(const Segment &segment) {
  DenseMap<Value, unsigned> uses;
  for (Operation *op : segment.stream)
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp();
          producer && onStream(producer) && segmentOf.lookup(producer) != segmentOf.lookup(op))
        ++uses[operand];
  return llvm::any_of(uses, [&](const auto &entry) {
    return entry.second > 1 && llvm::is_contained(segment.stream.back()->getResultTypes(), entry.first.getType());
  });
}

/// Where nothing repeats, what begins with the first attention and ends with the last branch beside the stream is one
/// layer.
void OutlineAnalysis::findSingleLayer() {
  auto hasAttention = [](const Segment &segment) { return llvm::any_of(segment.stream, llvm::IsaPred<AttentionOp>); };
  const auto *first = llvm::find_if(segments, hasAttention);
  const auto *last = segments.end();
  while (last != first && !isResidual(*std::prev(last)))
    --last;
  if (first == last)
    return;
  firstLayer = first - segments.begin();
  period = last - first;
  numLayers = 1;
}

SmallVector<OutlineAnalysis::Part> OutlineAnalysis::takeParts() {
  SmallVector<Part> parts;
  auto addPart = [&](Part::Kind kind, unsigned begin, unsigned end) {
    Part part{kind, {}};
    for (unsigned index = begin; index < end; ++index)
      llvm::append_range(part.segment.stream, segments[index].stream);
    if (!part.segment.stream.empty())
      parts.push_back(std::move(part));
  };
  if (numLayers == 0) {
    addPart(Part::Layer, 0, segments.size());
    return parts;
  }
  addPart(Part::Prologue, 0, firstLayer);
  for (unsigned layer = 0; layer < numLayers; ++layer)
    addPart(Part::Layer, firstLayer + layer * period, firstLayer + (layer + 1) * period);
  addPart(Part::Epilogue, firstLayer + numLayers * period, segments.size());
  return parts;
}

Repetition drover::tfm::findRepetition(ArrayRef<unsigned> keys, ArrayRef<unsigned> weights) {
  // A period is the distance of two neighbouring occurrences of one key.
  llvm::SmallSetVector<unsigned, 8> periods;
  DenseMap<unsigned, unsigned> previous;
  for (auto [index, key] : llvm::enumerate(keys)) {
    auto [it, isNew] = previous.try_emplace(key, index);
    if (!isNew)
      periods.insert(index - it->second);
    it->second = index;
  }
  SmallVector<unsigned> sorted(periods.begin(), periods.end());
  llvm::sort(sorted);

  Repetition best;
  int64_t bestScore = 0;
  for (unsigned period : sorted) {
    auto similar = [&](unsigned group) { // to the group before it
      return llvm::any_of(llvm::seq(0u, period),
                          [&](unsigned i) { return keys[group + i] == keys[group - period + i]; });
    };
    for (unsigned first = 0; first + 2 * period <= keys.size(); ++first) {
      if (first >= period && similar(first))
        continue; // the chain starts earlier
      unsigned count = 1;
      while (first + (count + 1) * period <= keys.size() && similar(first + count * period))
        ++count;
      if (count < 2)
        continue;
      int64_t score = 0;
      for (unsigned position = 0; position < period; ++position) {
        DenseMap<unsigned, unsigned> occurrences;
        for (unsigned group = 0; group < count; ++group)
          ++occurrences[keys[first + group * period + position]];
        for (unsigned group = 0; group < count; ++group) {
          unsigned index = first + group * period + position;
          int64_t weight = weights[index];
          score += occurrences[keys[index]] > 1 ? weight : -weight;
        }
      }
      if (score > bestScore) {
        bestScore = score;
        best = {first, period, count};
      }
    }
  }
  return best;
}
