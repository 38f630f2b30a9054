#ifndef DROVER_DIALECT_TFM_TRANSFORMS_PASSES
#define DROVER_DIALECT_TFM_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def TfmSpecialize : Pass<"tfm-specialize", "mlir::ModuleOp"> {
  let summary = "bind symbolic sizes and refine every shape";
  let description = [{
    Replaces the symbols of the module's `tfm.symbols` by the given sizes, first in the types of the
    function arguments (their `tfm.shape` maps), then, in program order, in the result types that
    `ShapeInferenceOpInterface` computes.
    Expects: every op with a dynamic result implements the interface or is element-wise.
    Guarantees: when all symbols are bound, no type is dynamic.
    Does not check: that the sizes suit a plan.
  }];
  let options = [
    ListOption<"sizes", "sizes", "std::string", "symbol=value, comma separated">
  ];
}

def TfmCanonicalOrder : Pass<"tfm-canonical-order", "mlir::func::FuncOp"> {
  let summary = "order operations and parameters by use";
  let description = [{
    Operations in post-order of a depth-first walk from the operands of the return, first operand
    first; dead operations are removed. Parameter arguments in the order of their first use by that
    order, after the inputs; parameters without a use are removed. In an `arith.addf` of a projection (`tfm.linear`,
    `tfm.bias_add`) and something else the projection comes second. So the same model read from
    different files prints the same.
    Expects: a function of one block of operations without side effects.
  }];
}

#endif // DROVER_DIALECT_TFM_TRANSFORMS_PASSES
