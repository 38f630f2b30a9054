//===- EmbedProgram.cpp - the step program as data --------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Target/Host/Host.h"
#include "drover/rt/abi.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace drover;

namespace {
/// Adds globals to the end of a module; constants of a struct are built in the initializer that was opened last.
class GlobalBuilder {
public:
  explicit GlobalBuilder(ModuleOp module) : b(module.getLoc(), module.getContext()), module(module) {
    b.setInsertionPointToEnd(module.getBody());
  }

  /// An internal array of bytes.
  LLVM::GlobalOp bytes(StringRef name, StringRef content, unsigned alignment) {
    b.setInsertionPointToEnd(module.getBody());
    return LLVM::GlobalOp::create(b, LLVM::LLVMArrayType::get(b.getI8Type(), content.size()), /*isConstant=*/true,
                                  LLVM::Linkage::Internal, name, b.getStringAttr(content), alignment);
  }
  /// An internal array of bytes that a zero ends.
  void text(StringRef name, StringRef content) { bytes(name, content.str() + '\0', 1); }

  /// Opens a global whose value `close` gives.
  void open(StringRef name, Type type, LLVM::Linkage linkage) {
    b.setInsertionPointToEnd(module.getBody());
    auto op = LLVM::GlobalOp::create(b, type, /*isConstant=*/true, linkage, name, Attribute(), 8);
    b.createBlock(&op.getInitializerRegion());
  }
  void close(Value value) { LLVM::ReturnOp::create(b, value); }

  Value address(StringRef name) { return LLVM::AddressOfOp::create(b, pointer(), name); }
  Value null() { return LLVM::ZeroOp::create(b, pointer()); }
  Value i32(int64_t value) { return LLVM::ConstantOp::create(b, b.getI32Type(), b.getI32IntegerAttr(value)); }
  Value i64(int64_t value) { return LLVM::ConstantOp::create(b, b.getI64Type(), b.getI64IntegerAttr(value)); }
  /// An array or a struct of its fields.
  Value aggregate(Type type, ArrayRef<Value> fields) {
    Value value = LLVM::PoisonOp::create(b, type);
    for (auto [i, field] : llvm::enumerate(fields))
      value = LLVM::InsertValueOp::create(b, value, field, ArrayRef<int64_t>{int64_t(i)});
    return value;
  }

  Type pointer() { return LLVM::LLVMPointerType::get(b.getContext()); }
  Type structOf(ArrayRef<Type> fields) { return LLVM::LLVMStructType::getLiteral(b.getContext(), fields); }
  Type arrayOf(Type type, size_t size) { return LLVM::LLVMArrayType::get(type, size); }
  Type i32Type() { return b.getI32Type(); }
  Type i64Type() { return b.getI64Type(); }

private:
  ImplicitLocOpBuilder b;
  ModuleOp module;
};
} // namespace

/// The table of struct drover_gpu_image, sorted by name, as a global; its name, or "" where there are none.
static StringRef embedImages(GlobalBuilder &b, ArrayRef<host::GpuImage> images) {
  if (images.empty())
    return "";
  std::vector<const host::GpuImage *> sorted;
  for (const host::GpuImage &image : images)
    sorted.push_back(&image);
  llvm::sort(sorted, [](auto *left, auto *right) { return left->name < right->name; });
  auto symbol = [](size_t number, StringRef part) { return ("drover_gpu_image_" + Twine(number) + "_" + part).str(); };
  for (auto [i, image] : llvm::enumerate(sorted)) {
    b.text(symbol(i, "name"), image->name);
    b.bytes(symbol(i, "cubin"), StringRef(image->cubin.data(), image->cubin.size()), 16);
    if (!image->ptx.empty())
      b.text(symbol(i, "ptx"), image->ptx);
  }
  Type pointer = b.pointer(), i32 = b.i32Type(), i64 = b.i64Type();
  Type type = b.structOf({pointer, pointer, i64, pointer, i64, i32, i32});
  Type table = b.arrayOf(type, sorted.size());
  constexpr StringLiteral name = "drover_program_gpu_images";
  b.open(name, table, LLVM::Linkage::Internal);
  SmallVector<Value> rows;
  for (auto [i, image] : llvm::enumerate(sorted))
    rows.push_back(
        b.aggregate(type, {b.address(symbol(i, "name")), b.address(symbol(i, "cubin")), b.i64(image->cubin.size()),
                           image->ptx.empty() ? b.null() : b.address(symbol(i, "ptx")), b.i64(image->ptx.size()),
                           b.i32(image->architecture), b.i32(image->isArchitectureSpecific)}));
  b.close(b.aggregate(table, rows));
  return name;
}

LogicalResult host::embedProgram(ModuleOp module, const ProgramParts &parts) {
  if (parts.actions.size() % sizeof(drover_action) != 0)
    return module.emitError("expects whole actions of ")
           << sizeof(drover_action) << " bytes, not " << parts.actions.size() << " bytes";
  for (const std::string &name : parts.bodies) {
    auto body = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
    if (!body || body.isExternal())
      return module.emitError("the step program names a body '") << name << "' that was not compiled";
    body.setLinkage(LLVM::Linkage::Internal);
  }
  GlobalBuilder b(module);
  b.text("drover_program_metadata", parts.metadata);
  b.bytes("drover_program_actions", StringRef(parts.actions.data(), parts.actions.size()), 8);
  Type pointer = b.pointer(), i32 = b.i32Type(), i64 = b.i64Type(), table = b.arrayOf(pointer, parts.bodies.size());
  b.open("drover_program_bodies", table, LLVM::Linkage::Internal);
  b.close(b.aggregate(table, llvm::map_to_vector(parts.bodies, [&](StringRef name) { return b.address(name); })));
  StringRef images = embedImages(b, parts.images);

  constexpr StringLiteral modules = "drover_program_gpu_modules";
  if (!parts.images.empty())
    b.bytes(modules, parts.gpuModules, 16).setSection(".drover.nvvm");

  // struct drover_program, field by field
  Type type = b.structOf({i32, i32, pointer, i64, pointer, i64, pointer, pointer, i64, pointer, i64});
  b.open("drover_embedded_program", type, LLVM::Linkage::External);
  b.close(b.aggregate(type,
                      {b.i32(DROVER_PROGRAM_VERSION), b.i32(parts.bodies.size()), b.address("drover_program_metadata"),
                       b.i64(parts.metadata.size()), b.address("drover_program_actions"),
                       b.i64(parts.actions.size() / sizeof(drover_action)), b.address("drover_program_bodies"),
                       images.empty() ? b.null() : b.address(images), b.i64(parts.images.size()),
                       images.empty() ? b.null() : b.address(modules), b.i64(parts.gpuModules.size())}));
  return success();
}
