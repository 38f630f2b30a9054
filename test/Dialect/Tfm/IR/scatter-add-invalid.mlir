// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_axis_out_of_range(%u: tensor<3x5xf32>, %i: tensor<3xi64>) {
  // expected-error@+1 {{expects axis to be a dimension of [4x5], not 2}}
  %0 = tfm.scatter_add %u, %i {axis = 2 : i64} : (tensor<3x5xf32>, tensor<3xi64>) -> tensor<4x5xf32>
  return
}

// -----

func.func @c1_negative_axis(%u: tensor<3x5xf32>, %i: tensor<3xi64>) {
  // expected-error@+1 {{expects axis to be a dimension of [4x5], not -1}}
  %0 = tfm.scatter_add %u, %i {axis = -1 : i64} : (tensor<3x5xf32>, tensor<3xi64>) -> tensor<4x5xf32>
  return
}

// -----

func.func @c1_updates_of_another_shape(%u: tensor<3x4xf32>, %i: tensor<3xi64>) {
  // expected-error@+1 {{expects updates of shape [3x5], not [3x4]}}
  %0 = tfm.scatter_add %u, %i {axis = 0 : i64} : (tensor<3x4xf32>, tensor<3xi64>) -> tensor<4x5xf32>
  return
}

// -----

func.func @c1_dynamic_without_shape(%u: tensor<3x5xf32>, %i: tensor<3xi64>) {
  // expected-error@+1 {{expects 'shape' where a result size is dynamic}}
  %0 = tfm.scatter_add %u, %i {axis = 0 : i64} : (tensor<3x5xf32>, tensor<3xi64>) -> tensor<?x5xf32>
  return
}

// -----

func.func @c1_constant_index_too_large(%u: tensor<3x5xf32>) {
  %i = arith.constant dense<[0, 3, 4]> : tensor<3xi64>
  // expected-error@+1 {{expects indices in [-4, 4), not 4}}
  %0 = tfm.scatter_add %u, %i {axis = 0 : i64} : (tensor<3x5xf32>, tensor<3xi64>) -> tensor<4x5xf32>
  return
}
