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

#endif // DROVER_DIALECT_TFM_IR_TFMRANKOPS
