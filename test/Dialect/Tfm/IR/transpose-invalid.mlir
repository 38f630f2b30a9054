// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_repeated_dimension(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{expects a permutation of 2 dimensions}}
  %0 = tfm.transpose %x {permutation = array<i64: 0, 0>} : tensor<2x3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @c1_dimension_out_of_range(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{expects a permutation of 2 dimensions}}
  %0 = tfm.transpose %x {permutation = array<i64: 0, 9223372036854775807>} : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @c1_negative_dimension(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{expects a permutation of 2 dimensions}}
  %0 = tfm.transpose %x {permutation = array<i64: -1, 0>} : tensor<2x3xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @c1_too_few_dimensions(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{expects a permutation of 2 dimensions}}
  %0 = tfm.transpose %x {permutation = array<i64: 0>} : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @c1_result_not_permuted(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [3x2], not [2x3]}}
  %0 = tfm.transpose %x {permutation = array<i64: 1, 0>} : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @c2_another_type(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'bf16'}}
  %0 = tfm.transpose %x {permutation = array<i64: 1, 0>} : tensor<2x3xf32> -> tensor<3x2xbf16>
  return
}
