//===- Import.h - models from a Hugging Face config.json --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_IMPORT_HUGGINGFACE_IMPORT_H
#define DROVER_IMPORT_HUGGINGFACE_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace drover {

struct HuggingFaceImportOptions {
  /// Give the output head a parameter of its own although the configuration ties it to the embedding.
  bool noTie = false;
};

/// Reads a config.json and builds the `tfm` program of its model (docs/tfm.md): symbolic batch and
/// sequence, parameters with Hugging Face's names and no source. Supported are the causal language
/// models llama, mistral, qwen2, qwen3, phi3, gemma, gpt2 and gpt_neox. Anything missing, contradictory
/// or unsupported is one error located at the file.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> importHuggingFace(llvm::StringRef path, mlir::MLIRContext *context,
                                                                     const HuggingFaceImportOptions &options = {});

} // namespace drover

#endif // DROVER_IMPORT_HUGGINGFACE_IMPORT_H
