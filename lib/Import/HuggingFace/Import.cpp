//===- Import.cpp - models from a Hugging Face config.json ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Import/HuggingFace/Import.h"
#include "Decoder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace drover;
using namespace drover::huggingface;

FailureOr<OwningOpRef<ModuleOp>> drover::importHuggingFace(StringRef path, MLIRContext *context,
                                                           const HuggingFaceImportOptions &options) {
  context->loadDialect<func::FuncDialect, tfm::TfmDialect>();
  auto loc = FileLineColLoc::get(context, path, 0, 0);
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return emitError(loc) << "cannot read config: " << buffer.getError().message();
  JsonKeys keys((*buffer)->getBuffer());
  if (keys.nestsTooDeep())
    return emitError(loc) << "config nests deeper than any configuration does";
  llvm::Expected<llvm::json::Value> json = llvm::json::parse((*buffer)->getBuffer());
  if (!json)
    return emitError(loc) << "config is not JSON: " << llvm::toString(json.takeError());
  llvm::json::Object *object = json->getAsObject();
  if (!object)
    return emitError(loc) << "config expects a JSON object";
  if (const std::optional<JsonKeys::Duplicate> &twice = keys.duplicate())
    return emitError(FileLineColLoc::get(context, path, twice->place.line, twice->place.column))
           << "config has '" << twice->key << "' twice in one object; expected is one value for a key";
  Config config(std::move(*object), std::move(keys), loc);
  Decoder decoder = readDecoder(config, context);
  if (config.failed())
    return failure();
  if (options.noTie)
    decoder.tied = false;
  OwningOpRef<ModuleOp> module = buildDecoder(decoder, loc);
  if (failed(module->verify()))
    return failure();
  return std::move(module);
}
