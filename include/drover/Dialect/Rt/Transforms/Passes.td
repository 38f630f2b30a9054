#ifndef DROVER_DIALECT_RT_TRANSFORMS_PASSES
#define DROVER_DIALECT_RT_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def RtVerifyCollectives : Pass<"rt-verify-collectives", "mlir::ModuleOp"> {
  let summary = "hold the collectives of lowered bodies against what the step program says of them";
  let description = [{
    For each function with `rt.body`:
    C1: collectives and waits stand in the body's block, not in a region inside.
    C2: a start's slot is free, a wait's slot is in flight, and none is in flight at the return.
    C3: the starts are those of `drover.collectives`, in its order; without that attribute there are none.
    C4: while a collective is in flight nothing touches its `out`, and nothing writes its `in`.
    Expects: what `convert-tfm-to-rt` makes: buffers that are arguments, or views of arguments at constant places.
    Guarantees: nothing is changed. Every rank of a group runs the same bodies, so that collectives that are in order
    here match over the ranks (docs/proof.md).
    Does not check: what kernels compute, nor the bounds of their accesses.
  }];
  let statistics = [
    Statistic<"numCollectives", "collectives", "collectives verified">
  ];
}

#endif // DROVER_DIALECT_RT_TRANSFORMS_PASSES
