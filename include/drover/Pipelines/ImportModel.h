//===- ImportModel.h - any model file to a tfm program ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_PIPELINES_IMPORTMODEL_H
#define DROVER_PIPELINES_IMPORTMODEL_H

#include "drover/Import/Onnx/Import.h"

namespace drover {

/// MODEL and the options that every command which reads one takes.
using ModelImportOptions = onnx::ImportOptions;

/// What a model file is, by its name.
enum class ModelKind { Onnx, HuggingFace, Mlir, Unknown };
ModelKind modelKindOf(llvm::StringRef path);
const char *nameOf(ModelKind kind);

/// Reads `options.path` as what its name says it is. A front end that is not ONNX's leaves `dims` and `inputs` to
/// later phases. Null after exactly one error.
mlir::OwningOpRef<mlir::ModuleOp> importModel(mlir::MLIRContext &context, const ModelImportOptions &options,
                                              onnx::ImportReport *report = nullptr);

/// From what a front end writes to what a person would (the `raise` phase).
mlir::LogicalResult raiseModel(mlir::ModuleOp module);

} // namespace drover

#endif // DROVER_PIPELINES_IMPORTMODEL_H
