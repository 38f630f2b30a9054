// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_bias_of_another_size(%x: tensor<3x5xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{expects bias to have shape [5], not [4]}}
  %0 = tfm.bias_add %x, %b : (tensor<3x5xf32>, tensor<4xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_input_of_rank_0(%x: tensor<f32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{expects an input of rank 1 or more}}
  %0 = tfm.bias_add %x, %b : (tensor<f32>, tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @c2_result_of_another_shape(%x: tensor<3x5xf32>, %b: tensor<5xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [3x5], not [5x3]}}
  %0 = tfm.bias_add %x, %b : (tensor<3x5xf32>, tensor<5xf32>) -> tensor<5x3xf32>
  return
}

// -----

func.func @c3_bias_of_another_type(%x: tensor<3x5xf32>, %b: tensor<5xf64>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'f64'}}
  %0 = tfm.bias_add %x, %b : (tensor<3x5xf32>, tensor<5xf64>) -> tensor<3x5xf32>
  return
}
