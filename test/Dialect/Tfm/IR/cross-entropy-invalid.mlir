// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_sum_of_another_shape(%y: tensor<2x3xi64>, %m: tensor<2x3xf32>, %s: tensor<2x4xf32>, %t: tensor<2x3xf32>) {
  // expected-error@+1 {{expects operands of equal shapes, not [2x3] and [2x4]}}
  %loss = tfm.cross_entropy %y, %m, %s, %t : (tensor<2x3xi64>, tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<f64>
  return
}

// -----

func.func @c1_loss_in_f32(%y: tensor<2x3xi64>, %m: tensor<2x3xf32>, %s: tensor<2x3xf32>, %t: tensor<2x3xf32>) {
  // expected-error@+1 {{result #0 must be ranked tensor of 64-bit float values}}
  %loss = tfm.cross_entropy %y, %m, %s, %t : (tensor<2x3xi64>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @c1_loss_of_rank_1(%y: tensor<2x3xi64>, %m: tensor<2x3xf32>, %s: tensor<2x3xf32>, %t: tensor<2x3xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [], not [1]}}
  %loss = tfm.cross_entropy %y, %m, %s, %t : (tensor<2x3xi64>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<1xf64>
  return
}
