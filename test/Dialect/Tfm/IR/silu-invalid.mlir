// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_result_of_another_shape(%x: tensor<3x5xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [3x5], not [5x3]}}
  %0 = tfm.silu %x : (tensor<3x5xf32>) -> tensor<5x3xf32>
  return
}

// -----

func.func @c2_result_of_another_type(%x: tensor<3x5xf32>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'bf16'}}
  %0 = tfm.silu %x : (tensor<3x5xf32>) -> tensor<3x5xbf16>
  return
}
