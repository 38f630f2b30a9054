// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_rows_differ(%x: tensor<2x5xf32>, %dy: tensor<3x7xf32>) {
  // expected-error@+1 {{expects input and gradient to agree in all but their last size, not [2x5] and [3x7]}}
  %0 = tfm.linear_weight_grad %x, %dy : (tensor<2x5xf32>, tensor<3x7xf32>) -> tensor<7x5xf32>
  return
}

// -----

func.func @c1_input_of_rank_0(%x: tensor<f32>, %dy: tensor<7xf32>) {
  // expected-error@+1 {{expects input and gradient to agree in all but their last size, not [] and [7]}}
  %0 = tfm.linear_weight_grad %x, %dy : (tensor<f32>, tensor<7xf32>) -> tensor<7x5xf32>
  return
}

// -----

func.func @c1_types_differ(%x: tensor<3x5xbf16>, %dy: tensor<3x7xf32>) {
  // expected-error@+1 {{expects input and gradient to have equal element types}}
  %0 = tfm.linear_weight_grad %x, %dy : (tensor<3x5xbf16>, tensor<3x7xf32>) -> tensor<7x5xf32>
  return
}

// -----

func.func @c2_result_in_bf16(%x: tensor<3x5xbf16>, %dy: tensor<3x7xbf16>) {
  // expected-error@+1 {{expects a result of 'f32', not 'bf16'}}
  %0 = tfm.linear_weight_grad %x, %dy : (tensor<3x5xbf16>, tensor<3x7xbf16>) -> tensor<7x5xbf16>
  return
}

// -----

func.func @c2_result_of_f64_in_f32(%x: tensor<3x5xf64>, %dy: tensor<3x7xf64>) {
  // expected-error@+1 {{expects a result of 'f64', not 'f32'}}
  %0 = tfm.linear_weight_grad %x, %dy : (tensor<3x5xf64>, tensor<3x7xf64>) -> tensor<7x5xf32>
  return
}

// -----

func.func @c2_in_out_exchanges_the_sizes(%x: tensor<3x5xf32>, %dy: tensor<3x7xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [5x7], not [7x5]}}
  %0 = tfm.linear_weight_grad %x, %dy in_out : (tensor<3x5xf32>, tensor<3x7xf32>) -> tensor<7x5xf32>
  return
}
