// Weights that a model reads through arithmetic of its own: the gradient of such a one is a function of its sum over
// the sequence, not a sum of functions.
module attributes {tfm.initializer_range = 2.000000e-01 : f64} {
  func.func @model(%ids: tensor<1x32xi64> {tfm.input = "input_ids"}, %embed: tensor<131x16xf32> {tfm.parameter = "embed.weight"},
                   %positions: tensor<40x16xf32> {tfm.parameter = "positions"}, %mix: tensor<32x32xf32> {tfm.parameter = "mix"},
                   %scale: tensor<16xf32> {tfm.parameter = "norm.weight"}, %tanh: tensor<24x16xf32> {tfm.parameter = "up.weight"},
                   %down: tensor<16x24xf32> {tfm.parameter = "down.weight"}, %head: tensor<131x16xf32> {tfm.parameter = "head.weight"})
      -> (tensor<1x32x131xf32> {tfm.output = "logits"}) {
    %0 = tfm.embedding %ids, %embed : (tensor<1x32xi64>, tensor<131x16xf32>) -> tensor<1x32x16xf32>
    // A table added as a slice.
    %rows = tfm.slice %positions {offsets = array<i64: 0, 0>, strides = array<i64: 1, 1>} : tensor<40x16xf32> -> tensor<32x16xf32>
    %table = tfm.reshape %rows : tensor<32x16xf32> -> tensor<1x32x16xf32>
    %1 = arith.addf %0, %table : tensor<1x32x16xf32>
    // A product over the sequence.
    %2 = tfm.transpose %1 {permutation = array<i64: 0, 2, 1>} : tensor<1x32x16xf32> -> tensor<1x16x32xf32>
    %3 = tfm.linear %2, %mix : (tensor<1x16x32xf32>, tensor<32x32xf32>) -> tensor<1x16x32xf32>
    %4 = tfm.transpose %3 {permutation = array<i64: 0, 2, 1>} : tensor<1x16x32xf32> -> tensor<1x32x16xf32>
    %5 = arith.addf %1, %4 : tensor<1x32x16xf32>
    // A norm whose scale is a multiple, a linear whose weight is bounded.
    %two = arith.constant dense<2.0> : tensor<16xf32>
    %scaled = arith.mulf %scale, %two : tensor<16xf32>
    %6 = tfm.rms_norm %5, %scaled {eps = 1.000000e-05 : f64} : (tensor<1x32x16xf32>, tensor<16xf32>) -> tensor<1x32x16xf32>
    %bounded = math.tanh %tanh : tensor<24x16xf32>
    %7 = tfm.linear %6, %bounded : (tensor<1x32x16xf32>, tensor<24x16xf32>) -> tensor<1x32x24xf32>
    %8 = tfm.gelu %7 {kind = 0 : i32} : (tensor<1x32x24xf32>) -> tensor<1x32x24xf32>
    %9 = tfm.linear %8, %down : (tensor<1x32x24xf32>, tensor<16x24xf32>) -> tensor<1x32x16xf32>
    %10 = arith.addf %5, %9 : tensor<1x32x16xf32>
    %11 = tfm.linear %10, %head : (tensor<1x32x16xf32>, tensor<131x16xf32>) -> tensor<1x32x131xf32>
    return %11 : tensor<1x32x131xf32>
  }
}
