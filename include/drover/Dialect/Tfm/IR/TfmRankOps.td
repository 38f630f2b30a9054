#ifndef DROVER_DIALECT_TFM_IR_TFMRANKOPS
#define DROVER_DIALECT_TFM_IR_TFMRANKOPS

// Ops that know the rank: they make the values that differ by rank without being data
// (docs/distributions.md). `axes` are axes of the nearest `tfm.grid` around the op, outermost first; a
// rank's index over them is its coordinates read in that mixed radix.

def Tfm_GlobalIndexOp : Tfm_Op<"global_index", [Tfm_OwnRule]> {
  let summary = "the global index of each local element of a dimension";
  let description = [{
    A dimension is cut over the n ranks of `axes`; the result has the rank's elements of it, -1 where
    they are padding. Of the rank with index r:
    - without more, elements r * size to (r + 1) * size;
    - `two_chunk`: the dimension is cut into twice as many chunks as the first axis has ranks, of which
      rank c holds chunks c and 2m-1-c, in this order; these are cut contiguously over the other axes;
    - `segments` (docs/distributions.md, Padding), four numbers a segment, [groups, valid, padded, total]:
      share r of n of every segment's total * padded elements, segment after segment. Element p of a
      segment is global element p / padded * valid + p % padded of it where p / padded < groups and
      p % padded < valid.

    C1: `axes` are axes of an enclosing `tfm.grid`, none of them twice.
    C2: the result has a static size.
    C3: at most one of `segments` and `two_chunk` is given.
    C4: with `two_chunk`, `axes` is not empty, and a rank of the first axis has an even number of elements.
    C5: `segments` has four numbers a segment, with 0 < valid <= padded and 0 < groups <= total, and n
        divides total * padded.
    C6: the segments' shares add up to the result's size.

    Example:
    ```mlir
    %0 = tfm.global_index {axes = ["tp"], segments = array<i64: 257, 1, 1, 260>} : tensor<65xi64>
    %1 = tfm.global_index {axes = ["cp"], two_chunk} : tensor<8xi64>
    ```
  }];
  let arguments = (ins StrArrayAttr:$axes, OptionalAttr<DenseI64ArrayAttr>:$segments, UnitAttr:$two_chunk);
  let results = (outs Tfm_IndexVector:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    /// The four numbers of each segment; empty where there are none.
    ::llvm::SmallVector<PaddedSegment> segmentList();
  }];
}

def Tfm_ShardOffsetOp : Tfm_Op<"shard_offset", [Tfm_OwnRule]> {
  let summary = "a rank's index over axes, times a size";
  let description = [{
    The first row of a rank's part of a dimension that is cut in parts of `size`: the `offset` of an
    embedding and of the loss.

    C1: `axes` are axes of an enclosing `tfm.grid`, none of them twice.
    C2: `size` is positive.

    Example:
    ```mlir
    %0 = tfm.shard_offset {axes = ["tp"], size = 65 : i64} : tensor<i64>
    ```
  }];
  let arguments = (ins StrArrayAttr:$axes, I64Attr:$size);
  let results = (outs Tfm_Offset:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

// Matmuls in steps, one a rank of a ring: what one step multiplies travels on, or has arrived, while another step
// computes (docs/communication.md, Rings). They take the place of a gather and the linears that read it, and of linears
// whose sum is scattered; their transfer rules are those of the two, one after the other.

def Tfm_GatherLinearOp : Tfm_Op<"gather_linear", [Tfm_OwnRule]> {
  let summary = "linears on an input that is gathered part by part";
  let description = [{
    results[i] = `tfm.linear` of weights[i], with `in_out[i]`, and the input gathered over `axes` on dimension `dim`.
    One result more than weights: the gathered input, for what else reads it. The input travels once whatever the
    number of weights.

    C1: `axes` are axes of an enclosing `tfm.grid`, none of them twice, with two or more ranks.
    C2: there is a weight, and `in_out` has one element a weight.
    C3: `dim` is a dimension of `input`, not its last.
    C4: a weight has rank 2, and the last size of `input` is contracted.
    C5: `input` and `weights` have one element type, and so has the gathered input.
    C6: there is a result a weight, [.., ranks * size of `dim`, .., N], or one more, with the last size of `input`.

    Example:
    ```mlir
    %0:2 = tfm.gather_linear %x, %q, %k {axes = ["tp"], dim = 1 : i64, in_out = array<i1: false, true>} : (tensor<2x8x64xf32>, tensor<32x64xf32>, tensor<64x16xf32>) -> (tensor<2x32x32xf32>, tensor<2x32x16xf32>)
    %1:2 = tfm.gather_linear %x, %q {axes = ["tp"], dim = 1 : i64, in_out = array<i1: false>} : (tensor<2x8x64xbf16>, tensor<32x64xbf16>) -> (tensor<2x32x32xf32>, tensor<2x32x64xbf16>)
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$input, Variadic<Tfm_FloatTensor>:$weights, StrArrayAttr:$axes, I64Attr:$dim,
                       DenseBoolArrayAttr:$in_out);
  let results = (outs Variadic<Tfm_FloatTensor>:$results);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    /// The gathered input, null where nothing else reads it.
    ::mlir::Value getGathered() {
      return getNumResults() > getWeights().size() ? getResults().back() : ::mlir::Value();
    }
  }];
}

def Tfm_LinearScatterOp : Tfm_Op<"linear_scatter", [Tfm_OwnRule, SameVariadicOperandSize]> {
  let summary = "a sum of linears that is scattered part by part";
  let description = [{
    The sum over i of `tfm.linear` of inputs[i] and weights[i], with `in_out[i]`, is summed over `axes` and scattered on
    dimension `dim`. On a rank the sum is in f32, in the order of the operands (f64 for f64). A part goes around the
    ring: its sum begins at the rank behind the one that keeps it, and every rank rounds it to the result's type once it
    has added its own, so that the order is that of the ring, the same in every run.
    `tfm.reduction` is the id of the typed reduction that this discharges.

    C1: `axes` are axes of an enclosing `tfm.grid`, none of them twice, with two or more ranks.
    C2: there is an input, and `in_out` has one element an input.
    C3: `dim` is a dimension of the inputs, not their last.
    C4: the inputs agree in all but their last size; a weight has rank 2, the last size of its input is contracted, and
        the other one is the same for all weights.
    C5: the ranks divide the size of `dim`.
    C6: operands and result have one element type.

    Example:
    ```mlir
    %0 = tfm.linear_scatter %x, %w {axes = ["tp"], dim = 1 : i64, in_out = array<i1: false>, tfm.reduction = 3 : i64} : (tensor<2x32x16xbf16>, tensor<64x16xbf16>) -> tensor<2x8x64xbf16>
    ```
  }];
  let arguments = (ins Variadic<Tfm_FloatTensor>:$inputs, Variadic<Tfm_FloatTensor>:$weights, StrArrayAttr:$axes,
                       I64Attr:$dim, DenseBoolArrayAttr:$in_out);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif // DROVER_DIALECT_TFM_IR_TFMRANKOPS
