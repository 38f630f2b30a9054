//===- ExtractMicrobatch.cpp - the microbatch program as plain structs ----===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Conversion/TfmToSchedule/TfmToSchedule.h"
#include "drover/Dialect/Tfm/IR/Distribution.h"
#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace drover {
namespace {

std::optional<schedule::DType> dtypeOf(Type type) {
  if (type.isF32())
    return schedule::DType::F32;
  if (type.isBF16())
    return schedule::DType::BF16;
  if (type.isF16())
    return schedule::DType::F16;
  if (type.isF64())
    return schedule::DType::F64;
  if (auto integer = dyn_cast<IntegerType>(type))
    switch (integer.getWidth()) {
    case 64:
      return schedule::DType::I64;
    case 32:
      return schedule::DType::I32;
    case 8:
      return schedule::DType::I8;
    case 1:
      return schedule::DType::I1;
    default:
      break;
    }
  return std::nullopt;
}

/// 16 TiB: no memory holds more, and sums of such numbers do not overflow.
constexpr int64_t kMostBytes = int64_t{1} << 44;

class Extractor {
public:
  Extractor(ModuleOp module, const ModelFacts &facts, bool train)
      : module(module), symbols(module), facts(facts), train(train) {}

  FailureOr<schedule::MicrobatchProgram> run();

private:
  LogicalResult addArgument(unsigned index);
  LogicalResult addInput(BlockArgument argument, StringRef name);
  void addParameter(BlockArgument argument, StringRef name);
  LogicalResult addCall(func::CallOp call);
  LogicalResult addResult(unsigned index, Value value);
  LogicalResult addFlatBodies();
  FailureOr<uint32_t> addValue(Value value, schedule::ValueKind kind, int32_t index);
  std::vector<schedule::DimCut> cutsOf(RankedTensorType type) const;
  schedule::GridAxis tensorAxis(ArrayRef<tfm::Axis> axes) const;
  schedule::GridAxis tensorAxisWhere(llvm::function_ref<bool(tfm::Axis)> holds) const;
  void addReduction(schedule::Parameter &parameter, Type accumulator);
  std::vector<schedule::BodyOperand> operandsOf(func::FuncOp body) const;
  schedule::BodyOperand operandOf(RankedTensorType type, schedule::DType dtype, bool isResult) const;
  uint32_t bodyIndex(func::FuncOp body);

  ModuleOp module;
  SymbolTable symbols;
  const ModelFacts &facts;
  bool train;
  func::FuncOp microbatch;
  schedule::MicrobatchProgram program;
  llvm::DenseMap<Value, uint32_t> values;
  llvm::DenseMap<Operation *, uint32_t> bodies;
  llvm::StringMap<int32_t> parameters;
  tfm::Grid grid;
};

/// How the rank's part of a tensor comes about, dimension by dimension; the batch is a rank's own anyway.
std::vector<schedule::DimCut> Extractor::cutsOf(RankedTensorType type) const {
  tfm::Distribution distribution = tfm::Distribution::of(type);
  std::vector<schedule::DimCut> cuts;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    SmallVector<tfm::Axis, 4> axes = distribution.axesOf(static_cast<unsigned>(dim));
    llvm::erase(axes, tfm::Axis::Dp);
    if (!axes.empty() && axes.front() == tfm::Axis::Cp) {
      cuts.push_back({dim, schedule::GridAxis::Cp, {}});
      axes.erase(axes.begin());
    }
    tfm::SegmentsAttr layout = distribution.layoutOf(static_cast<unsigned>(dim));
    if (axes.empty() && !layout)
      continue;
    schedule::DimCut cut;
    cut.dim = dim;
    // What is padded on every rank alike (a packed projection with one kv head) is cut over an axis of one rank.
    cut.axis = axes.empty() ? schedule::GridAxis::Kv : tensorAxis(axes);
    if (layout)
      for (const tfm::PaddedSegment &segment : layout.getSegments())
        cut.segments.push_back({segment.groups, segment.valid, segment.padded, segment.total});
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

/// One name for the axes of tensor parallelism: kv and replica together are tp.
schedule::GridAxis Extractor::tensorAxis(ArrayRef<tfm::Axis> axes) const {
  bool kv = llvm::is_contained(axes, tfm::Axis::Kv), replica = llvm::is_contained(axes, tfm::Axis::Replica);
  bool isWhole = llvm::is_contained(axes, tfm::Axis::Tp) || (grid.isSplit() && (kv || grid.size(tfm::Axis::Kv) == 1) &&
                                                             (replica || grid.size(tfm::Axis::Replica) == 1));
  if (isWhole)
    return schedule::GridAxis::Tp;
  return kv ? schedule::GridAxis::Kv : replica ? schedule::GridAxis::Replica : schedule::GridAxis::None;
}

/// The name for those axes of tensor parallelism for which `holds`; none where that is no axis.
schedule::GridAxis Extractor::tensorAxisWhere(llvm::function_ref<bool(tfm::Axis)> holds) const {
  SmallVector<tfm::Axis, 2> axes;
  for (tfm::Axis axis : grid.tensorAxes())
    if (holds(axis))
      axes.push_back(axis);
  return axes.empty() ? schedule::GridAxis::None : tensorAxis(axes);
}

/// What is still to be reduced of a parameter's gradient beside cp and dp, and who counts it, off the accumulator's
/// type.
void Extractor::addReduction(schedule::Parameter &parameter, Type accumulator) {
  tfm::Distribution distribution = tfm::Distribution::of(accumulator);
  parameter.sum = tensorAxisWhere([&](tfm::Axis axis) { return distribution[axis].isPartial(); });
  parameter.replicated = tensorAxisWhere([&](tfm::Axis axis) { return !distribution[axis].isSharded(); });
}

FailureOr<uint32_t> Extractor::addValue(Value value, schedule::ValueKind kind, int32_t index) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  std::optional<schedule::DType> dtype = type ? dtypeOf(type.getElementType()) : std::nullopt;
  if (!dtype || !type.hasStaticShape())
    return emitError(value.getLoc(), "expects a static tensor of a type that the runtime knows, not ")
           << value.getType();
  schedule::Value entry;
  entry.kind = kind;
  entry.index = index;
  entry.dtype = *dtype;
  entry.bytes = schedule::bytesOf(*dtype);
  for (int64_t size : type.getShape())
    if (__builtin_mul_overflow(entry.bytes, size, &entry.bytes) || entry.bytes > kMostBytes)
      return emitError(value.getLoc(), "expects tensors of up to ")
             << kMostBytes << " bytes, not " << type << ": a size of the model or plan is too large";
  entry.logits = kind == schedule::ValueKind::Result && type.getRank() == 3 && facts.vocabulary > 0 &&
                 tfm::Distribution::of(type).globalSize(2, type.getDimSize(2), grid) == facts.vocabulary;
  program.values.push_back(entry);
  auto number = static_cast<uint32_t>(program.values.size() - 1);
  values[value] = number;
  return number;
}

schedule::BodyOperand Extractor::operandOf(RankedTensorType type, schedule::DType dtype, bool isResult) const {
  schedule::BodyOperand operand{dtype, type.getShape().vec(), cutsOf(type), {}, isResult};
  tfm::Distribution distribution = tfm::Distribution::of(type);
  schedule::GridAxis sum = tensorAxisWhere([&](tfm::Axis axis) { return distribution[axis].isPartial(); });
  if (sum != schedule::GridAxis::None)
    operand.partial.push_back(sum);
  if (distribution[tfm::Axis::Cp].isPartial())
    operand.partial.push_back(schedule::GridAxis::Cp);
  return operand;
}

/// Arguments, then the results that are not in an argument's memory: the order of a call's operands. Empty for flat
/// bodies, which have no size of their own.
std::vector<schedule::BodyOperand> Extractor::operandsOf(func::FuncOp body) const {
  std::vector<schedule::BodyOperand> operands;
  auto add = [&](Type type, bool isResult) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    std::optional<schedule::DType> dtype = tensor ? dtypeOf(tensor.getElementType()) : std::nullopt;
    if (!dtype || !tensor.hasStaticShape())
      return false;
    operands.push_back(operandOf(tensor, *dtype, isResult));
    return true;
  };
  for (Type type : body.getArgumentTypes())
    if (!add(type, /*isResult=*/false))
      return {};
  for (auto [index, type] : llvm::enumerate(body.getResultTypes()))
    if (!body.getResultAttr(index, tfm::TfmDialect::kInplaceAttr) && !add(type, /*isResult=*/true))
      return {};
  return operands;
}

uint32_t Extractor::bodyIndex(func::FuncOp body) {
  auto [known, isNew] = bodies.insert({body, static_cast<uint32_t>(program.bodies.size())});
  if (isNew) {
    schedule::Body entry;
    entry.name = body.getName().str();
    body.walk([&](tfm::CostOpInterface op) {
      // Flat bodies have no size yet and no model FLOPs.
      if (llvm::all_of(op->getOperandTypes(), [](Type type) { return cast<ShapedType>(type).hasStaticShape(); })) {
        entry.flops += op.getFlops();
        entry.bytes += op.getBytes();
      }
    });
    entry.operands = operandsOf(body);
    program.bodies.push_back(entry);
  }
  return known->second;
}

LogicalResult Extractor::addInput(BlockArgument argument, StringRef name) {
  schedule::Input input;
  input.name = name.str();
  if (failed(addValue(argument, schedule::ValueKind::Input, static_cast<int32_t>(program.inputs.size()))))
    return failure();
  input.dtype = program.values.back().dtype;
  input.shape = cast<RankedTensorType>(argument.getType()).getShape().vec();
  if (auto dim = microbatch.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), tfm::TfmDialect::kCutDimAttr))
    input.cutDim = dim.getInt();
  auto role = [&](const char *what, const char *fill) {
    input.role = what;
    input.fill = train ? fill : "";
  };
  if (name == facts.tokens)
    role("tokens", "tokens");
  else if (train && name == "labels")
    role("labels", "labels");
  else if (train && name == "document_ids")
    role("documents", "documents");
  else if (name.contains("position"))
    role("positions", "arange");
  else if (name.contains("mask"))
    role("mask", "ones");
  else if (!train)
    role("other", "");
  else
    return emitError(argument.getLoc(), "the training step has no value for the input '")
           << name << "': give one by --input=" << name << "=ones|zeros|arange|FILE.npy";
  program.inputs.push_back(std::move(input));
  return success();
}

void Extractor::addParameter(BlockArgument argument, StringRef name) {
  schedule::Parameter parameter;
  parameter.name = name.str();
  auto type = cast<RankedTensorType>(argument.getType());
  parameter.shape = type.getShape().vec();
  if (auto global =
          microbatch.getArgAttrOfType<DenseI64ArrayAttr>(argument.getArgNumber(), tfm::TfmDialect::kGlobalShapeAttr)) {
    parameter.localShape = std::move(parameter.shape);
    parameter.shape = global.asArrayRef().vec();
    parameter.cut = cutsOf(type);
  }
  parameter.decay = parameter.shape.size() >= 2;
  InitialValue initial = facts.initialValues.lookup(name);
  parameter.initNormal = initial.normal;
  parameter.initValue = initial.value;
  unsigned index = argument.getArgNumber();
  if (auto aliases = microbatch.getArgAttrOfType<ArrayAttr>(index, tfm::TfmDialect::kAliasesAttr))
    for (StringAttr alias : aliases.getAsRange<StringAttr>())
      parameter.aliases.push_back(alias.str());
  if (auto source = microbatch.getArgAttrOfType<tfm::SourceAttr>(index, tfm::TfmDialect::kSourceAttr))
    parameter.source =
        schedule::Source{source.getFile().str(), source.getOffset(),
                         source.getBytes(),      dtypeOf(source.getType()).value_or(schedule::DType::F32),
                         source.getTransposed(), source.getPlus().convertToDouble()};
  parameters[name] = static_cast<int32_t>(program.parameters.size());
  program.parameters.push_back(std::move(parameter));
}

LogicalResult Extractor::addArgument(unsigned index) {
  BlockArgument argument = microbatch.getArgument(index);
  auto named = [&](StringRef attr) { return microbatch.getArgAttrOfType<StringAttr>(index, attr); };
  if (StringAttr name = named(tfm::TfmDialect::kInputAttr))
    return addInput(argument, name);
  if (StringAttr name = named(tfm::TfmDialect::kParameterAttr)) {
    addParameter(argument, name);
    return addValue(argument, schedule::ValueKind::Parameter, parameters[name.getValue()]);
  }
  if (StringAttr name = named(tfm::TfmDialect::kAccumulatorAttr)) {
    auto parameter = parameters.find(name.getValue());
    if (parameter == parameters.end())
      return microbatch.emitError("has an accumulator of '") << name.getValue() << "' before that parameter";
    addReduction(program.parameters[static_cast<size_t>(parameter->second)], argument.getType());
    return addValue(argument, schedule::ValueKind::Accumulator, parameter->second);
  }
  return addValue(argument, schedule::ValueKind::Seed, -1);
}

LogicalResult Extractor::addCall(func::CallOp call) {
  auto body = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!body)
    return call.emitOpError("calls a body that is not there");
  schedule::Call entry;
  entry.body = bodyIndex(body);
  auto phase = body->getAttrOfType<StringAttr>(tfm::TfmDialect::kBodyAttr);
  entry.weightGradient = phase && phase == tfm::TfmDialect::kWeightGradientPhase;
  entry.backward = entry.weightGradient || (phase && phase == tfm::TfmDialect::kBackwardPhase);
  if (auto layer = call->getAttrOfType<IntegerAttr>(tfm::TfmDialect::kLayerAttr))
    entry.layer = static_cast<int32_t>(layer.getInt());
  for (Value operand : call.getOperands())
    entry.operands.push_back(values.at(operand));
  for (OpResult result : call.getResults()) {
    FailureOr<uint32_t> value = addValue(result, schedule::ValueKind::Result, -1);
    if (failed(value))
      return failure();
    entry.results.push_back(*value);
    auto inPlace = body.getResultAttrOfType<IntegerAttr>(result.getResultNumber(), tfm::TfmDialect::kInplaceAttr);
    entry.inPlace.push_back(inPlace ? static_cast<int32_t>(inPlace.getInt()) : -1);
  }
  program.calls.push_back(std::move(entry));
  return success();
}

LogicalResult Extractor::addResult(unsigned index, Value value) {
  auto name = microbatch.getResultAttrOfType<StringAttr>(index, tfm::TfmDialect::kOutputAttr);
  if (!name)
    return success(); // an accumulator: in place
  uint32_t number = values.at(value);
  if (program.values[number].kind != schedule::ValueKind::Result)
    return microbatch.emitError("returns an input or a parameter as output '") << name.getValue() << "'";
  if (train)
    program.loss = number;
  else
    program.outputs.push_back({name.str(), number, cast<RankedTensorType>(value.getType()).getShape().vec(),
                               cutsOf(cast<RankedTensorType>(value.getType()))});
  return success();
}

LogicalResult Extractor::addFlatBodies() {
  for (func::FuncOp body : module.getOps<func::FuncOp>()) {
    auto phase = body->getAttrOfType<StringAttr>(tfm::TfmDialect::kBodyAttr);
    if (!phase || (phase != "update" && phase != "norm"))
      continue;
    auto index = static_cast<int32_t>(bodyIndex(body));
    if (phase == "norm")
      program.normBody = index;
    else if (body.getName() == "cast_parameters")
      program.castBody = index;
    else if (body.getName() == "add_gradients")
      program.addBody = index;
    else
      program.updateBody = index;
  }
  if (train && (program.updateBody < 0 || program.normBody < 0))
    return module.emitError("expects the bodies of the optimizer and of the norm: run tfm-add-update-bodies");
  return success();
}

FailureOr<schedule::MicrobatchProgram> Extractor::run() {
  microbatch = symbols.lookup<func::FuncOp>("microbatch");
  if (!microbatch || microbatch.isExternal())
    return module.emitError("expects a function @microbatch");
  grid = tfm::Grid(module->getAttrOfType<DictionaryAttr>(tfm::TfmDialect::kGridAttr));
  program.kv = grid.isSplit() ? grid.size(tfm::Axis::Kv) : 0;
  program.train = train;
  program.vocabulary = facts.vocabulary;
  for (unsigned i = 0; i < microbatch.getNumArguments(); ++i)
    if (failed(addArgument(i)))
      return failure();
  Block &block = microbatch.front();
  for (auto call : block.getOps<func::CallOp>())
    if (failed(addCall(call)))
      return failure();
  for (auto [index, value] : llvm::enumerate(block.getTerminator()->getOperands()))
    if (failed(addResult(index, value)))
      return failure();
  if (failed(addFlatBodies()))
    return failure();
  for (const schedule::Input &input : program.inputs)
    if (input.role == "tokens")
      program.tokensPerMicrobatch =
          input.shape[0] * input.shape[1] * (input.cutDim == 1 ? grid.size(tfm::Axis::Cp) : 1);
  for (const schedule::Value &value : program.values)
    if (value.kind == schedule::ValueKind::Parameter)
      program.computeType = value.dtype;
  return std::move(program);
}

} // namespace

FailureOr<schedule::MicrobatchProgram> extractMicrobatch(ModuleOp module, const ModelFacts &facts, bool train) {
  return Extractor(module, facts, train).run();
}

} // namespace drover
