// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_indices_of_rank_0(%x: tensor<4x5xf32>, %i: tensor<i64>, %u: tensor<5xf32>) {
  // expected-error@+1 {{expects the last size of indices [] to be static and at most 2}}
  %0 = tfm.scatter_nd %x, %i, %u : (tensor<4x5xf32>, tensor<i64>, tensor<5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @c1_tuples_longer_than_the_rank(%x: tensor<4x5xf32>, %i: tensor<2x3xi64>, %u: tensor<2xf32>) {
  // expected-error@+1 {{expects the last size of indices [2x3] to be static and at most 2}}
  %0 = tfm.scatter_nd %x, %i, %u : (tensor<4x5xf32>, tensor<2x3xi64>, tensor<2xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @c1_tuples_of_dynamic_length(%x: tensor<4x5xf32>, %i: tensor<2x?xi64>, %u: tensor<2xf32>) {
  // expected-error@+1 {{expects the last size of indices [2x?] to be static and at most 2}}
  %0 = tfm.scatter_nd %x, %i, %u : (tensor<4x5xf32>, tensor<2x?xi64>, tensor<2xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @c2_updates_of_another_type(%x: tensor<4x5xf32>, %i: tensor<2x1xi64>, %u: tensor<2x5xbf16>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'bf16'}}
  %0 = tfm.scatter_nd %x, %i, %u : (tensor<4x5xf32>, tensor<2x1xi64>, tensor<2x5xbf16>) -> tensor<4x5xf32>
  return
}

// -----

func.func @c2_result_of_another_shape(%x: tensor<4x5xf32>, %i: tensor<2x1xi64>, %u: tensor<2x5xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [4x5], not [5x4]}}
  %0 = tfm.scatter_nd %x, %i, %u : (tensor<4x5xf32>, tensor<2x1xi64>, tensor<2x5xf32>) -> tensor<5x4xf32>
  return
}

// -----

func.func @c3_updates_of_another_shape(%x: tensor<4x5xf32>, %i: tensor<2x1xi64>, %u: tensor<2x4xf32>) {
  // expected-error@+1 {{expects updates of shape [2x5], not [2x4]}}
  %0 = tfm.scatter_nd %x, %i, %u : (tensor<4x5xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @c4_constant_index_too_large(%x: tensor<9x4xf32>, %u: tensor<2xf32>) {
  %i = arith.constant dense<[[8, 3], [3, 8]]> : tensor<2x2xi64>
  // expected-error@+1 {{expects indices in [-4, 4), not 8}}
  %0 = tfm.scatter_nd %x, %i, %u : (tensor<9x4xf32>, tensor<2x2xi64>, tensor<2xf32>) -> tensor<9x4xf32>
  return
}
