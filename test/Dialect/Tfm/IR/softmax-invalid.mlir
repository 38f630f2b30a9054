// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_axis_out_of_range(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{expects axis to be a dimension of [2x3]}}
  %0 = tfm.softmax %x {axis = 2 : i64} : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @c1_negative_axis(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{expects axis to be a dimension of [2x3]}}
  %0 = tfm.softmax %x {axis = -1 : i64} : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @c1_result_of_another_shape(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [2x3], not [3x2]}}
  %0 = tfm.softmax %x {axis = 1 : i64} : tensor<2x3xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @c2_another_type(%x: tensor<3x5xf32>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'bf16'}}
  %0 = tfm.softmax %x {axis = 1 : i64} : tensor<3x5xf32> -> tensor<3x5xbf16>
  return
}
