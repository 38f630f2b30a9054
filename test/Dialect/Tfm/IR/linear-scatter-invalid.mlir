// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_axis_of_no_grid(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) {
  // expected-error@+1 {{expects axes of an enclosing tfm.grid, not "tp"}}
  %0 = tfm.linear_scatter %x, %w {axes = ["tp"], dim = 0 : i64, in_out = array<i1: false>} : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @c2_orientations(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) attributes {tfm.grid = {tp = 2}} {
  // expected-error@+1 {{expects one or more weights with an in_out each, not 1 and 0}}
  %0 = tfm.linear_scatter %x, %w {axes = ["tp"], dim = 0 : i64, in_out = array<i1>} : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @c3_last_dimension(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) attributes {tfm.grid = {tp = 2}} {
  // expected-error@+1 {{expects a dimension of [4x8] before its last, not 1}}
  %0 = tfm.linear_scatter %x, %w {axes = ["tp"], dim = 1 : i64, in_out = array<i1: false>} : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @c4_outputs(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>, %v: tensor<5x8xf32>) attributes {tfm.grid = {tp = 2}} {
  // expected-error@+1 {{expects weights with as many outputs, not 6 and 5}}
  %0 = tfm.linear_scatter %x, %x, %w, %v {axes = ["tp"], dim = 0 : i64, in_out = array<i1: false, false>} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<6x8xf32>, tensor<5x8xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @c4_rows(%x: tensor<4x8xf32>, %y: tensor<2x8xf32>, %w: tensor<6x8xf32>) attributes {tfm.grid = {tp = 2}} {
  // expected-error@+1 {{expects inputs that agree in all but their last size, not [4x8] and [2x8]}}
  %0 = tfm.linear_scatter %x, %y, %w, %w {axes = ["tp"], dim = 0 : i64, in_out = array<i1: false, false>} : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @c5_rows_and_ranks(%x: tensor<5x8xf32>, %w: tensor<6x8xf32>) attributes {tfm.grid = {tp = 2}} {
  // expected-error@+1 {{expects the size of dimension 0 to be a multiple of 2 ranks, not 5}}
  %0 = tfm.linear_scatter %x, %w {axes = ["tp"], dim = 0 : i64, in_out = array<i1: false>} : (tensor<5x8xf32>, tensor<6x8xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @c6_element_types(%x: tensor<4x8xbf16>, %w: tensor<6x8xbf16>) attributes {tfm.grid = {tp = 2}} {
  // expected-error@+1 {{element type}}
  %0 = tfm.linear_scatter %x, %w {axes = ["tp"], dim = 0 : i64, in_out = array<i1: false>} : (tensor<4x8xbf16>, tensor<6x8xbf16>) -> tensor<2x6xf32>
  return
}
