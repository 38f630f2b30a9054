// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @input_of_rank_2(%x: tensor<3x8xf32>, %p: tensor<2x3xi64>) {
  // expected-error@+1 {{expects an input of rank 3, not [3x8]}}
  %0 = tfm.rope %x, %p {head_size = 4 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64} : (tensor<3x8xf32>, tensor<2x3xi64>) -> tensor<3x8xf32>
  return
}

// -----

func.func @c1_positions_of_another_length(%x: tensor<2x3x8xf32>, %p: tensor<2x4xi64>) {
  // expected-error@+1 {{expects positions of shape [2x3], not [2x4]}}
  %0 = tfm.rope %x, %p {head_size = 4 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64} : (tensor<2x3x8xf32>, tensor<2x4xi64>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @c1_positions_of_another_batch(%x: tensor<2x3x8xf32>, %p: tensor<3x3xi64>) {
  // expected-error@+1 {{expects positions of shape [2x3], not [3x3]}}
  %0 = tfm.rope %x, %p {head_size = 4 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64} : (tensor<2x3x8xf32>, tensor<3x3xi64>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @c1_positions_of_rank_1(%x: tensor<2x3x8xf32>, %p: tensor<3xi64>) {
  // expected-error@+1 {{expects positions of shape [2x3], not [3]}}
  %0 = tfm.rope %x, %p {head_size = 4 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64} : (tensor<2x3x8xf32>, tensor<3xi64>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @c2_head_size_divides_not(%x: tensor<2x3x8xf32>, %p: tensor<2x3xi64>) {
  // expected-error@+1 {{expects head_size (3) to divide the last size of input [2x3x8]}}
  %0 = tfm.rope %x, %p {head_size = 3 : i64, rotary_dim = 2 : i64, theta = 1.0e4 : f64} : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @c2_head_size_of_zero(%x: tensor<2x3x8xf32>, %p: tensor<2x3xi64>) {
  // expected-error@+1 {{expects head_size (0) to divide the last size of input}}
  %0 = tfm.rope %x, %p {head_size = 0 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64} : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @c2_negative_head_size(%x: tensor<2x3x8xf32>, %p: tensor<2x3xi64>) {
  // expected-error@+1 {{expects head_size (-4) to divide the last size of input}}
  %0 = tfm.rope %x, %p {head_size = -4 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64} : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @c3_odd_rotary_dim(%x: tensor<2x3x8xf32>, %p: tensor<2x3xi64>) {
  // expected-error@+1 {{expects rotary_dim to be even, positive and at most head_size (4), not 3}}
  %0 = tfm.rope %x, %p {head_size = 4 : i64, rotary_dim = 3 : i64, theta = 1.0e4 : f64} : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @c3_rotary_dim_of_zero(%x: tensor<2x3x8xf32>, %p: tensor<2x3xi64>) {
  // expected-error@+1 {{expects rotary_dim to be even, positive and at most head_size (4), not 0}}
  %0 = tfm.rope %x, %p {head_size = 4 : i64, rotary_dim = 0 : i64, theta = 1.0e4 : f64} : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @c3_rotary_dim_beyond_the_head(%x: tensor<2x3x8xf32>, %p: tensor<2x3xi64>) {
  // expected-error@+1 {{expects rotary_dim to be even, positive and at most head_size (4), not 6}}
  %0 = tfm.rope %x, %p {head_size = 4 : i64, rotary_dim = 6 : i64, theta = 1.0e4 : f64} : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @c4_inv_freq_of_another_size(%x: tensor<2x3x8xf32>, %p: tensor<2x3xi64>) {
  // expected-error@+1 {{expects inv_freq to have 2 elements, not 1}}
  %0 = tfm.rope %x, %p {head_size = 4 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64, inv_freq = array<f32: 1.0>} : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @c4_inv_freq_with_scaling(%x: tensor<2x3x8xf32>, %p: tensor<2x3xi64>) {
  // expected-error@+1 {{expects no scaling where inv_freq is given}}
  %0 = tfm.rope %x, %p {head_size = 4 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64, inv_freq = array<f32: 1.0, 0.5>, scaling = #tfm.rope_scaling<kind = "linear", factor = 2.0, low = 1.0, high = 4.0, original = 8>} : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @c5_result_of_another_shape(%x: tensor<2x3x8xf32>, %p: tensor<2x3xi64>) {
  // expected-error@+1 {{expects result 0 to have shape [2x3x8], not [2x3x4]}}
  %0 = tfm.rope %x, %p {head_size = 4 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64} : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @c6_negative_theta(%q: tensor<2x8x64xf32>, %p: tensor<2x8xi64>) {
  // expected-error@+1 {{expects a positive theta and a finite magnitude, not -1}}
  %0 = tfm.rope %q, %p {head_size = 64 : i64, rotary_dim = 4 : i64, theta = -1.0 : f64} : (tensor<2x8x64xf32>, tensor<2x8xi64>) -> tensor<2x8x64xf32>
  return
}

// -----

func.func @c6_magnitude_nan(%q: tensor<2x8x64xf32>, %p: tensor<2x8xi64>) {
  // expected-error@+1 {{expects a positive theta and a finite magnitude, not 1.000000e+04 and nan}}
  %0 = tfm.rope %q, %p {head_size = 64 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64, magnitude = 0x7FF8000000000000 : f64} : (tensor<2x8x64xf32>, tensor<2x8xi64>) -> tensor<2x8x64xf32>
  return
}

// -----

func.func @c4_frequency_infinite(%q: tensor<2x8x64xf32>, %p: tensor<2x8xi64>) {
  // expected-error@+1 {{expects inv_freq to be finite, not}}
  %0 = tfm.rope %q, %p {head_size = 64 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64, inv_freq = array<f32: 1.0, 0x7F800000>} : (tensor<2x8x64xf32>, tensor<2x8xi64>) -> tensor<2x8x64xf32>
  return
}
