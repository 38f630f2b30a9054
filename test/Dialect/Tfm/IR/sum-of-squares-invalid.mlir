// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_result_in_f32(%g: tensor<4xf32>) {
  // expected-error@+1 {{result #0 must be ranked tensor of 64-bit float values}}
  %0 = tfm.sum_of_squares %g : (tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @c1_result_of_rank_1(%g: tensor<4xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [], not [4]}}
  %0 = tfm.sum_of_squares %g : (tensor<4xf32>) -> tensor<4xf64>
  return
}
