#ifndef DROVER_DIALECT_TFM_TRANSFORMS_PASSES
#define DROVER_DIALECT_TFM_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

// In the order in which `drover compile` runs them; each is a phase (Phases.h).

def TfmSpecialize : Pass<"tfm-specialize", "mlir::ModuleOp"> {
  let summary = "bind symbolic sizes and refine every shape";
  let description = [{
    Replaces the symbols of the module's `tfm.symbols` by the given sizes, first in the types of the
    function arguments (their `tfm.shape` maps), then, in program order, in the result types that
    `ShapeInferenceOpInterface` computes. Element-wise operations of other dialects get the shape of
    their operands, `tfm.size` becomes a constant, `offset_map` becomes `offsets`; maps that are
    evaluated are dropped.
    Expects: every op with a dynamic result implements the interface or is element-wise.
    Guarantees: no type is dynamic and `tfm.symbols` is gone.
    Does not check: that the sizes suit a plan.
  }];
  let options = [
    ListOption<"sizes", "sizes", "std::string", "symbol=value, comma separated">
  ];
  let statistics = [
    Statistic<"numRefined", "refined-types", "result types that became static">
  ];
}

def TfmAttachLoss : Pass<"tfm-attach-loss", "mlir::ModuleOp"> {
  let summary = "append the cross-entropy of the logits";
  let description = [{
    Makes the training program of a model: `@model` returns only `loss`, the sum of the cross-entropy
    over the labels that count (are not negative), as tensor<f64>. The logits are the output named
    "logits", or the only floating-point output of rank 3. All other outputs are dropped, and with
    them the operations that only they need. A new argument `labels` ([B, S], i64) follows the inputs.
    With `documents`, a further argument `document_ids` ([B, S], i32) becomes the `documents` operand
    of every `tfm.attention`; one whose keys and queries differ in number is an error.
    Expects: a function `@model` with static shapes.
    Does not check: that the mask of an unraised attention keeps documents apart; such a graph is
    rejected where `documents` is set.
  }];
  let options = [
    Option<"documents", "documents", "bool", "false", "attention stays within the document of the query">
  ];
  let statistics = [
    Statistic<"numDroppedOutputs", "dropped-outputs", "model outputs that training does not need">
  ];
}

def TfmApplyComputeDtype : Pass<"tfm-apply-compute-dtype", "mlir::ModuleOp"> {
  let summary = "give parameters and activations the compute dtype";
  let description = [{
    Every floating-point parameter, and every value that depends on one, gets the compute dtype;
    log_sum_exp and the statistics of the loss stay f32 (f64 with dtype=f64). What depends on inputs
    alone (masks, positions) keeps its type and is cast where an operation needs one type.
    The logits are f32: the matrix product in front of the loss, or of an output, writes f32, and what
    is element-wise between it and the loss or output computes in f32. A floating-point output is f32.
    Casts that the change made trivial are removed.
    Guarantees: with dtype=f32 and a model in f32, nothing changes.
  }];
  let options = [
    Option<"dtype", "dtype", "std::string", "\"f32\"", "f32, bf16, or f64 (to check gradients)">
  ];
  let statistics = [
    Statistic<"numCasts", "casts", "conversions inserted">
  ];
}

def TfmOutline : Pass<"tfm-outline", "mlir::ModuleOp"> {
  let summary = "structurally equal layers become one function";
  let description = [{
    Cuts `@model` where the only live value that depends on both inputs and parameters is a single
    tensor (the residual stream), finds the repeating group of segments between cuts, and makes each
    group a layer; what comes before is the body `embed`, what follows is `head`. Equal bodies
    (operations, attributes, types, wiring) share one private function. Layers of one pattern that
    differ in attributes, or in some of their segments, get bodies of their own (`layer`, `layer_1`).
    A model that does not repeat becomes one body. Values that depend on inputs alone or on parameters
    alone are computed again in each body that uses them. No name of an operation, parameter or
    scope is looked at.
    The result is `@microbatch` (docs/body-abi.md): calls only, those of layers with `tfm.layer`.
    Expects: a function `@model` with static shapes, one block, no side effects.
  }];
  let options = [
    Option<"report", "report", "bool", "false", "emit a remark with the number of layers per body">
  ];
  let statistics = [
    Statistic<"numBodies", "bodies", "functions made">,
    Statistic<"numLayers", "layers", "calls of layer bodies">
  ];
}

def TfmDifferentiate : Pass<"tfm-differentiate", "mlir::ModuleOp"> {
  let summary = "derive the backward of each body and of the microbatch";
  let description = [{
    For each body of `@microbatch` builds its forward, which also returns what it stashes, and its
    backward (docs/body-abi.md), then appends the backward calls in reverse order, threading the
    accumulator of each parameter through all calls that contribute to it.
    A value with several uses sums its gradients in f32 and rounds once. A boundary value, parameter
    or input that a backward needs is passed again, never stashed.
    What is stashed is a minimum cut between what exists and what the gradients need, in bytes; on a
    tie, the cut that repeats less work. `recompute` and `rebuild` say what may run twice:
      none       no contraction and no attention; of the rest, what `rebuild` names
      selective  attention as well: its result is never stashed
      full       everything: only arguments of the body are kept
      rebuild=auto  all memory-bound work where it saves bytes; `none`; or a list of norms, act, rope,
                 casts, which are then always rebuilt
    Frozen parameters have no accumulator, and nothing below the first trainable one has a backward.
    Expects: the result of tfm-outline, with the loss as its only result.
    Guarantees: `tfm-verify-microbatch` passes.
  }];
  let options = [
    Option<"recompute", "recompute", "std::string", "\"none\"", "none, selective or full">,
    ListOption<"rebuild", "rebuild", "std::string", "auto (default), none, or any of norms, act, rope, casts">,
    Option<"freeze", "freeze", "std::string", "\"\"", "parameters whose name this POSIX regular expression matches somewhere are not trained">
  ];
  let statistics = [
    Statistic<"numBackwardBodies", "backward-bodies", "distinct backward functions">,
    Statistic<"stashBytes", "stash-bytes", "bytes stashed by one microbatch">
  ];
}

def TfmAddUpdateBodies : Pass<"tfm-add-update-bodies", "mlir::ModuleOp"> {
  let summary = "add the flat bodies of the optimizer, the norm and the cast";
  let description = [{
    Adds `@adamw_update` or `@sgd_update`, `@sum_of_squares` and, where the compute dtype is not f32,
    `@cast_parameters`, as docs/body-abi.md describes them. The step program calls them.
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "adamw or sgd">,
    Option<"dtype", "dtype", "std::string", "\"f32\"", "the compute dtype: f32 or bf16">
  ];
}

def TfmVerifyMicrobatch : Pass<"tfm-verify-microbatch", "mlir::ModuleOp"> {
  let summary = "check the contract of the microbatch program";
  let description = [{
    The contract of docs/body-abi.md, as the boundary of a phase: `@microbatch` holds only calls of
    bodies, forward before backward; each argument has exactly one role; every in-place result has
    the type of its argument, and what it overwrites is not used again; each accumulator belongs to
    one parameter, has its shape, and reaches exactly one result through an unbroken chain of
    in-place calls. Bodies are straight-line and static, but for the flat ones.
  }];
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
