// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_ranks_differ(%a: tensor<2x3x4xf32>, %b: tensor<4x5xf32>) {
  // expected-error@+1 {{expects operands of one rank and batch, not [2x3x4] and [4x5]}}
  %0 = tfm.matmul %a, %b : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
  return
}

// -----

func.func @c1_rank_1(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{expects operands of one rank and batch, not [4] and [4]}}
  %0 = tfm.matmul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @c1_batches_differ(%a: tensor<2x3x4xf32>, %b: tensor<1x4x5xf32>) {
  // expected-error@+1 {{expects operands of one rank and batch, not [2x3x4] and [1x4x5]}}
  %0 = tfm.matmul %a, %b : (tensor<2x3x4xf32>, tensor<1x4x5xf32>) -> tensor<2x3x5xf32>
  return
}

// -----

func.func @c2_contracted_sizes_differ(%a: tensor<3x4xf32>, %b: tensor<3x5xf32>) {
  // expected-error@+1 {{expects equal contracted sizes, not [4] and [3]}}
  %0 = tfm.matmul %a, %b : (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c2_transposed_sizes_differ(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>) {
  // expected-error@+1 {{expects equal contracted sizes, not [4] and [5]}}
  %0 = tfm.matmul %a, %b {transpose_rhs} : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c3_mixed_operands(%a: tensor<2x2xf32>, %b: tensor<2x2xbf16>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'bf16'}}
  %0 = tfm.matmul %a, %b : (tensor<2x2xf32>, tensor<2x2xbf16>) -> tensor<2x2xf32>
  return
}

// -----

func.func @c3_result_of_another_type(%a: tensor<2x2xbf16>) {
  // expected-error@+1 {{expects a result of 'bf16' or 'f32', not 'f64'}}
  %0 = tfm.matmul %a, %a : (tensor<2x2xbf16>, tensor<2x2xbf16>) -> tensor<2x2xf64>
  return
}
