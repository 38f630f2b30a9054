#ifndef DROVER_DIALECT_TFM_IR_TFMLAYEROPS
#define DROVER_DIALECT_TFM_IR_TFMLAYEROPS

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

def Tfm_EmbeddingOp : Tfm_DifferentiableOp<"embedding", [Tfm_Localize]> {
  let summary = "rows of a table by id";
  let description = [{
    result[.., :] = table[ids[..], :]. With `offset` the table is rows offset, offset + 1, .. of a
    longer one: row ids[..] - offset, zero where the table does not have it.

    C1: `table` has rank 2, [V, H].
    C2: the result has the shape of `ids` with H appended.
    C3: `table` and result have the same element type.
    C4: `offset` is tensor<i64>.
    C5: constant `ids` are rows of the table, where it is whole. Others are checked when they are read.

    Example:
    ```mlir
    %0 = tfm.embedding %ids, %table : (tensor<2x8xi64>, tensor<256x64xf32>) -> tensor<2x8x64xf32>
    %1 = tfm.embedding %ids, %table offset %first : (tensor<2x8xi64>, tensor<256x64xf32>, tensor<i64>) -> tensor<2x8x64xf32>
    ```
  }];
  let arguments = (ins Tfm_IdTensor:$ids, Tfm_FloatTensor:$table, Optional<Tfm_Offset>:$offset);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = "$ids `,` $table (`offset` $offset^)? attr-dict `:` functional-type(operands, results)";
}

def Tfm_EmbeddingGradOp : Tfm_Op<"embedding_grad", [Tfm_Localize]> {
  let summary = "gradient of an embedding table";
  let description = [{
    result[v, :] = sum over the positions p with ids[p] = v of gradient[p, :], in position order, in f32.
    With `offset` those with ids[p] - offset = v.

    C1: `gradient` has the shape of `ids` with H appended.
    C2: the result is [V, H] in f32.
    C3: `offset` is tensor<i64>.

    Example:
    ```mlir
    %0 = tfm.embedding_grad %ids, %dy : (tensor<2x8xi64>, tensor<2x8x64xf32>) -> tensor<256x64xf32>
    %1 = tfm.embedding_grad %ids, %dy offset %first : (tensor<2x8xi64>, tensor<2x8x64xf32>, tensor<i64>) -> tensor<256x64xf32>
    ```
  }];
  let arguments = (ins Tfm_IdTensor:$ids, Tfm_FloatTensor:$gradient, Optional<Tfm_Offset>:$offset);
  let results = (outs Tfm_F32Tensor:$result);
  let assemblyFormat = "$ids `,` $gradient (`offset` $offset^)? attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Linear
//===----------------------------------------------------------------------===//

def Tfm_LinearOp : Tfm_DifferentiableOp<"linear", [Tfm_Recompute]> {
  let summary = "matrix product with a weight";
  let description = [{
    result[.., n] = sum over k of input[.., k] * weight[n, k], or weight[k, n] with `in_out` (the
    orientation of GPT-2's Conv1D). No bias: that is `tfm.bias_add`. Sums are in f32 (f64 for f64).
    The result's element type may be wider than the operands' (logits are f32).

    C1: `weight` has rank 2, [N, K], with `in_out` [K, N].
    C2: the last size of `input` is K.
    C3: the result has the shape of `input` with its last size replaced by N.
    C4: `input` and `weight` have the same element type.

    Example:
    ```mlir
    %0 = tfm.linear %x, %w : (tensor<2x8x64xf32>, tensor<176x64xf32>) -> tensor<2x8x176xf32>
    %1 = tfm.linear %x, %v in_out : (tensor<2x8x64xf32>, tensor<64x192xf32>) -> tensor<2x8x192xf32>
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$input, Tfm_FloatTensor:$weight, UnitAttr:$in_out);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = "operands (`in_out` $in_out^)? attr-dict `:` functional-type(operands, results)";
}

def Tfm_LinearWeightGradOp : Tfm_Op<"linear_weight_grad", [Tfm_Recompute]> {
  let summary = "gradient of a linear's weight";
  let description = [{
    result[n, k] = sum over the leading dimensions of gradient[.., n] * input[.., k], in f32; with
    `in_out` the result is [K, N].

    C1: `input` and `gradient` agree in all but their last size and in their element type.
    C2: the result is [N, K], with `in_out` [K, N], in f32 (f64 for f64 operands).

    Example:
    ```mlir
    %0 = tfm.linear_weight_grad %x, %dy : (tensor<2x8x64xf32>, tensor<2x8x176xf32>) -> tensor<176x64xf32>
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$input, Tfm_FloatTensor:$gradient, UnitAttr:$in_out);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = "operands (`in_out` $in_out^)? attr-dict `:` functional-type(operands, results)";
}

def Tfm_BiasAddOp : Tfm_DifferentiableOp<"bias_add"> {
  let summary = "add a vector to every row";
  let description = [{
    result[.., n] = input[.., n] + bias[n].

    C1: `bias` has rank 1 and the last size of `input`.
    C2: the result has the shape of `input`.
    C3: `input`, `bias` and the result have the same element type.

    Example:
    ```mlir
    %0 = tfm.bias_add %x, %b : (tensor<2x8x64xf32>, tensor<64xf32>) -> tensor<2x8x64xf32>
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$input, Tfm_FloatTensor:$bias);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_ColumnSumOp : Tfm_Op<"column_sum"> {
  let summary = "sum over all but the last dimension";
  let description = [{
    result[n] = sum over the leading dimensions of input[.., n], in f32 (f64 for f64). The gradient
    of a bias. The order of summation depends on the shape alone.

    C1: the result has rank 1 and the last size of `input`.
    C2: the result is f32 (f64 for f64).

    Example:
    ```mlir
    %0 = tfm.column_sum %dy : (tensor<2x8x64xf32>) -> tensor<64xf32>
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$input);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Norms: statistics over the last dimension, arithmetic in f32 (f64 for f64)
//===----------------------------------------------------------------------===//

def Tfm_RmsNormOp : Tfm_DifferentiableOp<"rms_norm", [Tfm_Recompute]> {
  let summary = "root-mean-square norm over the last dimension";
  let description = [{
    result = input / sqrt(mean(input^2) + eps) * (weight + weight_offset). `weight_offset` is 1 for
    Gemma, whose checkpoint holds w and uses 1 + w.

    C1: `weight`, where given, has rank 1 and the last size of `input`.
    C2: the result has the shape of `input`.
    C3: `eps` is not negative.
    C4: `input`, `weight` and the result have the same element type.

    Example:
    ```mlir
    %0 = tfm.rms_norm %x, %w {eps = 1.0e-6 : f64} : (tensor<2x8x64xf32>, tensor<64xf32>) -> tensor<2x8x64xf32>
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$input, Optional<Tfm_FloatTensor>:$weight, F64Attr:$eps,
                       DefaultValuedAttr<F64Attr, "0.0">:$weight_offset);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_RmsNormGradOp : Tfm_Op<"rms_norm_grad"> {
  let summary = "gradients of rms_norm";
  let description = [{
    With r = 1/sqrt(mean(x^2)+eps), g = gradient * (weight + weight_offset):
    input_grad = r * (g - x * r^2 * mean(g * x)), weight_grad = column sum of gradient * x * r in f32.
    The statistics are computed again from the input.

    C1: `gradient` and `input_grad` have the shape of `input`.
    C2: `weight_grad` is present exactly when `weight` is, has its shape and is f32 (f64 for f64).
    C3: `weight` and `eps` as in `tfm.rms_norm`.
    C4: `input` and `weight` have the same element type; `gradient` and `input_grad` have it, or f32 (f64
        for f64).

    Example:
    ```mlir
    %dx, %dw = tfm.rms_norm_grad %x, %dy, %w {eps = 1.0e-6 : f64} : (tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<64xf32>) -> (tensor<2x8x64xf32>, tensor<64xf32>)
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$input, Tfm_FloatTensor:$gradient, Optional<Tfm_FloatTensor>:$weight,
                       F64Attr:$eps, DefaultValuedAttr<F64Attr, "0.0">:$weight_offset);
  let results = (outs Tfm_FloatTensor:$input_grad, Optional<Tfm_FloatTensor>:$weight_grad);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_LayerNormOp : Tfm_DifferentiableOp<"layer_norm", [AttrSizedOperandSegments, Tfm_Recompute]> {
  let summary = "layer norm over the last dimension";
  let description = [{
    result = (input - mean) / sqrt(variance + eps) * weight + bias, with the biased variance.

    C1: `weight` and `bias`, where given, have rank 1 and the last size of `input`.
    C2: the result has the shape of `input`.
    C3: `eps` is not negative.
    C4: `bias` needs `weight`.
    C5: `input`, `weight`, `bias` and the result have the same element type.

    Example:
    ```mlir
    %0 = tfm.layer_norm %x weight %w bias %b {eps = 1.0e-5 : f64} : (tensor<2x8x64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<2x8x64xf32>
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$input, Optional<Tfm_FloatTensor>:$weight,
                       Optional<Tfm_FloatTensor>:$bias, F64Attr:$eps);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = [{
    $input (`weight` $weight^)? (`bias` $bias^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Tfm_LayerNormGradOp : Tfm_Op<"layer_norm_grad", [AttrSizedResultSegments]> {
  let summary = "gradients of layer_norm";
  let description = [{
    With xhat = (x - mean) * r and g = gradient * weight:
    input_grad = r * (g - mean(g) - xhat * mean(g * xhat)), weight_grad = column sum of
    gradient * xhat, bias_grad = column sum of gradient, both f32 (f64 for f64).

    C1: `gradient` and `input_grad` have the shape of `input`.
    C2: `weight_grad` is present only with `weight`; `bias_grad` only where asked for. Both are f32
        (f64 for f64).
    C3: `weight` and `eps` as in `tfm.layer_norm`.
    C4: the element types of `tfm.rms_norm_grad`.

    Example:
    ```mlir
    %dx, %dw, %db = tfm.layer_norm_grad %x, %dy, %w {eps = 1.0e-5 : f64, resultSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<64xf32>) -> (tensor<2x8x64xf32>, tensor<64xf32>, tensor<64xf32>)
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$input, Tfm_FloatTensor:$gradient, Optional<Tfm_FloatTensor>:$weight,
                       F64Attr:$eps);
  let results = (outs Tfm_FloatTensor:$input_grad, Optional<Tfm_FloatTensor>:$weight_grad,
                      Optional<Tfm_FloatTensor>:$bias_grad);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Activations: arithmetic in f32 (f64 for f64)
//===----------------------------------------------------------------------===//

class Tfm_UnaryOp<string mnemonic, string text, dag attributes = (ins)>
    : Tfm_DifferentiableOp<mnemonic, [Tfm_Recompute]> {
  let summary = text;
  let arguments = !con((ins Tfm_FloatTensor:$input), attributes);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

class Tfm_UnaryGradOp<string mnemonic, string text, dag attributes = (ins)> : Tfm_Op<mnemonic> {
  let summary = text;
  let arguments = !con((ins Tfm_FloatTensor:$input, Tfm_FloatTensor:$gradient), attributes);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_GeluOp : Tfm_UnaryOp<"gelu", "Gaussian error linear unit", (ins Tfm_GeluKind:$kind)> {
  let description = [{
    See `GeluKind` for the two formulas.

    C1: the result has the shape of `input`.
    C2: `input` and the result have the same element type.

    Example:
    ```mlir
    %0 = tfm.gelu %x {kind = 1 : i32} : (tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
    ```
  }];
}
def Tfm_GeluGradOp : Tfm_UnaryGradOp<"gelu_grad", "gradient of gelu", (ins Tfm_GeluKind:$kind)> {
  let description = [{
    gradient * gelu'(input).

    C1: all shapes are equal.
    C2: `gradient` and the result have the element type of `input`, or f32 (f64 for f64).

    Example:
    ```mlir
    %0 = tfm.gelu_grad %x, %dy {kind = 1 : i32} : (tensor<2x8x64xf32>, tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
    ```
  }];
}
def Tfm_SiluOp : Tfm_UnaryOp<"silu", "x * sigmoid(x)"> {
  let description = [{
    C1: the result has the shape of `input`.
    C2: `input` and the result have the same element type.

    Example:
    ```mlir
    %0 = tfm.silu %x : (tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
    ```
  }];
}
def Tfm_SiluGradOp : Tfm_UnaryGradOp<"silu_grad", "gradient of silu"> {
  let description = [{
    gradient * s * (1 + input * (1 - s)) with s = sigmoid(input).

    C1: all shapes are equal.
    C2: `gradient` and the result have the element type of `input`, or f32 (f64 for f64).

    Example:
    ```mlir
    %0 = tfm.silu_grad %x, %dy : (tensor<2x8x64xf32>, tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
    ```
  }];
}

def Tfm_SwigluOp : Tfm_DifferentiableOp<"swiglu", [Tfm_Recompute]> {
  let summary = "silu(gate) * up";
  let description = [{
    Arithmetic in f32, rounded once.

    C1: `gate`, `up` and the result have equal shapes.
    C2: .. and the same element type.

    Example:
    ```mlir
    %0 = tfm.swiglu %g, %u : (tensor<2x8x176xf32>, tensor<2x8x176xf32>) -> tensor<2x8x176xf32>
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$gate, Tfm_FloatTensor:$up);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_SwigluGradOp : Tfm_Op<"swiglu_grad"> {
  let summary = "gradients of swiglu";
  let description = [{
    gate_grad = gradient * up * silu'(gate), up_grad = gradient * silu(gate).

    C1: all shapes are equal.
    C2: `gate` and `up` have the same element type; `gradient` and the results have it, or f32 (f64 for f64).

    Example:
    ```mlir
    %dg, %du = tfm.swiglu_grad %g, %u, %dy : (tensor<2x8x176xf32>, tensor<2x8x176xf32>, tensor<2x8x176xf32>) -> (tensor<2x8x176xf32>, tensor<2x8x176xf32>)
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$gate, Tfm_FloatTensor:$up, Tfm_FloatTensor:$gradient);
  let results = (outs Tfm_FloatTensor:$gate_grad, Tfm_FloatTensor:$up_grad);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif // DROVER_DIALECT_TFM_IR_TFMLAYEROPS
