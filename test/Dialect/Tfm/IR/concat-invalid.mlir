// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_sizes_differ(%a: tensor<2x3xf32>, %b: tensor<3x3xf32>) {
  // expected-error@+1 {{expects operands that agree but for axis 1, not}}
  %0 = tfm.concat %a, %b {axis = 1 : i64} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @c1_ranks_differ(%a: tensor<2x3xf32>, %b: tensor<2x3x1xf32>) {
  // expected-error@+1 {{expects operands of one rank}}
  %0 = tfm.concat %a, %b {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3x1xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @c1_types_differ(%a: tensor<2x3xf32>, %b: tensor<2x3xbf16>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'bf16'}}
  %0 = tfm.concat %a, %b {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xbf16>) -> tensor<2x6xf32>
  return
}

// -----

func.func @c1_axis_out_of_range(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error@+1 {{expects axis to be a dimension of rank 2, not 2}}
  %0 = tfm.concat %a, %b {axis = 2 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @c1_negative_axis(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error@+1 {{expects axis to be a dimension of rank 2, not -1}}
  %0 = tfm.concat %a, %b {axis = -1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @c1_result_of_another_size(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [2x6], not [2x5]}}
  %0 = tfm.concat %a, %b {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @c1_no_operand() {
  // expected-error@+1 {{expects at least one operand}}
  %0 = tfm.concat {axis = 0 : i64} : () -> tensor<0xf32>
  return
}
