// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_weight_of_another_size(%x: tensor<3x5xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{expects weight to have shape [5], not [4]}}
  %0 = tfm.rms_norm %x, %w {eps = 1.0e-6 : f64} : (tensor<3x5xf32>, tensor<4xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_weight_of_rank_2(%x: tensor<3x5xf32>, %w: tensor<3x5xf32>) {
  // expected-error@+1 {{expects weight to have shape [5], not [3x5]}}
  %0 = tfm.rms_norm %x, %w {eps = 1.0e-6 : f64} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_input_of_rank_0(%x: tensor<f32>) {
  // expected-error@+1 {{expects an input of rank 1 or more}}
  %0 = tfm.rms_norm %x {eps = 1.0e-6 : f64} : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @c2_result_of_another_shape(%x: tensor<3x5xf32>, %w: tensor<5xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [3x5], not [3x4]}}
  %0 = tfm.rms_norm %x, %w {eps = 1.0e-6 : f64} : (tensor<3x5xf32>, tensor<5xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @c3_negative_eps(%x: tensor<3x5xf32>) {
  // expected-error@+1 {{expects eps to be finite and not negative, not -1.0}}
  %0 = tfm.rms_norm %x {eps = -1.0e-6 : f64} : (tensor<3x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c3_nan_eps(%x: tensor<3x5xf32>) {
  // expected-error@+1 {{expects eps to be finite and not negative, not nan}}
  %0 = tfm.rms_norm %x {eps = 0x7FF8000000000000 : f64} : (tensor<3x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c4_weight_of_another_type(%x: tensor<3x5xf32>, %w: tensor<5xf64>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'f64'}}
  %0 = tfm.rms_norm %x, %w {eps = 1.0e-5 : f64} : (tensor<3x5xf32>, tensor<5xf64>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c4_result_of_another_type(%x: tensor<3x5xf32>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'f16'}}
  %0 = tfm.rms_norm %x {eps = 1.0e-5 : f64} : (tensor<3x5xf32>) -> tensor<3x5xf16>
  return
}
