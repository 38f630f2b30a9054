// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_weight_of_rank_1(%x: tensor<3x5xf32>, %w: tensor<5xf32>) {
  // expected-error@+1 {{expects a weight of rank 2, not [5]}}
  %0 = tfm.linear %x, %w : (tensor<3x5xf32>, tensor<5xf32>) -> tensor<3x1xf32>
  return
}

// -----

func.func @c2_contracted_sizes_differ(%x: tensor<3x5xf32>, %w: tensor<7x4xf32>) {
  // expected-error@+1 {{expects the last size of input [3x5] to be that of weight, [4]}}
  %0 = tfm.linear %x, %w : (tensor<3x5xf32>, tensor<7x4xf32>) -> tensor<3x7xf32>
  return
}

// -----

func.func @c2_in_out_contracts_the_first_size(%x: tensor<3x5xf32>, %w: tensor<7x5xf32>) {
  // expected-error@+1 {{expects the last size of input [3x5] to be that of weight, [7]}}
  %0 = tfm.linear %x, %w in_out : (tensor<3x5xf32>, tensor<7x5xf32>) -> tensor<3x7xf32>
  return
}

// -----

func.func @c2_input_of_rank_0(%x: tensor<f32>, %w: tensor<7x5xf32>) {
  // expected-error@+1 {{expects the last size of input []}}
  %0 = tfm.linear %x, %w : (tensor<f32>, tensor<7x5xf32>) -> tensor<7xf32>
  return
}

// -----

func.func @c3_result_of_another_width(%x: tensor<3x5xf32>, %w: tensor<7x5xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [3x7], not [3x5]}}
  %0 = tfm.linear %x, %w : (tensor<3x5xf32>, tensor<7x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c4_weight_of_another_type(%x: tensor<3x5xf32>, %w: tensor<7x5xbf16>) {
  // expected-error@+1 {{expects input and weight to have equal element types}}
  %0 = tfm.linear %x, %w : (tensor<3x5xf32>, tensor<7x5xbf16>) -> tensor<3x7xf32>
  return
}
