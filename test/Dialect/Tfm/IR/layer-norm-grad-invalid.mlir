// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_gradient_of_another_shape(%x: tensor<3x5xf32>, %dy: tensor<4x5xf32>) {
  // expected-error@+1 {{expects operands of equal shapes, not [3x5] and [4x5]}}
  %dx = tfm.layer_norm_grad %x, %dy {eps = 1.0e-6 : f64, resultSegmentSizes = array<i32: 1, 0, 0>} : (tensor<3x5xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c2_weight_grad_without_weight(%x: tensor<3x5xf32>, %dy: tensor<3x5xf32>) {
  // expected-error@+1 {{expects weight where weight_grad is a result}}
  %dx, %dw = tfm.layer_norm_grad %x, %dy {eps = 1.0e-6 : f64, resultSegmentSizes = array<i32: 1, 1, 0>} : (tensor<3x5xf32>, tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<5xf32>)
  return
}

// -----

func.func @c2_bias_grad_of_another_size(%x: tensor<3x5xf32>, %dy: tensor<3x5xf32>) {
  // expected-error@+1 {{expects result 1 to have shape [5], not [3]}}
  %dx, %db = tfm.layer_norm_grad %x, %dy {eps = 1.0e-6 : f64, resultSegmentSizes = array<i32: 1, 0, 1>} : (tensor<3x5xf32>, tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3xf32>)
  return
}

// -----

func.func @c2_bias_grad_in_bf16(%x: tensor<3x5xbf16>, %dy: tensor<3x5xbf16>) {
  // expected-error@+1 {{expects bias_grad of 'f32', not 'bf16'}}
  %dx, %db = tfm.layer_norm_grad %x, %dy {eps = 1.0e-6 : f64, resultSegmentSizes = array<i32: 1, 0, 1>} : (tensor<3x5xbf16>, tensor<3x5xbf16>) -> (tensor<3x5xbf16>, tensor<5xbf16>)
  return
}

// -----

func.func @c3_negative_eps(%x: tensor<3x5xf32>, %dy: tensor<3x5xf32>) {
  // expected-error@+1 {{expects eps to be finite and not negative}}
  %dx = tfm.layer_norm_grad %x, %dy {eps = -1.0 : f64, resultSegmentSizes = array<i32: 1, 0, 0>} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c3_input_of_rank_0(%x: tensor<f32>, %dy: tensor<f32>) {
  // expected-error@+1 {{expects an input of rank 1 or more}}
  %dx, %db = tfm.layer_norm_grad %x, %dy {eps = 1.0e-6 : f64, resultSegmentSizes = array<i32: 1, 0, 1>} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<1xf32>)
  return
}

// -----

func.func @c4_gradient_of_another_type(%x: tensor<3x5xbf16>, %dy: tensor<3x5xf64>) {
  // expected-error@+1 {{expects gradients of 'bf16' or 'f32', not 'f64'}}
  %0 = tfm.layer_norm_grad %x, %dy {eps = 1.0e-5 : f64, resultSegmentSizes = array<i32: 1, 0, 0>} : (tensor<3x5xbf16>, tensor<3x5xf64>) -> tensor<3x5xbf16>
  return
}
