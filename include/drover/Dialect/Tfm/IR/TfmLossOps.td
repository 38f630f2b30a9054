#ifndef DROVER_DIALECT_TFM_IR_TFMLOSSOPS
#define DROVER_DIALECT_TFM_IR_TFMLOSSOPS

// Cross-entropy is three forward ops, because over a sharded vocabulary a maximum and a sum are
// reduced between them, and one rule cannot hold collectives inside (docs/tfm.md).
// Where the vocabulary is sharded, `offset` is the first of a rank's columns, and columns v with
// offset + v >= `vocabulary` are padding.

def Tfm_LogitsMaxOp : Tfm_Op<"logits_max", [Tfm_Recompute, Tfm_Localize]> {
  let summary = "row maximum of the logits";
  let description = [{
    maximum[b, s] = max over v of logits[b, s, v]. Columns of padding take no part; -inf where all
    are.

    C1: the result has the shape of `logits` without its last size, in f32 (f64 for f64).
    C2: `offset` is tensor<i64>.
    C3: `vocabulary` is positive.

    Example:
    ```mlir
    %m = tfm.logits_max %logits : (tensor<2x8x256xf32>) -> tensor<2x8xf32>
    %n = tfm.logits_max %part offset %first {vocabulary = 257 : i64} : (tensor<2x8x65xf32>, tensor<i64>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$logits, Optional<Tfm_Offset>:$offset, OptionalAttr<I64Attr>:$vocabulary);
  let results = (outs Tfm_FloatTensor:$maximum);
  let assemblyFormat = "$logits (`offset` $offset^)? attr-dict `:` functional-type(operands, results)";
}

def Tfm_LogitsSumOp : Tfm_Op<"logits_sum", [Tfm_Recompute, Tfm_Localize]> {
  let summary = "row sum of exponentials and the label's logit";
  let description = [{
    sum[b, s] = sum over v of exp(logits[b, s, v] - maximum[b, s]); target[b, s] =
    logits[b, s, labels[b, s] - offset], 0 where the label does not count (is negative) or is none of
    the columns of `logits`, which only `offset` allows. Columns of padding take no part.

    C1: `labels` and `maximum` have the shape of `logits` without its last size, as have the results.
    C2: `maximum`, `sum` and `target` are f32 (f64 for f64).
    C3: `offset` is tensor<i64>.
    C4: `vocabulary` is positive.

    Example:
    ```mlir
    %s, %t = tfm.logits_sum %logits, %labels, %m : (tensor<2x8x256xf32>, tensor<2x8xi64>, tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
    %u, %v = tfm.logits_sum %part, %labels, %m offset %first {vocabulary = 257 : i64} : (tensor<2x8x65xf32>, tensor<2x8xi64>, tensor<2x8xf32>, tensor<i64>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$logits, Tfm_IdTensor:$labels, Tfm_FloatTensor:$maximum,
                       Optional<Tfm_Offset>:$offset, OptionalAttr<I64Attr>:$vocabulary);
  let results = (outs Tfm_FloatTensor:$sum, Tfm_FloatTensor:$target);
  let assemblyFormat = [{
    $logits `,` $labels `,` $maximum (`offset` $offset^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Tfm_CrossEntropyOp : Tfm_Op<"cross_entropy", [Tfm_Recompute]> {
  let summary = "sum of the losses of the labels that count";
  let description = [{
    loss = sum over the positions whose label counts (is not negative) of
    log(sum) + maximum - target, in f64, in position order. The mean over the labels of the whole
    global batch is taken by the runtime: it divides by their number.

    C1: `labels`, `maximum`, `sum`, `target` have equal shapes; the loss is tensor<f64>.

    Example:
    ```mlir
    %loss = tfm.cross_entropy %labels, %m, %s, %t : (tensor<2x8xi64>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<f64>
    ```
  }];
  let arguments = (ins Tfm_IdTensor:$labels, Tfm_FloatTensor:$maximum, Tfm_FloatTensor:$sum, Tfm_FloatTensor:$target);
  let results = (outs RankedTensorOf<[F64]>:$loss);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_CrossEntropyGradOp : Tfm_Op<"cross_entropy_grad", [Tfm_Localize]> {
  let summary = "gradient of the logits";
  let description = [{
    result[b, s, v] = seed * (exp(logits - maximum) / sum - [offset + v = label]) where the label
    counts and the column is no padding, else 0. `seed` is 1 / (number of labels of the global batch
    that count).

    C1: the shapes and types of `tfm.logits_sum`; the result has the shape of `logits`.
    C2: `seed` is tensor<f32> (f64 for f64).
    C3: `offset` is tensor<i64>.
    C4: `vocabulary` is positive.

    Example:
    ```mlir
    %d = tfm.cross_entropy_grad %logits, %labels, %m, %s, %seed : (tensor<2x8x256xf32>, tensor<2x8xi64>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<f32>) -> tensor<2x8x256xf32>
    %e = tfm.cross_entropy_grad %part, %labels, %m, %s, %seed offset %first {vocabulary = 257 : i64} : (tensor<2x8x65xf32>, tensor<2x8xi64>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<f32>, tensor<i64>) -> tensor<2x8x65xf32>
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$logits, Tfm_IdTensor:$labels, Tfm_FloatTensor:$maximum,
                       Tfm_FloatTensor:$sum, Tfm_FloatTensor:$seed, Optional<Tfm_Offset>:$offset,
                       OptionalAttr<I64Attr>:$vocabulary);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = [{
    $logits `,` $labels `,` $maximum `,` $sum `,` $seed (`offset` $offset^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Accumulation and the optimizer
//===----------------------------------------------------------------------===//

def Tfm_AccumulateOp : Tfm_Op<"accumulate"> {
  let summary = "add to a gradient accumulator in place";
  let description = [{
    result = accumulator + value in f32 (f64 for f64), or value alone where the body's call says that
    it is the first into this accumulator (docs/body-abi.md, `accumulate`). The result lives in the
    accumulator's memory.

    C1: all shapes are equal; the accumulator is f32 or f64, and the result has its type.

    Example:
    ```mlir
    %1 = tfm.accumulate %acc, %dw : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$accumulator, Tfm_FloatTensor:$value);
  let results = (outs Tfm_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_SumOfSquaresOp : Tfm_Op<"sum_of_squares"> {
  let summary = "sum of squares in f64";
  let description = [{
    C1: the result is tensor<f64>. The order of summation depends on the size alone.

    Example:
    ```mlir
    %0 = tfm.sum_of_squares %g : (tensor<?xf32>) -> tensor<f64>
    ```
  }];
  let arguments = (ins Tfm_FloatTensor:$input);
  let results = (outs RankedTensorOf<[F64]>:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_AdamWOp : Tfm_Op<"adamw"> {
  let summary = "one AdamW update";
  let description = [{
    With g = clip * gradient, in f32 (DESIGN section 4; Loshchilov and Hutter, arXiv 1711.05101):
      p = parameter * (1 - lr * weight_decay)
      m = beta1 * moment1 + (1 - beta1) * g;  v = beta2 * moment2 + (1 - beta2) * g^2
      p = p - lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps)
    with bias1 = 1 - beta1^t, bias2 = 1 - beta2^t given. `hyper` is
    [lr, weight_decay, beta1, beta2, eps, bias1, bias2, clip].

    C1: the four tensors and the three results are f32 of one shape; `hyper` is tensor<8xf32>.

    Example:
    ```mlir
    %p1, %m1, %v1 = tfm.adamw %p, %m, %v, %g, %h : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<8xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
    ```
  }];
  let arguments = (ins Tfm_F32Tensor:$parameter, Tfm_F32Tensor:$moment1, Tfm_F32Tensor:$moment2,
                       Tfm_F32Tensor:$gradient, Tfm_F32Tensor:$hyper);
  let results = (outs Tfm_F32Tensor:$new_parameter, Tfm_F32Tensor:$new_moment1, Tfm_F32Tensor:$new_moment2);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tfm_SgdOp : Tfm_Op<"sgd"> {
  let summary = "one SGD update";
  let description = [{
    result = parameter * (1 - lr * weight_decay) - lr * clip * gradient, `hyper` as in `tfm.adamw`.

    C1: the tensors and the result are f32 of one shape; `hyper` is tensor<8xf32>.

    Example:
    ```mlir
    %p1 = tfm.sgd %p, %g, %h : (tensor<?xf32>, tensor<?xf32>, tensor<8xf32>) -> tensor<?xf32>
    ```
  }];
  let arguments = (ins Tfm_F32Tensor:$parameter, Tfm_F32Tensor:$gradient, Tfm_F32Tensor:$hyper);
  let results = (outs Tfm_F32Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif // DROVER_DIALECT_TFM_IR_TFMLOSSOPS
