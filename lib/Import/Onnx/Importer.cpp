//===- Importer.cpp - inputs, symbols, the function -----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Importer.h"
#include "drover/Support/Npy.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace mlir;

namespace drover::onnx {

Location Importer::fileLocation() const { return FileLineColLoc::get(&context, options.path, 0, 0); }

Location Importer::locationOf(const Node &node) const {
  StringRef name = !node.name.empty() ? node.name : node.outputs.empty() ? StringRef("?") : node.outputs.front();
  return NameLoc::get(StringAttr::get(&context, name), fileLocation());
}

bool Importer::error(Location location, const Twine &message) {
  emitError(location) << message;
  return false;
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

/// What the file calls a dimension.
static std::string dimName(const ValueInfo &info, size_t index) {
  StringRef param = (*info.shape)[index].param.trim();
  return param.empty() ? (info.name + "_dim" + Twine(index)).str() : param.str();
}

Expr Importer::dimOf(const ValueInfo &info, size_t index) {
  const Dim &dim = (*info.shape)[index];
  if (dim.value)
    return *dim.value;
  if (!dim.param.empty())
    return symbols.resolve(symbols.parse(dim.param));
  return symbols.symbol(dimName(info, index));
}

/// There may be no past, which is the inner size of a float input; token ids, positions, a batch and what is computed
/// of them are never empty.
Error Importer::checkDim(StringRef name, int64_t value) const {
  if (value > 0)
    return Error::success();
  auto check = [&](const ValueInfo &info, StringRef role, bool mayBePast) -> Error {
    if (info.shape)
      for (auto [index, dim] : enumerate(*info.shape))
        if (!(mayBePast && index > 0) && !dim.value && dimName(info, index) == name)
          return createStringError("--dim=" + name + "=" + Twine(value) + ": the " + role + " '" + info.name +
                                   "' would be empty, expected 1 or more");
    return Error::success();
  };
  for (const ValueInfo &info : model.graph.inputs)
    if (Error error = check(info, "input", isFloat(info.type)))
      return error;
  for (const ValueInfo &info : model.graph.outputs)
    if (Error error = check(info, "output", false))
      return error;
  return Error::success();
}

/// The symbols of all inputs in order, then --dim. A cache model traced at length 1 writes
/// `past_sequence_length + 1` where it means past + sequence (DESIGN section 6).
Error Importer::prepareSymbols() {
  llvm::StringSet<> initialized;
  for (const Tensor &tensor : model.graph.initializers)
    initialized.insert(tensor.name);
  std::vector<const ValueInfo *> inputs;
  for (const ValueInfo &info : model.graph.inputs)
    if (!initialized.contains(info.name) && info.shape)
      inputs.push_back(&info);
  std::optional<std::string> sequence;
  for (const ValueInfo *info : inputs)
    for (const Dim &dim : *info->shape)
      if (dim.param == "sequence_length" || dim.param == "seq_len" || dim.param == "sequence" || dim.param == "seq")
        sequence = sequence ? sequence : dim.param.str();
  for (const ValueInfo *info : inputs)
    for (Dim &dim : *const_cast<ValueInfo *>(info)->shape) {
      StringRef rest = dim.param;
      if (sequence && rest.consume_back("+ 1") && rest.trim().contains("past")) {
        symbols.parse(rest);
        std::string &text = rewrittenDims.emplace_back((rest.trim() + " + " + *sequence).str());
        dim.param = text;
      }
    }
  for (const ValueInfo *info : inputs)
    for (size_t i = 0; i < info->shape->size(); ++i)
      dimOf(*info, i);
  for (const auto &[name, value] : options.dims) {
    std::optional<unsigned> atom;
    for (auto [number, candidate] : enumerate(symbols.getAtoms()))
      if (candidate.kind == SymbolTable::Kind::Symbol && candidate.name == name)
        atom = number;
    if (!atom || !symbols.bind(*atom, value)) {
      std::vector<std::string> known;
      for (const SymbolTable::Atom &candidate : symbols.getAtoms())
        if (candidate.kind == SymbolTable::Kind::Symbol)
          known.push_back(candidate.name);
      return createStringError("--dim=" + name + ": the model has no symbolic size of this name, " +
                               (known.empty() ? std::string("it has none") : "it has " + join(known, ", ")));
    }
    if (Error error = checkDim(name, value))
      return error;
  }
  for (const auto &[name, constant] : options.inputs)
    if (none_of(model.graph.inputs, [&, &wanted = name](const ValueInfo &info) { return info.name == wanted; })) {
      std::vector<std::string> known;
      for (const ValueInfo *info : inputs)
        known.push_back(info->name.str());
      return createStringError("--input=" + name + ": the model has no input of this name, it has " +
                               join(known, ", "));
    }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Inputs and initializers
//===----------------------------------------------------------------------===//

Value Importer::constantInput(const ValueInfo &info, ArrayRef<Expr> shape, const ConstantInput &constant) {
  switch (constant.kind) {
  case ConstantInput::Kind::Ones:
    return builder->uniform(info.type, shape, 1);
  case ConstantInput::Kind::Zeros:
    return builder->uniform(info.type, shape, 0);
  case ConstantInput::Kind::Arange:
    if (shape.empty())
      return builder->uniform(info.type, shape, 0);
    return builder->iota(info.type, shape, shape.size() - 1);
  case ConstantInput::Kind::File:
    break;
  }
  Expected<drover::Tensor> array = drover::readNpy(constant.path);
  if (!array) {
    builder->fail("--input=" + info.name + ": " + toString(array.takeError()));
    return {};
  }
  // A .npy file has no bf16 and holds unsigned numbers as signed ones: the kinds must agree, then the
  // values are converted.
  Shape have(array->shape.begin(), array->shape.end());
  if (drover::isFloat(array->kind) != isFloat(info.type) || have.size() != shape.size()) {
    builder->fail("--input=" + info.name + ": '" + constant.path + "' has " + name(array->kind) +
                  " elements and rank " + Twine(have.size()) + ", the input " + str(info.type) + " and rank " +
                  Twine(shape.size()));
    return {};
  }
  for (auto [index, size] : enumerate(have)) {
    if (size.is(0) && !(isFloat(info.type) && index > 0)) // as checkDim
      builder->fail("would be empty, expected sizes of 1 and more");
    else
      builder->unify(shape[index], size);
  }
  if (!builder->error.empty()) {
    builder->error = ("--input=" + info.name + ": '" + constant.path + "': " + builder->error).str();
    return {};
  }
  Known known;
  for (double value : array->floats)
    known.floats.push_back(roundTo(info.type, value));
  known.ints.assign(array->ints.begin(), array->ints.end());
  Value value = builder->fromKnown(info.type, have, std::move(known));
  if (array->size() > TensorBuilder::maxKnown) {
    value.ir = builder->materialize(value);
    value.known = nullptr;
  }
  return value;
}

bool Importer::addInput(const ValueInfo &info, size_t index, Scope &scope) {
  if (info.kind == ValueInfo::Other || !byteSize(info.type))
    return error(fileLocation(), "input '" + info.name + "' is not a tensor of numbers, which is not supported");
  if (!info.shape)
    return error(fileLocation(),
                 "input '" + info.name + "' has no shape; run ONNX shape inference, or export with one");
  Shape shape;
  for (size_t i = 0; i < info.shape->size(); ++i)
    shape.push_back(dimOf(info, i));
  Expr elements = 1;
  for (auto [size, dim] : zip(shape, *info.shape)) {
    // --dim may say that there is no past; a file that fixes a size at 0 is a mistake.
    if (!size.isValid() || symbols.sign(size) == Sign::Negative || (size.is(0) && dim.value))
      return error(fileLocation(),
                   "input '" + info.name + "' has the size " + symbols.str(size) + ", expected sizes of 1 and more");
    if (size.isConstant())
      elements = elements * size;
  }
  if (!elements.isValid() || *elements.constant() > (int64_t(1) << 50))
    return error(fileLocation(), "input '" + info.name + "' has more than 2^50 elements");
  auto constant = options.inputs.find(info.name.str());
  if (constant != options.inputs.end()) {
    scope[info.name] = constantInput(info, shape, constant->second);
    if (!builder->error.empty())
      return error(fileLocation(), builder->error);
    return !builder->failed();
  }
  Block *block = builder->builder.getBlock();
  Value value =
      builder->wrap(block->addArgument(builder->tensorType(info.type, shape), builder->location), info.type, shape, {});
  value.hidden = isFloat(info.type);
  scope[info.name] = value;
  inputArguments.push_back({info.name.str(), shape});
  return true;
}

Value Importer::initializerValue(const Tensor &tensor) {
  Value value;
  value.type = tensor.type;
  value.shape.assign(tensor.dims.begin(), tensor.dims.end());
  value.name = tensor.name;
  int64_t count = tensor.count();
  if (parameters->refuseEmpty(tensor))
    return {};
  bool isParameter =
      isFloat(tensor.type) && !tensor.dims.empty() && names->kindOf(tensor.name) == ParameterNames::Kind::Parameter;
  if (!isParameter && count <= (isFloat(tensor.type) ? 1 : TensorBuilder::maxKnown)) {
    Expected<StringRef> bytes = data->bytes(tensor);
    if (!bytes) {
      builder->fail(toString(bytes.takeError()));
      return {};
    }
    if (isFloat(tensor.type) && count == 1 && parameters->uses.lookup(&tensor))
      parameters->noteScalar(tensor);
    return builder->fromKnown(tensor.type, value.shape, decode(tensor.type, *bytes, count));
  }
  value.initializer = &tensor;
  return value;
}

bool Importer::addInitializers(const Graph &graph, Scope &scope) {
  for (const Tensor &tensor : graph.initializers) {
    if (tensor.name.empty())
      return error(fileLocation(), "an initializer has no name");
    if (!byteSize(tensor.type))
      return error(fileLocation(), "initializer '" + tensor.name + "' has elements of " + str(tensor.type) +
                                       ", which is not supported; dequantize the model");
    if (!scope.try_emplace(tensor.name, initializerValue(tensor)).second)
      return error(fileLocation(), "initializer '" + tensor.name + "' is defined twice");
    if (builder->failed())
      return error(fileLocation(), builder->error);
  }
  return true;
}

/// What the file says of an output agrees with what is computed, as far as both are numbers.
bool Importer::checkOutput(const ValueInfo &info, const Value &value) {
  if (info.kind == ValueInfo::TensorKind && info.type != ElemType::Undefined && info.type != value.type)
    return error(fileLocation(),
                 "output '" + info.name + "' is declared " + str(info.type) + ", it is computed as " + str(value.type));
  if (!info.shape)
    return true;
  if (info.shape->size() != value.shape.size())
    return error(fileLocation(), "output '" + info.name + "' is declared of rank " + Twine(info.shape->size()) +
                                     ", it is computed of rank " + Twine(value.shape.size()));
  for (auto [dim, size] : zip(*info.shape, value.shape))
    if (dim.value && size.isConstant() && !size.is(*dim.value))
      return error(fileLocation(), "output '" + info.name + "' is declared with the size " + Twine(*dim.value) +
                                       ", it is computed with " + symbols.str(size));
  return true;
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

OwningOpRef<ModuleOp> Importer::build() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(fileLocation());
  OpBuilder opBuilder(&context);
  opBuilder.setInsertionPointToEnd(module->getBody());
  auto func = func::FuncOp::create(opBuilder, fileLocation(), "model", opBuilder.getFunctionType({}, {}));
  Block *block = func.addEntryBlock();
  opBuilder.setInsertionPointToEnd(block);

  builder = std::make_unique<TensorBuilder>(symbols, opBuilder, fileLocation());
  builder->numberSymbols();
  builder->materializeInitializer = [](const Value &) -> mlir::Value {
    llvm_unreachable("operators ask for initializers through their context");
  };
  parameters->begin(*builder, *block);
  inputArguments.clear();
  unsupportedNodes.clear();
  missing.clear();
  scopes.clear();
  scopes.emplace_back();
  processed = 0;

  Scope &scope = scopes.back();
  if (!addInitializers(model.graph, scope))
    return {};
  llvm::StringSet<> given;
  for (auto [index, info] : enumerate(model.graph.inputs)) {
    if (!given.insert(info.name).second) {
      error(fileLocation(), "input '" + info.name + "' is declared twice");
      return {};
    }
    // IR 3 lists initializers as inputs, too.
    if (scope.count(info.name) && !isConstantInput(info.name))
      continue;
    if (!addInput(info, index, scope))
      return {};
  }
  std::vector<StringRef> results;
  for (const ValueInfo &output : model.graph.outputs)
    results.push_back(output.name);
  if (results.empty()) {
    error(fileLocation(), "the graph has no outputs");
    return {};
  }
  if (!processNodes(model.graph.nodes, results, ""))
    return {};
  if (!unsupportedNodes.empty()) {
    reportUnsupported();
    return {};
  }
  SmallVector<mlir::Value> values;
  static const Node none;
  for (const ValueInfo &output : model.graph.outputs) {
    const Value *value = lookup(output.name);
    if (!value) {
      error(fileLocation(), "output '" + output.name + "' is not defined");
      return {};
    }
    if (!checkOutput(output, *value))
      return {};
    Value result = *value;
    if (result.initializer)
      result.ir = parameters->materialize(none, result);
    values.push_back(builder->materialize(result));
  }
  if (builder->failed()) {
    if (!builder->restart)
      error(fileLocation(), builder->error);
    return {};
  }
  func::ReturnOp::create(opBuilder, fileLocation(), values);
  SmallVector<Type> types(block->getArgumentTypes());
  func.setType(opBuilder.getFunctionType(types, TypeRange(values)));
  if (!finish(*module, func) || failed(verify(*module)))
    return {};
  return module;
}

bool Importer::finish(ModuleOp module, func::FuncOp func) {
  OpBuilder opBuilder(&context);
  // Merge what several nodes have made alike, then drop what nothing reads, users first.
  IRRewriter rewriter(&context);
  DominanceInfo dominance(func);
  eliminateCommonSubExpressions(rewriter, dominance, func);
  for (Operation &op : make_early_inc_range(reverse(func.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();

  if (std::vector<std::string> symbolNames = builder->symbolNames(); !symbolNames.empty()) {
    SmallVector<StringRef> refs(symbolNames.begin(), symbolNames.end());
    module->setAttr(tfm::TfmDialect::kSymbolsAttr, opBuilder.getStrArrayAttr(refs));
    report.symbols = symbolNames;
  }
  // All at once at the end: each setArgAttr would copy the list.
  std::vector<NamedAttrList> attributes(func.getNumArguments());
  for (auto [index, input] : enumerate(inputArguments)) {
    attributes[index].set(tfm::TfmDialect::kInputAttr, opBuilder.getStringAttr(input.first));
    if (AffineMapAttr map = builder->shapeMap(input.second))
      attributes[index].set(tfm::TfmDialect::kShapeAttr, map);
  }
  for (auto [index, output] : enumerate(model.graph.outputs))
    func.setResultAttr(index, tfm::TfmDialect::kOutputAttr, opBuilder.getStringAttr(output.name));
  BitVector unused(func.getNumArguments());
  for (auto [index, argument] : enumerate(parameters->getArguments())) {
    unsigned position = inputArguments.size() + index;
    if (func.getArgument(position).use_empty()) {
      unused.set(position);
      continue;
    }
    attributes[position].set(tfm::TfmDialect::kParameterAttr, opBuilder.getStringAttr(argument.name));
    SmallVector<StringRef> aliases;
    for (const ImportReport::Tie &tie : report.ties)
      if (tie.name == argument.name)
        aliases.push_back(tie.with);
    if (!aliases.empty())
      attributes[position].set(tfm::TfmDialect::kAliasesAttr, opBuilder.getStrArrayAttr(aliases));
    ImportReport::Parameter entry;
    entry.name = argument.name;
    entry.initializer = argument.tensor->name.str();
    raw_string_ostream(entry.shape) << func.getArgument(position).getType();
    Expected<tfm::SourceAttr> source = parameters->source(argument);
    if (!source)
      return error(fileLocation(), toString(source.takeError()));
    if (*source)
      attributes[position].set(tfm::TfmDialect::kSourceAttr, *source);
    else
      entry.note = "values are not stored as plain bytes, --init=model cannot read them";
    if (argument.transposed)
      entry.note += entry.note.empty() ? "stored transposed" : ", stored transposed";
    if (argument.plus != 0)
      entry.note += entry.note.empty() ? "stored plus 1" : ", stored plus 1";
    report.parameters.push_back(entry);
  }
  std::vector<DictionaryAttr> dictionaries;
  for (const NamedAttrList &list : attributes)
    dictionaries.push_back(list.getDictionary(&context));
  func.setAllArgAttrs(dictionaries);
  return succeeded(func.eraseArguments(unused));
}

OwningOpRef<ModuleOp> Importer::run() {
  context.loadDialect<tfm::TfmDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect>();
  Expected<Model> read = readModel(options.path);
  if (!read) {
    error(fileLocation(), toString(read.takeError()));
    return {};
  }
  model = std::move(*read);
  nameConstants(model.graph.nodes);
  for (Function &called : model.functions)
    nameConstants(called.nodes);
  data = std::make_unique<TensorData>(model);
  names = std::make_unique<ParameterNames>(model);
  report.irVersion = model.irVersion;
  report.producer = (model.producerName + " " + model.producerVersion).str();
  for (const OpsetImport &opset : model.opsets)
    report.opsets += (report.opsets.empty() ? "" : ", ") + (opset.domain.empty() ? "ai.onnx" : opset.domain.str()) +
                     " " + std::to_string(opset.version);
  // Others give attributes and inputs other meanings, or may do so.
  constexpr int64_t oldestOpset = 11, newestOpset = 28;
  for (const OpsetImport &opset : model.opsets)
    if (opset.domain.empty() && (opset.version < oldestOpset || opset.version > newestOpset)) {
      error(fileLocation(), "opset " + Twine(opset.version) + " is not supported, " + Twine(oldestOpset) + " to " +
                                Twine(newestOpset) + " are; convert the model with onnx.version_converter");
      return {};
    }
  if (model.opsets.empty()) {
    error(fileLocation(),
          "the model does not say its opset, expected one of " + Twine(oldestOpset) + " to " + Twine(newestOpset));
    return {};
  }
  if (Error failure = prepareSymbols()) {
    error(fileLocation(), toString(std::move(failure)));
    return {};
  }
  // Each attempt but the last has bound one symbol more.
  for (size_t attempt = 0, limit = symbols.getAtoms().size() + 1; attempt <= limit; ++attempt) {
    ImportReport fresh;
    fresh.irVersion = report.irVersion;
    fresh.producer = report.producer;
    fresh.opsets = report.opsets;
    report = fresh;
    parameters = std::make_unique<Parameters>(model, *data, *names, options.tie, report);
    StringMap<const Tensor *> tensors;
    countUses(model.graph.nodes, model.graph.initializers, tensors);
    for (const Function &called : model.functions) {
      StringMap<const Tensor *> own;
      countUses(called.nodes, {}, own);
    }
    OwningOpRef<ModuleOp> module = build();
    if (module || !builder->restart) {
      report.nodes = processed;
      if (module)
        parameters->reportConstants(fileLocation());
      return module;
    }
  }
  error(fileLocation(), "the sizes of the model contradict each other");
  return {};
}

OwningOpRef<ModuleOp> importOnnx(MLIRContext &context, const ImportOptions &options, ImportReport *report) {
  ImportReport own;
  return Importer(context, options, report ? *report : own).run();
}

} // namespace drover::onnx
