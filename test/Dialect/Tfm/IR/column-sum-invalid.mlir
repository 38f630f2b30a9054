// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_result_of_another_size(%x: tensor<3x5xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [5], not [3]}}
  %0 = tfm.column_sum %x : (tensor<3x5xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @c1_input_of_rank_0(%x: tensor<f32>) {
  // expected-error@+1 {{expects an input of rank 1 or more}}
  %0 = tfm.column_sum %x : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @c2_result_in_bf16(%x: tensor<3x5xbf16>) {
  // expected-error@+1 {{expects a result of 'f32', not 'bf16'}}
  %0 = tfm.column_sum %x : (tensor<3x5xbf16>) -> tensor<5xbf16>
  return
}
