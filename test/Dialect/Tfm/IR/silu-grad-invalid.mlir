// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_gradient_of_another_shape(%x: tensor<3x5xf32>, %dy: tensor<5x3xf32>) {
  // expected-error@+1 {{expects operands of equal shapes, not [3x5] and [5x3]}}
  %0 = tfm.silu_grad %x, %dy : (tensor<3x5xf32>, tensor<5x3xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_result_of_another_shape(%x: tensor<3x5xf32>, %dy: tensor<3x5xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [3x5], not [5x3]}}
  %0 = tfm.silu_grad %x, %dy : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<5x3xf32>
  return
}

// -----

func.func @c2_gradient_of_another_type(%x: tensor<3x5xbf16>, %dy: tensor<3x5xf16>) {
  // expected-error@+1 {{expects gradients of 'bf16' or 'f32', not 'f16'}}
  %0 = tfm.silu_grad %x, %dy : (tensor<3x5xbf16>, tensor<3x5xf16>) -> tensor<3x5xbf16>
  return
}
