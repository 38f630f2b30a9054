//===- TfmToCost.h - what the planner knows of a model ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_CONVERSION_TFMTOCOST_TFMTOCOST_H
#define DROVER_CONVERSION_TFMTOCOST_TFMTOCOST_H

#include "drover/Cost/Model.h"
#include "mlir/IR/BuiltinOps.h"

namespace drover {

/// The decoder that `@model` is, read off its operations and the shapes of their parameters, never off names. Expects
/// static sizes and raised operations. A model that a `ModelShape` cannot price gets one located error: layers that
/// differ, attention that is not causal, products that belong to no layer; and, last, one whose parameters or
/// forward FLOPs (CostOpInterface) are not the shape's within 1 %.
mlir::FailureOr<cost::ModelShape> readModelShape(mlir::ModuleOp module);

} // namespace drover

#endif // DROVER_CONVERSION_TFMTOCOST_TFMTOCOST_H
