//===- ImportModel.cpp - any model file to a tfm program ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Pipelines/ImportModel.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "drover/Import/HuggingFace/Import.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
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

OwningOpRef<ModuleOp> importModel(MLIRContext &context, const ModelImportOptions &options, onnx::ImportReport *report) {
  switch (modelKindOf(options.path)) {
  case ModelKind::Onnx:
    return onnx::importOnnx(context, options, report);
  case ModelKind::HuggingFace: {
    HuggingFaceImportOptions config;
    config.noTie = !options.tie;
    FailureOr<OwningOpRef<ModuleOp>> module = importHuggingFace(options.path, &context, config);
    return succeeded(module) ? std::move(*module) : OwningOpRef<ModuleOp>();
  }
  case ModelKind::Mlir:
    return parseSourceFile<ModuleOp>(options.path, ParserConfig(&context));
  case ModelKind::Unknown:
    break;
  }
  emitError(FileLineColLoc::get(&context, options.path, 0, 0))
      << "not a model file: expected a name that ends in .onnx, .json (a Hugging Face config.json) or .mlir";
  return {};
}

LogicalResult raiseModel(ModuleOp module) {
  PassManager manager(module.getContext());
  tfm::buildRaisePipeline(manager);
  return manager.run(module);
}

} // namespace drover
