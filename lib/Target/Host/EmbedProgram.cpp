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

/// A constant array of bytes in the module.
static void addBytes(ImplicitLocOpBuilder &b, StringRef name, ArrayRef<char> bytes, unsigned alignment) {
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
  LLVM::GlobalOp::create(b, type, /*isConstant=*/true, LLVM::Linkage::Internal, name,
                         b.getStringAttr(StringRef(bytes.data(), bytes.size())), alignment);
}

LogicalResult host::embedProgram(ModuleOp module, StringRef metadata, ArrayRef<char> actions,
                                 ArrayRef<std::string> bodyNames) {
  if (actions.size() % sizeof(drover_action) != 0)
    return module.emitError("expects whole actions of ")
           << sizeof(drover_action) << " bytes, not " << actions.size() << " bytes";
  for (const std::string &name : bodyNames) {
    auto body = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
    if (!body || body.isExternal())
      return module.emitError("the step program names a body '") << name << "' that was not compiled";
    body.setLinkage(LLVM::Linkage::Internal);
  }
  ImplicitLocOpBuilder b(module.getLoc(), module.getContext());
  b.setInsertionPointToEnd(module.getBody());
  auto ptr = LLVM::LLVMPointerType::get(b.getContext());
  auto global = [&](Type type, LLVM::Linkage linkage, StringRef name) {
    auto op = LLVM::GlobalOp::create(b, type, /*isConstant=*/true, linkage, name, Attribute(), 8);
    b.createBlock(&op.getInitializerRegion());
  };
  auto insert = [&](Value into, Value value, int64_t at) -> Value {
    return LLVM::InsertValueOp::create(b, into, value, ArrayRef<int64_t>{at});
  };

  std::string text = metadata.str();
  text.push_back('\0');
  addBytes(b, "drover_program_metadata", ArrayRef(text.data(), text.size()), 1);
  addBytes(b, "drover_program_actions", actions, 8);

  auto tableType = LLVM::LLVMArrayType::get(ptr, bodyNames.size());
  global(tableType, LLVM::Linkage::Internal, "drover_program_bodies");
  Value table = LLVM::PoisonOp::create(b, tableType);
  for (auto [i, name] : llvm::enumerate(bodyNames))
    table = insert(table, LLVM::AddressOfOp::create(b, ptr, name), i);
  LLVM::ReturnOp::create(b, table);
  b.setInsertionPointToEnd(module.getBody());

  // struct drover_program, field by field
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), {i32, i32, ptr, i64, ptr, i64, ptr});
  global(type, LLVM::Linkage::External, "drover_embedded_program");
  Value program = LLVM::PoisonOp::create(b, type);
  auto number = [&](Type width, int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, width, b.getIntegerAttr(width, value));
  };
  auto address = [&](StringRef name) -> Value { return LLVM::AddressOfOp::create(b, ptr, name); };
  program = insert(program, number(i32, DROVER_PROGRAM_VERSION), 0);
  program = insert(program, number(i32, bodyNames.size()), 1);
  program = insert(program, address("drover_program_metadata"), 2);
  program = insert(program, number(i64, metadata.size()), 3);
  program = insert(program, address("drover_program_actions"), 4);
  program = insert(program, number(i64, actions.size() / sizeof(drover_action)), 5);
  program = insert(program, address("drover_program_bodies"), 6);
  LLVM::ReturnOp::create(b, program);
  return success();
}
