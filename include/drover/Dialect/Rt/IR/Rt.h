//===- Rt.h - compiled bodies before LLVM -----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_DIALECT_RT_IR_RT_H
#define DROVER_DIALECT_RT_IR_RT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "drover/Dialect/Rt/IR/RtDialect.h.inc"
#include "drover/Dialect/Rt/IR/RtEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "drover/Dialect/Rt/IR/RtTypes.h.inc"

#define GET_OP_CLASSES
#include "drover/Dialect/Rt/IR/RtOps.h.inc"

namespace drover::rt {
/// Strides in elements of a static strided memref.
llvm::SmallVector<int64_t> stridesOf(mlir::Value buffer);

/// What the step program's metadata say of a collective (docs/step-program.md): communicator, kind, dtype, the bytes of
/// the whole (of all ranks' parts), and the id of the reduction, -1 for a gather.
mlir::DictionaryAttr describeCollective(CollectiveStartOp op);
} // namespace drover::rt

#endif // DROVER_DIALECT_RT_IR_RT_H
