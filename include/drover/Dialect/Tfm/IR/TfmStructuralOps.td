#ifndef DROVER_DIALECT_TFM_IR_TFMSTRUCTURALOPS
#define DROVER_DIALECT_TFM_IR_TFMSTRUCTURALOPS

// What an importer could not raise: data movement and contractions of any rank. An op whose result
// sizes do not follow from its operands carries `shape`, an affine map ()[s0, ..] -> (sizes) over the
// module's symbols, whenever a result size is dynamic.

class Tfm_StructuralOp<string mnemonic, list<Trait> traits = []> : Tfm_DifferentiableOp<mnemonic, traits>;

def Tfm_ReshapeOp : Tfm_StructuralOp<"reshape"> {
  let summary = "the same elements in row-major order under another shape";
  let description = [{
    C1: operand and result have the same element type and, where static, the same number of elements.
    C2: with a dynamic result `shape` is given.

    Example:
    ```mlir
    %0 = tfm.reshape %x : tensor<2x8x64xf32> -> tensor<2x8x4x16xf32>
    ```
  }];
  let arguments = (ins Tfm_AnyTensor:$input, OptionalAttr<AffineMapAttr>:$shape);
  let results = (outs Tfm_AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Tfm_TransposeOp : Tfm_StructuralOp<"transpose"> {
  let summary = "permute dimensions";
  let description = [{
    result dimension i is operand dimension permutation[i].

    C1: `permutation` is a permutation of the operand's dimensions.
    C2: operand and result have the same element type.

    Example:
    ```mlir
    %0 = tfm.transpose %x {permutation = array<i64: 0, 2, 1>} : tensor<2x8x64xf32> -> tensor<2x64x8xf32>
    ```
  }];
  let arguments = (ins Tfm_AnyTensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs Tfm_AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Tfm_BroadcastOp : Tfm_StructuralOp<"broadcast"> {
  let summary = "repeat along dimensions of size 1 and new leading dimensions";
  let description = [{
    Sizes are aligned at the right, as in NumPy.

    C1: each operand size is 1 or the result's; the result's rank is at least the operand's.
    C2: with a dynamic result `shape` is given.
    C3: operand and result have the same element type.

    Example:
    ```mlir
    %0 = tfm.broadcast %b : tensor<64xf32> -> tensor<2x8x64xf32>
    ```
  }];
  let arguments = (ins Tfm_AnyTensor:$input, OptionalAttr<AffineMapAttr>:$shape);
  let results = (outs Tfm_AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Tfm_SliceOp : Tfm_StructuralOp<"slice", [Tfm_OwnRule]> {
  let summary = "a strided box of a tensor";
  let description = [{
    result[i..] = input[offsets[0] + i0 * strides[0], ..]. With symbolic sizes, `offset_map` gives the
    offsets and `shape` the sizes over the module's symbols (then `offsets` holds kDynamic there).

    C1: `offsets` and `strides` have one element per dimension; strides are not zero.
    C2: the box lies within the operand where both are static.
    C3: with a dynamic result `shape` is given, with a dynamic offset `offset_map`.
    C4: operand and result have the same element type.

    Example:
    ```mlir
    %0 = tfm.slice %x {offsets = array<i64: 0, 0, 64>, strides = array<i64: 1, 1, 1>} : tensor<2x8x192xf32> -> tensor<2x8x64xf32>
    ```
  }];
  let arguments = (ins Tfm_AnyTensor:$input, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$strides,
                       OptionalAttr<AffineMapAttr>:$offset_map, OptionalAttr<AffineMapAttr>:$shape);
  let results = (outs Tfm_AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Tfm_PadOp : Tfm_StructuralOp<"pad", [Tfm_OwnRule]> {
  let summary = "a tensor inside a larger one of zeros, dilated by strides";
  let description = [{
    The adjoint of `tfm.slice`: result[offsets + i * strides] = input[i], 0 elsewhere.

    C1: the constraints of `tfm.slice`, with operand and result exchanged.

    Example:
    ```mlir
    %0 = tfm.pad %x {offsets = array<i64: 0, 0, 64>, strides = array<i64: 1, 1, 1>} : tensor<2x8x64xf32> -> tensor<2x8x192xf32>
    ```
  }];
  let arguments = (ins Tfm_AnyTensor:$input, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$strides,
                       OptionalAttr<AffineMapAttr>:$offset_map, OptionalAttr<AffineMapAttr>:$shape);
  let results = (outs Tfm_AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Tfm_ConcatOp : Tfm_StructuralOp<"concat"> {
  let summary = "join tensors along a dimension";
  let description = [{
    C1: all operands agree in every size but that of `axis` and in the element type, which is the
        result's; there is at least one.

    Example:
    ```mlir
    %0 = tfm.concat %a, %b {axis = 2 : i64} : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x8xf32>
    ```
  }];
  let arguments = (ins Variadic<Tfm_AnyTensor>:$inputs, I64Attr:$axis);
  let results = (outs Tfm_AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Tfm_ReduceOp : Tfm_StructuralOp<"reduce"> {
  let summary = "reduce over dimensions";
  let description = [{
    The reduced dimensions are dropped, or kept with size 1 (`keep`).

    C1: `axes` are distinct dimensions of the operand, ascending.
    C2: operand and result have the same element type.

    Example:
    ```mlir
    %0 = tfm.reduce %x {axes = array<i64: 2>, kind = 0 : i32} : tensor<2x8x64xf32> -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Tfm_AnyTensor:$input, Tfm_ReduceKind:$kind, DenseI64ArrayAttr:$axes, UnitAttr:$keep);
  let results = (outs Tfm_AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Tfm_MatmulOp : Tfm_StructuralOp<"matmul", [Tfm_Recompute]> {
  let summary = "batched matrix product";
  let description = [{
    lhs [.., M, K] times rhs [.., K, N]; `transpose_lhs`/`transpose_rhs` exchange the last two
    dimensions first. Sums in f32 (f64 for f64).

    C1: both have the same rank, at least 2, and equal batch sizes.
    C2: the contracted sizes agree.
    C3: both have the same element type; the result has it, or f32 (f64 for f64).

    Example:
    ```mlir
    %0 = tfm.matmul %a, %b {transpose_rhs} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$lhs, Tfm_FloatTensor:$rhs, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_SoftmaxOp : Tfm_StructuralOp<"softmax", [Tfm_Recompute]> {
  let summary = "softmax over one dimension";
  let description = [{
    In f32 (f64 for f64). A row of -inf alone gives NaN, as in the frameworks.

    C1: `axis` is a dimension of the operand; the result has its shape.
    C2: operand and result have the same element type.

    Example:
    ```mlir
    %0 = tfm.softmax %x {axis = 3 : i64} : tensor<2x4x8x8xf32> -> tensor<2x4x8x8xf32>
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$input, I64Attr:$axis);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def Tfm_GatherOp : Tfm_StructuralOp<"gather"> {
  let summary = "slices of a tensor by index along one dimension";
  let description = [{
    result[i.., j.., k..] = input[i.., indices[j..], k..]; a negative index counts from the end.

    C1: `axis` is a dimension of the operand; the result has its sizes with that of `axis` replaced by
        the shape of `indices`.
    C2: operand and result have the same element type.
    C3: constant `indices` are in range. Others are checked when they are read.

    Example:
    ```mlir
    %0 = tfm.gather %table, %i {axis = 0 : i64} : (tensor<256x64xf32>, tensor<2x8xi64>) -> tensor<2x8x64xf32>
    ```
  }];
  let arguments = (ins Tfm_AnyTensor:$input, Tfm_IdTensor:$indices, I64Attr:$axis);
  let results = (outs Tfm_AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_ScatterAddOp : Tfm_Op<"scatter_add"> {
  let summary = "the adjoint of gather";
  let description = [{
    A tensor of zeros to which `updates` are added at `indices` along `axis`, in index order.

    C1: the constraints of `tfm.gather`, with operand and result exchanged; with a dynamic result
        `shape` is given.

    Example:
    ```mlir
    %0 = tfm.scatter_add %u, %i {axis = 0 : i64} : (tensor<2x8x64xf32>, tensor<2x8xi64>) -> tensor<256x64xf32>
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$updates, Tfm_IdTensor:$indices, I64Attr:$axis, OptionalAttr<AffineMapAttr>:$shape);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_ScatterNdOp : Tfm_Op<"scatter_nd"> {
  let summary = "overwrite slices of a tensor by index tuples";
  let description = [{
    ONNX ScatterND without reduction: a copy of `input` in which, for each j.., the slice at
    indices[j.., :] is updates[j..]. No gradient: exporters use it for masks.

    C1: the last size of `indices` is static and at most the rank of `input`.
    C2: result, `input` and `updates` have the same element type; the result has the shape of `input`.
    C3: `updates` has the shape of `indices` without its last size, followed by the sizes of a slice.
    C4: constant `indices` are in range, as in `tfm.gather`.

    Example:
    ```mlir
    %0 = tfm.scatter_nd %x, %i, %u : (tensor<4x8xf32>, tensor<2x1xi64>, tensor<2x8xf32>) -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Tfm_AnyTensor:$input, Tfm_IdTensor:$indices, Tfm_AnyTensor:$updates);
  let results = (outs Tfm_AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_IotaOp : Tfm_Op<"iota"> {
  let summary = "start + step * index along one dimension";
  let description = [{
    With a dynamic result `shape` is given; a symbolic start is an `arith.addi` of `tfm.size`.

    C1: `axis` is a dimension of the result.
    C2: with a dynamic result `shape` is given.

    Example:
    ```mlir
    %0 = tfm.iota {axis = 1 : i64} : tensor<2x8xi64>
    ```
  }];
  let arguments = (ins I64Attr:$axis, DefaultValuedAttr<I64Attr, "0">:$start,
                       DefaultValuedAttr<I64Attr, "1">:$step, OptionalAttr<AffineMapAttr>:$shape);
  let results = (outs RankedTensorOf<[I32, I64, F32]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tfm_SizeOp : Tfm_Op<"size"> {
  let summary = "the value of an expression of symbolic sizes";
  let description = [{
    `value` is an affine map ()[s0, ..] -> (v) over the module's symbols. `tfm-specialize` makes a
    constant of it.

    C1: `value` has no dimensions and one result; the result has rank 0.

    Example:
    ```mlir
    %0 = tfm.size {value = affine_map<()[s0] -> (s0 + 1)>} : tensor<i64>
    ```
  }];
  let arguments = (ins AffineMapAttr:$value);
  let results = (outs RankedTensorOf<[I64, I32, F32]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasFolder = 1;
}

def Tfm_FillOp : Tfm_Op<"fill"> {
  let summary = "a tensor of one value";
  let description = [{
    C1: `value` has the result's element type.
    C2: with a dynamic result `shape` is given.

    Example:
    ```mlir
    %0 = tfm.fill {value = 0.0 : f32} : tensor<2x8xf32>
    ```
  }];
  let arguments = (ins TypedAttrInterface:$value, OptionalAttr<AffineMapAttr>:$shape);
  let results = (outs Tfm_AnyTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

#endif // DROVER_DIALECT_TFM_IR_TFMSTRUCTURALOPS
