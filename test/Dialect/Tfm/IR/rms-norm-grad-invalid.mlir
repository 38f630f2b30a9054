// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_gradient_of_another_shape(%x: tensor<3x5xf32>, %dy: tensor<3x4xf32>) {
  // expected-error@+1 {{expects operands of equal shapes, not [3x5] and [3x4]}}
  %dx = tfm.rms_norm_grad %x, %dy {eps = 1.0e-6 : f64} : (tensor<3x5xf32>, tensor<3x4xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_input_grad_of_another_shape(%x: tensor<3x5xf32>, %dy: tensor<3x5xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [3x5], not [3x4]}}
  %dx = tfm.rms_norm_grad %x, %dy {eps = 1.0e-6 : f64} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @c2_weight_without_weight_grad(%x: tensor<3x5xf32>, %dy: tensor<3x5xf32>, %w: tensor<5xf32>) {
  // expected-error@+1 {{expects 2 results, has 1}}
  %dx = tfm.rms_norm_grad %x, %dy, %w {eps = 1.0e-6 : f64} : (tensor<3x5xf32>, tensor<3x5xf32>, tensor<5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c2_weight_grad_without_weight(%x: tensor<3x5xf32>, %dy: tensor<3x5xf32>) {
  // expected-error@+1 {{expects 1 results, has 2}}
  %dx, %dw = tfm.rms_norm_grad %x, %dy {eps = 1.0e-6 : f64} : (tensor<3x5xf32>, tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<5xf32>)
  return
}

// -----

func.func @c2_weight_grad_in_bf16(%x: tensor<3x5xbf16>, %dy: tensor<3x5xbf16>, %w: tensor<5xbf16>) {
  // expected-error@+1 {{expects weight_grad of 'f32', not 'bf16'}}
  %dx, %dw = tfm.rms_norm_grad %x, %dy, %w {eps = 1.0e-6 : f64} : (tensor<3x5xbf16>, tensor<3x5xbf16>, tensor<5xbf16>) -> (tensor<3x5xbf16>, tensor<5xbf16>)
  return
}

// -----

func.func @c3_negative_eps(%x: tensor<3x5xf32>, %dy: tensor<3x5xf32>) {
  // expected-error@+1 {{expects eps to be finite and not negative}}
  %dx = tfm.rms_norm_grad %x, %dy {eps = -1.0 : f64} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c3_weight_of_another_size(%x: tensor<3x5xf32>, %dy: tensor<3x5xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{expects weight to have shape [5], not [4]}}
  %dx, %dw = tfm.rms_norm_grad %x, %dy, %w {eps = 1.0e-6 : f64} : (tensor<3x5xf32>, tensor<3x5xf32>, tensor<4xf32>) -> (tensor<3x5xf32>, tensor<4xf32>)
  return
}

// -----

func.func @c3_input_of_rank_0(%x: tensor<f32>, %dy: tensor<f32>) {
  // expected-error@+1 {{expects an input of rank 1 or more}}
  %dx = tfm.rms_norm_grad %x, %dy {eps = 1.0e-6 : f64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @c4_weight_of_another_type(%x: tensor<3x5xf32>, %w: tensor<5xbf16>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'bf16'}}
  %0, %1 = tfm.rms_norm_grad %x, %x, %w {eps = 1.0e-5 : f64} : (tensor<3x5xf32>, tensor<3x5xf32>, tensor<5xbf16>) -> (tensor<3x5xf32>, tensor<5xf32>)
  return
}

// -----

func.func @c4_gradient_of_another_type(%x: tensor<3x5xbf16>, %dy: tensor<3x5xf16>) {
  // expected-error@+1 {{expects gradients of 'bf16' or 'f32', not 'f16'}}
  %0 = tfm.rms_norm_grad %x, %dy {eps = 1.0e-5 : f64} : (tensor<3x5xbf16>, tensor<3x5xf16>) -> tensor<3x5xbf16>
  return
}
