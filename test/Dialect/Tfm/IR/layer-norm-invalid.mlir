// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_weight_of_another_size(%x: tensor<3x5xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{expects weight to have shape [5], not [4]}}
  %0 = tfm.layer_norm %x weight %w {eps = 1.0e-6 : f64} : (tensor<3x5xf32>, tensor<4xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_weight_of_rank_2(%x: tensor<3x5xf32>, %w: tensor<3x5xf32>) {
  // expected-error@+1 {{expects weight to have shape [5], not [3x5]}}
  %0 = tfm.layer_norm %x weight %w {eps = 1.0e-6 : f64} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_input_of_rank_0(%x: tensor<f32>) {
  // expected-error@+1 {{expects an input of rank 1 or more}}
  %0 = tfm.layer_norm %x {eps = 1.0e-6 : f64} : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @c2_result_of_another_shape(%x: tensor<3x5xf32>, %w: tensor<5xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [3x5], not [3x4]}}
  %0 = tfm.layer_norm %x weight %w {eps = 1.0e-6 : f64} : (tensor<3x5xf32>, tensor<5xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @c3_negative_eps(%x: tensor<3x5xf32>) {
  // expected-error@+1 {{expects eps to be finite and not negative, not -1.0}}
  %0 = tfm.layer_norm %x {eps = -1.0e-6 : f64} : (tensor<3x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c3_nan_eps(%x: tensor<3x5xf32>) {
  // expected-error@+1 {{expects eps to be finite and not negative, not nan}}
  %0 = tfm.layer_norm %x {eps = 0x7FF8000000000000 : f64} : (tensor<3x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_bias_of_another_size(%x: tensor<3x5xf32>, %w: tensor<5xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{expects bias to have shape [5], not [4]}}
  %0 = tfm.layer_norm %x weight %w bias %b {eps = 1.0e-6 : f64} : (tensor<3x5xf32>, tensor<5xf32>, tensor<4xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c4_bias_without_weight(%x: tensor<3x5xf32>, %b: tensor<5xf32>) {
  // expected-error@+1 {{expects weight where bias is given}}
  %0 = tfm.layer_norm %x bias %b {eps = 1.0e-6 : f64} : (tensor<3x5xf32>, tensor<5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @c5_bias_of_another_type(%x: tensor<3x5xf32>, %w: tensor<5xf32>, %b: tensor<5xbf16>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'bf16'}}
  %0 = tfm.layer_norm %x weight %w bias %b {eps = 1.0e-5 : f64} : (tensor<3x5xf32>, tensor<5xf32>, tensor<5xbf16>) -> tensor<3x5xf32>
  return
}
