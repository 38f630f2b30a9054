//===- ImportModel.cpp - any model file to a tfm program ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Pipelines/ImportModel.h"
#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "drover/Import/HuggingFace/Import.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace drover {

ModelKind modelKindOf(StringRef path) {
  if (path.ends_with(".onnx"))
    return ModelKind::Onnx;
  if (path.ends_with(".json"))
    return ModelKind::HuggingFace;
  if (path.ends_with(".mlir"))
    return ModelKind::Mlir;
  return ModelKind::Unknown;
}

const char *nameOf(ModelKind kind) {
  switch (kind) {
  case ModelKind::Onnx:
    return "onnx";
  case ModelKind::HuggingFace:
    return "config";
  case ModelKind::Mlir:
    return "mlir";
  case ModelKind::Unknown:
    break;
  }
  return "unknown";
}

/// What the program says by itself: of a front end that keeps no report of its own.
static void reportProgram(ModuleOp module, onnx::ImportReport &report) {
  if (auto symbols = module->getAttrOfType<ArrayAttr>(tfm::TfmDialect::kSymbolsAttr))
    for (StringAttr symbol : symbols.getAsRange<StringAttr>())
      report.symbols.push_back(symbol.str());
  auto model = module.lookupSymbol<FunctionOpInterface>("model");
  for (unsigned index = 0; model && index < model.getNumArguments(); ++index) {
    auto name = model.getArgAttrOfType<StringAttr>(index, tfm::TfmDialect::kParameterAttr);
    if (!name)
      continue;
    onnx::ImportReport::Parameter &parameter = report.parameters.emplace_back();
    parameter.name = name.str();
    llvm::raw_string_ostream(parameter.shape) << model.getArgumentTypes()[index];
    if (auto aliases = model.getArgAttrOfType<ArrayAttr>(index, tfm::TfmDialect::kAliasesAttr))
      for (StringAttr alias : aliases.getAsRange<StringAttr>())
        parameter.note += (Twine(parameter.note.empty() ? "also " : ", ") + alias.getValue()).str();
  }
}

static OwningOpRef<ModuleOp> readProgram(MLIRContext &context, const ModelImportOptions &options) {
  if (options.tie)
    return parseSourceFile<ModuleOp>(options.path, ParserConfig(&context));
  emitError(FileLineColLoc::get(&context, options.path, 0, 0))
      << "what is tied in an MLIR program is decided: --no-tie is for the import that writes it";
  return {};
}

static OwningOpRef<ModuleOp> readConfig(MLIRContext &context, const ModelImportOptions &options) {
  HuggingFaceImportOptions config;
  config.noTie = !options.tie;
  FailureOr<OwningOpRef<ModuleOp>> module = importHuggingFace(options.path, &context, config);
  return succeeded(module) ? std::move(*module) : OwningOpRef<ModuleOp>();
}

OwningOpRef<ModuleOp> importModel(MLIRContext &context, const ModelImportOptions &options, onnx::ImportReport *report) {
  ModelKind kind = modelKindOf(options.path);
  if (kind == ModelKind::Onnx)
    return onnx::importOnnx(context, options, report);
  if (kind == ModelKind::Unknown) {
    emitError(FileLineColLoc::get(&context, options.path, 0, 0))
        << "not a model file: expected a name that ends in .onnx, .json (a Hugging Face config.json) or .mlir";
    return {};
  }
  OwningOpRef<ModuleOp> module =
      kind == ModelKind::HuggingFace ? readConfig(context, options) : readProgram(context, options);
  if (module && report)
    reportProgram(*module, *report);
  return module;
}

LogicalResult raiseModel(ModuleOp module) {
  PassManager manager(module.getContext());
  tfm::buildRaisePipeline(manager);
  return manager.run(module);
}

} // namespace drover
