//===- EmitTable.cpp - the table of a library of kernels --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "HookKernels.h"
#include "emu.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace drover;

namespace {
/// Builds constants of the structs of emu.h.
class Table {
public:
  explicit Table(ModuleOp module)
      : b(module.getLoc(), module.getContext()), module(module), ptr(LLVM::LLVMPointerType::get(b.getContext())),
        i32(b.getI32Type()) {
    b.setInsertionPointToEnd(module.getBody());
  }

  /// A constant whose value `build` makes; returns its name.
  std::string global(StringRef name, Type type, LLVM::Linkage linkage, function_ref<Value()> build) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(module.getBody());
    auto op = LLVM::GlobalOp::create(b, type, /*isConstant=*/true, linkage, name, Attribute(), 8);
    b.createBlock(&op.getInitializerRegion());
    LLVM::ReturnOp::create(b, build());
    return name.str();
  }

  std::string text(StringRef name, StringRef value) {
    std::string bytes = value.str() + '\0';
    auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
    LLVM::GlobalOp::create(b, type, /*isConstant=*/true, LLVM::Linkage::Internal, name, b.getStringAttr(bytes), 1);
    return name.str();
  }

  std::string addresses(StringRef name, ArrayRef<std::string> symbols) {
    auto type = LLVM::LLVMArrayType::get(ptr, symbols.size());
    return global(name, type, LLVM::Linkage::Internal, [&] {
      Value all = LLVM::PoisonOp::create(b, type);
      for (auto [i, symbol] : llvm::enumerate(symbols))
        all = insert(all, address(symbol), i);
      return all;
    });
  }

  std::string arguments(StringRef name, ArrayRef<emu::ArgumentInfo> list) {
    SmallVector<int64_t> words; // bytes and flags share one
    for (const emu::ArgumentInfo &one : list) {
      words.push_back(int64_t(one.bytes) | int64_t(one.flags) << 32);
      words.push_back(one.extent);
    }
    auto type = LLVM::LLVMArrayType::get(b.getI64Type(), words.size());
    auto value = words.empty() ? Attribute() : Attribute(b.getI64TensorAttr(words));
    LLVM::GlobalOp::create(b, type, /*isConstant=*/true, LLVM::Linkage::Internal, name, value, 8);
    return name.str();
  }

  /// What cuLaunchKernel's arguments mean to the kernel: values behind pointers.
  std::string entry(StringRef name, LLVM::LLVMFuncOp thread) {
    OpBuilder::InsertionGuard guard(b);
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {ptr});
    auto function = LLVM::LLVMFuncOp::create(b, name, type, LLVM::Linkage::Internal);
    Block *body = function.addEntryBlock(b);
    b.setInsertionPointToStart(body);
    SmallVector<Value> values;
    for (auto [i, argument] : llvm::enumerate(thread.getArgumentTypes())) {
      Value slot = LLVM::GEPOp::create(b, ptr, ptr, body->getArgument(0), ArrayRef<LLVM::GEPArg>{int32_t(i)});
      values.push_back(LLVM::LoadOp::create(b, argument, LLVM::LoadOp::create(b, ptr, slot)));
    }
    LLVM::CallOp::create(b, thread, values);
    LLVM::ReturnOp::create(b, ValueRange());
    return name.str();
  }

  Value number(uint32_t value) { return LLVM::ConstantOp::create(b, i32, b.getI32IntegerAttr(value)); }
  Value address(StringRef symbol) { return LLVM::AddressOfOp::create(b, ptr, symbol); }
  Value insert(Value into, Value value, int64_t at) {
    return LLVM::InsertValueOp::create(b, into, value, ArrayRef<int64_t>{at});
  }
  Value structure(LLVM::LLVMStructType type, ArrayRef<Value> fields) {
    Value all = LLVM::PoisonOp::create(b, type);
    for (auto [i, field] : llvm::enumerate(fields))
      all = insert(all, field, i);
    return all;
  }

  ImplicitLocOpBuilder b;
  ModuleOp module;
  Type ptr, i32;
};
} // namespace

void emu::emitTable(ModuleOp module, ArrayRef<KernelInfo> kernels, const HookState &state) {
  Table table(module);
  MLIRContext *context = module.getContext();
  auto named = [](StringRef what, size_t index) { return ("drover_emu_" + what + "_" + Twine(index)).str(); };

  std::vector<std::string> sites;
  for (auto [i, site] : llvm::enumerate(state.sites))
    sites.push_back(table.text(named("site", i), site));
  std::string siteTable = table.addresses("drover_emu_sites", sites);

  Type ptr = table.ptr, i32 = table.i32;
  // struct drover_emu_kernel, field by field
  auto kernelType = LLVM::LLVMStructType::getLiteral(context, {ptr, ptr, ptr, ptr, i32, i32, i32, i32, i32, i32});
  std::vector<std::array<std::string, 3>> parts;
  for (auto [i, kernel] : llvm::enumerate(kernels))
    parts.push_back({table.text(named("name", i), kernel.name),
                     table.entry(named("entry", i), module.lookupSymbol<LLVM::LLVMFuncOp>(threadName(i))),
                     table.arguments(named("arguments", i), kernel.arguments)});
  auto tableType = LLVM::LLVMArrayType::get(kernelType, kernels.size());
  table.global("drover_emu_kernels", tableType, LLVM::Linkage::Internal, [&] {
    Value all = LLVM::PoisonOp::create(table.b, tableType);
    for (auto [i, kernel] : llvm::enumerate(kernels))
      all = table.insert(
          all,
          table.structure(kernelType,
                          {table.address(parts[i][0]), table.address(parts[i][1]), table.address(parts[i][2]),
                           table.address(siteTable), table.number(kernel.arguments.size()), table.number(sites.size()),
                           table.number(kernel.staticSharedBytes), table.number(kernel.sharedBytes),
                           table.number(kernel.maxThreads), table.number(state.granule)}),
          i);
    return all;
  });
  auto libraryType = LLVM::LLVMStructType::getLiteral(context, {i32, i32, ptr});
  table.global(DROVER_EMU_LIBRARY_SYMBOL, libraryType, LLVM::Linkage::External, [&] {
    return table.structure(libraryType, {table.number(DROVER_EMU_LIBRARY_VERSION), table.number(kernels.size()),
                                         table.address("drover_emu_kernels")});
  });
}
