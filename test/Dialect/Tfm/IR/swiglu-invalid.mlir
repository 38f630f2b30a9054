// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_up_of_another_shape(%g: tensor<3x5xf32>, %u: tensor<3x4xf32>) {
  // expected-error@+1 {{expects operands of equal shapes, not [3x5] and [3x4]}}
  %0 = tfm.swiglu %g, %u : (tensor<3x5xf32>, tensor<3x4xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_result_of_another_shape(%g: tensor<3x5xf32>, %u: tensor<3x5xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [3x5], not [3x4]}}
  %0 = tfm.swiglu %g, %u : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @c2_mixed_types(%g: tensor<3x5xf32>, %u: tensor<3x5xbf16>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'bf16'}}
  %0 = tfm.swiglu %g, %u : (tensor<3x5xf32>, tensor<3x5xbf16>) -> tensor<3x5xf16>
  return
}
