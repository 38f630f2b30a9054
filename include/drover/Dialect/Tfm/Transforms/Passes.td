#ifndef DROVER_DIALECT_TFM_TRANSFORMS_PASSES
#define DROVER_DIALECT_TFM_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

// In the order in which `drover compile` runs them; each is a phase.

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
  let dependentDialects = ["::mlir::arith::ArithDialect"];
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
    of every `tfm.attention`; one whose keys and queries differ in number is an error. Positions that a
    `tfm.rope` or the embedding of a table counts up then become an argument `position_ids` ([B, S],
    i64), so that they can restart in every document.
    Expects: a function `@model` with static shapes.
    Does not check: that the mask of an unraised attention keeps documents apart; such a graph is
    rejected where `documents` is set.
  }];
  let dependentDialects = ["::drover::tfm::TfmDialect"];
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
  let dependentDialects = ["::mlir::arith::ArithDialect"];
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
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let options = [
    Option<"whole", "whole", "bool", "false", "make one body of the model, whatever repeats in it">,
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
                 casts, which are then always rebuilt. Element-wise work that is no activation of its
                 own belongs to act where rebuilding it saves bytes. Of equal bytes a tensor is
                 stashed rather than slices or reshapes of it.
    Frozen parameters have no accumulator, and nothing below the first trainable one has a backward.
    Expects: the result of tfm-outline, with the loss as its only result.
    Guarantees: `tfm-verify-microbatch` passes.
  }];
  let dependentDialects = ["::drover::tfm::TfmDialect", "::mlir::func::FuncDialect"];
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

def TfmSplitBackward : Pass<"tfm-split-backward", "mlir::ModuleOp"> {
  let summary = "split backwards into input and weight parts";
  let description = [{
    For zero-bubble schedules (arXiv 2401.10241): each backward with a weight-gradient product becomes an
    input part, which keeps its name and phase, and a weight part of phase `weight_gradient`: those
    products and what only they need (docs/body-abi.md, Split backwards). Calls of weight parts come
    behind all backward calls of `@microbatch`, and accumulators are threaded in that order.
    What the input part hands over is a minimum cut in bytes of all that the weight part reads of the
    microbatch. Products, attention and statistics of the logits never run in both parts; memory-bound
    work may where it saves bytes, and `rebuild` (as in `tfm-differentiate`) names it.
    Expects: the result of tfm-differentiate, before tfm-partition.
    Guarantees: `tfm-verify-microbatch` passes.
  }];
  let dependentDialects = ["::drover::tfm::TfmDialect", "::mlir::func::FuncDialect"];
  let options = [
    ListOption<"rebuild", "rebuild", "std::string", "auto (default), none, or any of norms, act, rope, casts">
  ];
  let statistics = [
    Statistic<"numSplit", "split-bodies", "distinct backwards that were split">,
    Statistic<"handedOverBytes", "handed-over-bytes", "bytes that input parts of one microbatch hand over">
  ];
}

def TfmAddUpdateBodies : Pass<"tfm-add-update-bodies", "mlir::ModuleOp"> {
  let summary = "add the flat bodies of the optimizer, the norm and the cast";
  let description = [{
    Adds `@adamw_update` or `@sgd_update`, `@sum_of_squares` and, where the compute dtype is not f32,
    `@cast_parameters`, with `add-gradients` also `@add_gradients`, as docs/body-abi.md describes them. The step program
    calls them.
  }];
  let dependentDialects = ["::drover::tfm::TfmDialect", "::mlir::func::FuncDialect"];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "adamw or sgd">,
    Option<"dtype", "dtype", "std::string", "\"f32\"", "the compute dtype: f32 or bf16">,
    Option<"addGradients", "add-gradients", "bool", "false", "add the body that sums the reduced gradients of several runs">
  ];
}

def TfmVerifyMicrobatch : Pass<"tfm-verify-microbatch", "mlir::ModuleOp"> {
  let summary = "check the contract of the microbatch program";
  let description = [{
    The contract of docs/body-abi.md, as the boundary of a phase: `@microbatch` holds only calls of
    bodies, forward before backward before weight gradient; each argument has exactly one role; every in-place result has
    the type of its argument, and what it overwrites is not used again; each accumulator belongs to
    one parameter, has its shape, and reaches exactly one result through an unbroken chain of
    in-place calls. Bodies are straight-line and static, but for the flat ones.
  }];
}

def TfmPartition : Pass<"tfm-partition", "mlir::ModuleOp"> {
  let summary = "cut bodies over tensor and context parallelism";
  let description = [{
    Bodies on one rank's part (docs/distributions.md): the calls of `@microbatch` in order, each callee
    once per distributions of its arguments; in a body one pass over the ops, each of which asks for
    the distributions of its operands. The residual stream and every row-wise tensor beside it are cut
    by rows ([cp in two chunks, then tp]), parameters as their first use demands, the batch by dp.
    Collectives are upstream `shard` ops; the module gets `tfm.grid` and `shard.grid @grid`.
    Expects: the contract of `tfm-verify-microbatch`; sequence lengths that 2 * cp and tp divide.
    Guarantees: what `tfm-verify-distributions` checks. With tp, cp and dp 1 nothing is changed.
  }];
  let options = [
    Option<"tp", "tp", "int64_t", "1", "ranks of tensor parallelism">,
    Option<"cp", "cp", "int64_t", "1", "ranks of context parallelism">,
    Option<"dp", "dp", "int64_t", "1", "ranks of data parallelism: the batch of a body is one rank's">
  ];
  let dependentDialects = ["::drover::tfm::TfmDialect", "::mlir::arith::ArithDialect", "::mlir::shard::ShardDialect"];
}

def TfmShareGathers : Pass<"tfm-share-gathers", "mlir::ModuleOp"> {
  let summary = "what both parts of a split backward gather is gathered once";
  let description = [{
    A weight part that gathers a value which its input part has gathered reads that result instead: it becomes
    one of what is handed over, in place of the rank's own part where nobody else needs this.
    Expects: the result of tfm-partition, after tfm-simplify-collectives.
    Guarantees: what `tfm-verify-distributions` and `tfm-verify-microbatch` accept; as many gathers as a whole
    backward has.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::shard::ShardDialect"];
  let statistics = [
    Statistic<"numShared", "shared-gathers", "gathers of weight parts that input parts have done">
  ];
}

def TfmSimplifyCollectives : Pass<"tfm-simplify-collectives", "mlir::func::FuncOp"> {
  let summary = "remove collectives that undo or repeat others";
  let description = [{
    A gather of a slice and a slice of a gather become what was sliced or gathered, an all-reduce of
    which each rank takes its slice (over all its axes, in one op or in several) a reduce-scatter, a
    reduce-scatter that is gathered at once an
    all-reduce; a collective that was done on the same value is not done again.
    Guarantees: no more collectives than before, and types that `tfm-verify-distributions` accepts.
  }];
  let dependentDialects = ["::mlir::shard::ShardDialect"];
}

def TfmVerifyDistributions : Pass<"tfm-verify-distributions", "mlir::ModuleOp"> {
  let summary = "hold every op against its transfer rule";
  let description = [{
    In a module with `tfm.grid`: the results of each op have the distributions that its rule derives
    from its operands' (`PartitionOpInterface`), calls and returns pass equal types, every reduction
    has an id of its own, accumulators are cut as their parameters are, and nothing but the loss leaves
    `@microbatch` unreduced. A collective that is missing, doubled, on another axis or in another type
    is an error here; so are a function of several blocks and an op with a region, a grid that is none or not the
    one of the collectives, an axis that it lacks, a layout that is not the dimension's, an offset in other units than
    the rows it selects, and rows of queries in two chunks whose places are not `tfm.global_index`.
  }];
}

def TfmRingOverlap : Pass<"tfm-ring-overlap", "mlir::func::FuncOp"> {
  let summary = "gathers and scatters beside matmuls become rings";
  let description = [{
    A gather over all ranks of tensor parallelism and the linears that read it become one `tfm.gather_linear`, a linear,
    or a sum of linears, that is scattered over them one `tfm.linear_scatter`, which keeps the id of the reduction. What
    is gathered for weight gradients or attention only stays a collective, and so does what is on a part of the axes, in
    two chunks, along the last dimension, or in f16 or f64.
    Expects: what `tfm-verify-distributions` accepts; each body is in one block.
    Guarantees: what it accepts; the same bytes travel, and a value at most once.
  }];
  let statistics = [
    Statistic<"numGathers", "gathers", "gathers that became rings">,
    Statistic<"numScatters", "scatters", "scatters that became rings">
  ];
  let dependentDialects = ["::drover::tfm::TfmDialect"];
}

def TfmEraseDistributions : Pass<"tfm-erase-distributions", "mlir::ModuleOp"> {
  let summary = "drop the encodings of tensor types";
  let description = [{
    After the last verification. Collectives keep axes, kind, pattern and id; arguments and results of
    `@microbatch` keep their distribution as the attribute `tfm.distribution`.
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

//===----------------------------------------------------------------------===//
// Raising: from the structural form of an importer to the form a person would write. Each pass replaces
// what it recognizes by the op that computes the same and leaves the rest, which still computes the
// right thing. `--tfm-raise` runs all of them (buildRaisePipeline).
//===----------------------------------------------------------------------===//

def TfmBindInputs : Pass<"tfm-bind-inputs", "mlir::ModuleOp"> {
  let summary = "replace inputs by ones, zeros or counting";
  let description = [{
    Each of the `inputs` NAME=ones|zeros|arange of `@model` becomes a `tfm.fill`, or a `tfm.iota` along its
    last dimension; its argument goes. Training binds `attention_mask=ones` and `position_ids=arange`.
    Expects: integer inputs with known sizes (static, or `tfm.shape`).
    Guarantees: names in `inputs` without such an input are an error unless `optional` is set.
  }];
  let options = [
    ListOption<"inputs", "inputs", "std::string", "NAME=ones|zeros|arange, comma separated">,
    Option<"optional", "optional", "bool", "false", "ignore names that are no input">
  ];
  let dependentDialects = ["::drover::tfm::TfmDialect"];
}

def TfmSimplifyViews : Pass<"tfm-simplify-views", "mlir::func::FuncOp"> {
  let summary = "fewest reshapes, transposes and broadcasts";
  let description = [{
    Chains of `tfm.reshape` and `tfm.transpose` become at most one reshape, transpose and reshape, by
    sizes as products of symbols; a chain that changes nothing goes. Slices move above transposes. Where
    an exporter flattened [B, S, H] to [B * S, H], row-wise and element-wise operations move above the
    flattening, so that it meets its inverse.
    Guarantees: no more operations than before.
  }];
  let dependentDialects = ["::drover::tfm::TfmDialect"];
}

def TfmRaiseLinear : Pass<"tfm-raise-linear", "mlir::func::FuncOp"> {
  let summary = "matmuls, sums and gathers with parameters";
  let description = [{
    A `tfm.matmul` whose right operand is a parameter of rank 2, transposed and broadcast or not, becomes
    `tfm.linear` (`in_out` where the contracted dimension is the parameter's first); the sum with a
    parameter of rank 1 along the last dimension `tfm.bias_add`; a gather of a parameter's rows
    `tfm.embedding`.
    Expects: norms are raised, whose weights and biases look alike.
  }];
  let dependentDialects = ["::drover::tfm::TfmDialect"];
}

def TfmRaiseNorms : Pass<"tfm-raise-norms", "mlir::func::FuncOp"> {
  let summary = "rms_norm and layer_norm from their formulas";
  let description = [{
    x * rsqrt(mean(x^2) + eps) in every spelling of square, mean, root and quotient, with the weight on
    either side and 1 + weight; the same of centred rows is layer_norm. `eps` must be inside the root.
    Statistics are over the last dimension only. Casts to f32 around a norm go.
  }];
  let dependentDialects = ["::drover::tfm::TfmDialect"];
}

def TfmRaiseActivations : Pass<"tfm-raise-activations", "mlir::func::FuncOp"> {
  let summary = "gelu, silu and swiglu from their formulas";
  let description = [{
    GELU by erf or tanh in any order of its factors (the argument is compared as a polynomial), silu as
    x * sigmoid(x) or x / (1 + exp(-x)), swiglu as silu(gate) * up where the silu has no other use.
    x * sigmoid(1.702 x) stays element-wise.
  }];
  let dependentDialects = ["::drover::tfm::TfmDialect"];
}

def TfmRaiseRope : Pass<"tfm-raise-rope", "mlir::func::FuncOp"> {
  let summary = "rotary position embedding from what it computes";
  let description = [{
    A value whose channels are linear forms c * x[i] +- s * x[j] of another's, c and s from tables that
    depend on positions only, is a rotation: pairs half a rotation apart or neighbours, all channels or
    the first ones, in any spelling. The tables are evaluated at several sizes and positions; frequencies
    become theta and scaling where these agree within 1e-6, else `inv_freq`. Positions are the integer
    value that the tables read, or `tfm.iota` where that counts up from 0.
    Expects: linears and norms are raised, so that a rotation ends at them.
    Does not check: sizes other than those tried.
  }];
  let dependentDialects = ["::drover::tfm::TfmDialect"];
}

def TfmRaisePositions : Pass<"tfm-raise-positions", "mlir::func::FuncOp"> {
  let summary = "positions that count become tfm.iota";
  let description = [{
    The ids of a `tfm.embedding` and the positions of a `tfm.rope` that depend on sizes only are
    evaluated at several sizes; where every row is start + step * index they become one `tfm.iota` row,
    broadcast: running sums over a mask of ones, say.
    Does not check: sizes other than those tried.
  }];
  let dependentDialects = ["::drover::tfm::TfmDialect"];
}

def TfmRaiseAttention : Pass<"tfm-raise-attention", "mlir::func::FuncOp"> {
  let summary = "softmax(q k^T) v with its scale, softcap and mask";
  let description = [{
    Around a `tfm.softmax` over the last dimension: products with splats become `scale`, c * tanh(x / c)
    `softcap`, what is added or selected the `mask` operand; a guard against NaN behind the softmax is
    dropped (a row without keys gives zero in `tfm.attention`). Scales of query and key and, where each kv
    head is repeated n times in a row, the repetition are folded into attributes, of imported
    `tfm.attention` too; heads that are tiled (all of them, n times over) stay as they are. A scale within
    1e-6 of 1/sqrt(n) is written as that.
    Does not check: what the mask is (see `tfm-raise-masks`).
  }];
  let dependentDialects = ["::drover::tfm::TfmDialect"];
}

def TfmRaiseMasks : Pass<"tfm-raise-masks", "mlir::func::FuncOp"> {
  let summary = "masks by what they compute";
  let description = [{
    The `mask` of a `tfm.attention` that depends on sizes and integer inputs only is evaluated at many
    sizes, with inputs of ones, at random and padded. What explains every sample takes its place: nothing,
    `causal` (top-left or bottom-right), `window`, `key_mask` (an input [B, T]), `alibi_slopes`; the
    simplest explanation first. Otherwise the mask stays.
    A row that the explanation masks wholly must be masked wholly in the graph too; then it gives zero,
    where a finite fill would have given the mean of the values. Such rows belong to queries that are
    padding themselves (or have no keys at all), whose output nobody reads.
    A window wider than the lengths tried is found by putting small numbers in the place of the large one.
  }];
  let statistics = [
    Statistic<"numRaised", "num-raised", "masks that became attributes">,
    Statistic<"numKept", "num-kept", "masks that stayed operands">
  ];
  let dependentDialects = ["::drover::tfm::TfmDialect"];
}

#endif // DROVER_DIALECT_TFM_TRANSFORMS_PASSES
