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

#endif // DROVER_DIALECT_TFM_TRANSFORMS_PASSES
