//===- GradientCheck.h - gradients against finite differences ---*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_DIALECT_TFM_GRADIENTCHECK_H
#define DROVER_UNITTESTS_DIALECT_TFM_GRADIENTCHECK_H

#include "drover/Interpreter/Interpreter.h"
#include <ostream>
#include <string>
#include <vector>

namespace drover::test {

/// A function @forward with one differentiable op whose results it returns (the first ones, in order). ELT stands for
/// the element type and LSE for that of its sums. Arguments are random in [-1, 1), or in [test.low, test.high); integer
/// arguments in [0, test.high); `test.values` gives them one by one. `test.constant` marks a float argument that gets
/// no gradient.
struct GradientCase {
  std::string name;
  std::string text;
};

/// GoogleTest's hook: cases print as their names.
inline void PrintTo(const GradientCase &test, std::ostream *stream) { *stream << test.name; }

std::vector<GradientCase> layerCases();
std::vector<GradientCase> attentionCases();
std::vector<GradientCase> structuralCases();
std::vector<GradientCase> upstreamCases();
std::vector<GradientCase> allCases();

/// The element type of a case's tensors and that of the gradients that are asked for.
struct GradientTypes {
  std::string element, wanted;
};

/// A context with everything that is registered.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// The text of a case in an element type, parsed; null after a diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> parseCase(mlir::MLIRContext &context, const GradientCase &test,
                                            llvm::StringRef element);

/// The one op of @forward that implements DifferentiableOpInterface; null where there is not exactly one.
mlir::Operation *findDifferentiable(mlir::ModuleOp module);

/// Builds the gradients of a case and compares them with central differences in f64. Returns what is wrong, nothing
/// where all agree. `mutant` multiplies each gradient: anything but 1 must be noticed. `compared` counts the gradients
/// that are not zero throughout.
std::string checkGradients(mlir::MLIRContext &context, const GradientCase &test, const GradientTypes &types,
                           double mutant, unsigned &compared);

} // namespace drover::test

#endif // DROVER_UNITTESTS_DIALECT_TFM_GRADIENTCHECK_H
