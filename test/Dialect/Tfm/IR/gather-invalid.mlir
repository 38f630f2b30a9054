// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_axis_out_of_range(%x: tensor<4x5xf32>, %i: tensor<3xi64>) {
  // expected-error@+1 {{expects axis to be a dimension of [4x5], not 2}}
  %0 = tfm.gather %x, %i {axis = 2 : i64} : (tensor<4x5xf32>, tensor<3xi64>) -> tensor<4x3xf32>
  return
}

// -----

func.func @c1_negative_axis(%x: tensor<4x5xf32>, %i: tensor<3xi64>) {
  // expected-error@+1 {{expects axis to be a dimension of [4x5], not -1}}
  %0 = tfm.gather %x, %i {axis = -1 : i64} : (tensor<4x5xf32>, tensor<3xi64>) -> tensor<4x3xf32>
  return
}

// -----

func.func @c1_result_of_another_shape(%x: tensor<4x5xf32>, %i: tensor<3xi64>) {
  // expected-error@+1 {{expects result 0 to have shape [3x5], not [4x3]}}
  %0 = tfm.gather %x, %i {axis = 0 : i64} : (tensor<4x5xf32>, tensor<3xi64>) -> tensor<4x3xf32>
  return
}

// -----

func.func @c2_another_type(%x: tensor<4x5xf32>, %i: tensor<3xi64>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'f64'}}
  %0 = tfm.gather %x, %i {axis = 0 : i64} : (tensor<4x5xf32>, tensor<3xi64>) -> tensor<3x5xf64>
  return
}

// -----

func.func @c3_constant_index_too_large(%x: tensor<4x5xf32>) {
  %i = arith.constant dense<[0, -4, 4]> : tensor<3xi64>
  // expected-error@+1 {{expects indices in [-4, 4), not 4}}
  %0 = tfm.gather %x, %i {axis = 0 : i64} : (tensor<4x5xf32>, tensor<3xi64>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c3_constant_index_too_small(%x: tensor<4x5xf32>) {
  %i = arith.constant dense<-6> : tensor<3xi32>
  // expected-error@+1 {{expects indices in [-5, 5), not -6}}
  %0 = tfm.gather %x, %i {axis = 1 : i64} : (tensor<4x5xf32>, tensor<3xi32>) -> tensor<4x3xf32>
  return
}
