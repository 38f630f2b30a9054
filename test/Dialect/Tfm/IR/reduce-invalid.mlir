// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_descending_axes(%x: tensor<2x3x4xf32>) {
  // expected-error@+1 {{expects ascending axes below 3, not 0}}
  %0 = tfm.reduce %x {axes = array<i64: 1, 0>, kind = 0 : i32} : tensor<2x3x4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @c1_repeated_axis(%x: tensor<2x3x4xf32>) {
  // expected-error@+1 {{expects ascending axes below 3, not 1}}
  %0 = tfm.reduce %x {axes = array<i64: 1, 1>, kind = 0 : i32} : tensor<2x3x4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @c1_axis_out_of_range(%x: tensor<2x3x4xf32>) {
  // expected-error@+1 {{expects ascending axes below 3, not 3}}
  %0 = tfm.reduce %x {axes = array<i64: 3>, kind = 0 : i32} : tensor<2x3x4xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @c1_negative_axis(%x: tensor<2x3x4xf32>) {
  // expected-error@+1 {{expects ascending axes below 3, not -1}}
  %0 = tfm.reduce %x {axes = array<i64: -1>, kind = 0 : i32} : tensor<2x3x4xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @c1_kept_where_dropped(%x: tensor<2x3x4xf32>) {
  // expected-error@+1 {{expects result 0 to have shape [2x4], not [2x1x4]}}
  %0 = tfm.reduce %x {axes = array<i64: 1>, kind = 0 : i32} : tensor<2x3x4xf32> -> tensor<2x1x4xf32>
  return
}

// -----

func.func @c2_another_type(%x: tensor<2x3x4xbf16>) {
  // expected-error@+1 {{expects equal element types, not 'bf16' and 'f32'}}
  %0 = tfm.reduce %x {axes = array<i64: 1>, kind = 0 : i32} : tensor<2x3x4xbf16> -> tensor<2x4xf32>
  return
}

// -----

func.func @unknown_kind(%x: tensor<2x3x4xf32>) {
  // expected-error@+1 {{attribute 'kind' failed to satisfy constraint}}
  %0 = tfm.reduce %x {axes = array<i64: 1>, kind = 9 : i32} : tensor<2x3x4xf32> -> tensor<2x4xf32>
  return
}
