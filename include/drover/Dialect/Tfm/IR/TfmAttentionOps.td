#ifndef DROVER_DIALECT_TFM_IR_TFMATTENTIONOPS
#define DROVER_DIALECT_TFM_IR_TFMATTENTIONOPS

def Tfm_RopeOp : Tfm_DifferentiableOp<"rope", [Tfm_Recompute]> {
  let summary = "rotary position embedding";
  let description = [{
    `input` is [B, S, heads * head_size]. In each head the first `rotary_dim` channels are rotated:
    pairs (c, c + rotary_dim/2), or with `interleaved` (2c, 2c+1), by the angle
    positions[b, s] * f[c], cos and sin multiplied by `magnitude`. f[c] is theta^(-2c/rotary_dim)
    after `scaling`, or `inv_freq[c]` where that is given. Angles, cos and sin in f32. With `inverse`
    the rotation is the transposed one (its own gradient).

    C1: `positions` is [B, S] or [1, S].
    C2: head_size divides the last size of `input`.
    C3: `rotary_dim` is even, positive and at most `head_size`.
    C4: `inv_freq`, where given, has rotary_dim/2 elements, and `scaling` is absent.
    C5: the result has the shape of `input`.
    C6: `theta` is positive, and it, `magnitude` and `inv_freq` are finite.

    Example:
    ```mlir
    %0 = tfm.rope %q, %positions {head_size = 8 : i64, rotary_dim = 8 : i64, theta = 5.0e5 : f64} : (tensor<2x8x64xf32>, tensor<2x8xi64>) -> tensor<2x8x64xf32>
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$input, Tfm_IdTensor:$positions, I64Attr:$head_size,
                       I64Attr:$rotary_dim, F64Attr:$theta, OptionalAttr<Tfm_RopeScalingAttr>:$scaling,
                       OptionalAttr<DenseF32ArrayAttr>:$inv_freq,
                       DefaultValuedAttr<F64Attr, "1.0">:$magnitude, UnitAttr:$interleaved,
                       UnitAttr:$inverse);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    /// The rotary_dim/2 frequencies in radians per position, in the f32 arithmetic of the reference
    /// implementation (Hugging Face transformers, modeling_rope_utils).
    ::llvm::SmallVector<float> getFrequencies();
  }];
}

def Tfm_AttentionOp : Tfm_DifferentiableOp<"attention", [AttrSizedOperandSegments, Tfm_Recompute, Tfm_Localize]> {
  let summary = "scaled dot-product attention, grouped-query";
  let description = [{
    `query` is [B, S, num_heads * D], `key` [B, T, num_kv_heads * D], `value` [B, T, num_kv_heads * E].
    Query head h reads kv head h / (num_heads / num_kv_heads). The score of query i and key j is
    scale * <q_i, k_j>, then softcap * tanh(score / softcap), then + mask (float) ; it takes part in
    the softmax where all of these allow it: `causal` (see CausalKind), `window` (|i' - j| < window,
    with the query's position i' = i + T - S for bottom_right and i otherwise), `mask` (i1: true takes
    part), `key_mask` (non-zero takes part), `documents` (equal ids of query and key; needs S = T).
    `alibi_slopes` adds slope[h] * j to the score after softcap. A score of -inf takes no part. A row
    in which nothing takes part gives zero, and log_sum_exp -inf. Softmax in f32 (f64 for f64).

    Where the queries are a part of the sequence that is not a contiguous one, `query_index` says
    where in the keys' sequence each stands: query i is at i' = query_index[i], at least 0 and below
    T, for `causal` and `window`, and its document is documents[b, i'].

    C1: num_kv_heads divides num_heads.
    C2: num_heads divides the last size of `query`; num_kv_heads those of `key` and `value`; query and
        key have the same head size D.
    C3: batch sizes agree, and key and value have the same length T.
    C4: the result is [B, S, num_heads * E], log_sum_exp [B, num_heads, S] in f32 (f64 for f64).
    C5: `mask` has rank 4, [B or 1, num_heads or 1, S or 1, T].
    C6: `key_mask` is [B, T] or [1, T].
    C7: `documents` is [B, T], and S = T where `query_index` is absent.
    C8: `window`, `softcap` are positive; `alibi_slopes` has num_heads elements.
    C9: `query_index` is tensor<Sxi64>, and `causal` is not bottom_right where it is given.
    C10: `scale` is finite, and no size is 0.
    C11: query, key, value and result have the same element type.

    Example:
    ```mlir
    %o, %lse = tfm.attention %q, %k, %v causal top_left {num_heads = 8 : i64, num_kv_heads = 2 : i64, scale = 0.125 : f64} : (tensor<2x8x64xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> (tensor<2x8x64xf32>, tensor<2x8x8xf32>)
    %p, %l = tfm.attention %half, %k, %v query_index %i causal top_left {num_heads = 8 : i64, num_kv_heads = 2 : i64, scale = 0.125 : f64} : (tensor<2x4x64xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<4xi64>) -> (tensor<2x4x64xf32>, tensor<2x8x4xf32>)
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$query, Tfm_FloatTensor:$key, Tfm_FloatTensor:$value,
                       Optional<Tfm_MaskTensor>:$mask, Optional<Tfm_KeyMaskTensor>:$key_mask,
                       Optional<Tfm_IdTensor>:$documents, Optional<Tfm_IndexVector>:$query_index,
                       I64Attr:$num_heads, I64Attr:$num_kv_heads, F64Attr:$scale,
                       DefaultValuedAttr<Tfm_CausalKind, "::drover::tfm::CausalKind::None">:$causal,
                       OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$softcap,
                       OptionalAttr<DenseF32ArrayAttr>:$alibi_slopes);
  let results = (outs Tfm_FloatTensor:$result, Tfm_FloatTensor:$log_sum_exp);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? (`key_mask` $key_mask^)? (`documents` $documents^)?
    (`query_index` $query_index^)? (`causal` $causal^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    int64_t getHeadSize() { return getQuery().getType().getDimSize(2) / getNumHeads(); }
    int64_t getValueHeadSize() { return getValue().getType().getDimSize(2) / getNumKvHeads(); }
  }];
}

def Tfm_AttentionGradOp : Tfm_Op<"attention_grad", [AttrSizedOperandSegments, Tfm_Recompute, Tfm_Localize]> {
  let summary = "gradients of attention";
  let description = [{
    From the forward's operands, result and log_sum_exp, and the gradient of the result. The mask
    gets no gradient. key_grad and value_grad may be wider than key and value (f32: they are summed
    over CP and over kv replicas).

    C1: `result` and `gradient` have the shape of the forward's result and the element type of `query`,
        `log_sum_exp` its own shape.
    C2: the three gradients have the shapes of query, key and value.
    C3: the constraints of `tfm.attention` on its operands.

    Example:
    ```mlir
    %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %lse, %do causal top_left {num_heads = 8 : i64, num_kv_heads = 2 : i64, scale = 0.125 : f64} : (tensor<2x8x64xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x64xf32>, tensor<2x8x8xf32>, tensor<2x8x64xf32>) -> (tensor<2x8x64xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>)
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$query, Tfm_FloatTensor:$key, Tfm_FloatTensor:$value,
                       Tfm_FloatTensor:$result, Tfm_FloatTensor:$log_sum_exp, Tfm_FloatTensor:$gradient,
                       Optional<Tfm_MaskTensor>:$mask, Optional<Tfm_KeyMaskTensor>:$key_mask,
                       Optional<Tfm_IdTensor>:$documents, Optional<Tfm_IndexVector>:$query_index,
                       I64Attr:$num_heads, I64Attr:$num_kv_heads, F64Attr:$scale,
                       DefaultValuedAttr<Tfm_CausalKind, "::drover::tfm::CausalKind::None">:$causal,
                       OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$softcap,
                       OptionalAttr<DenseF32ArrayAttr>:$alibi_slopes);
  let results = (outs Tfm_FloatTensor:$query_grad, Tfm_FloatTensor:$key_grad, Tfm_FloatTensor:$value_grad);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $result `,` $log_sum_exp `,` $gradient
    (`mask` $mask^)? (`key_mask` $key_mask^)? (`documents` $documents^)?
    (`query_index` $query_index^)? (`causal` $causal^)? attr-dict `:` functional-type(operands, results)
  }];
}

#endif // DROVER_DIALECT_TFM_IR_TFMATTENTIONOPS
