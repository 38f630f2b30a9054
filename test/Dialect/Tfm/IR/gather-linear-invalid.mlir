// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_axis_of_no_grid(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) {
  // expected-error@+1 {{expects axes of an enclosing tfm.grid, not "tp"}}
  %0 = tfm.gather_linear %x, %w {axes = ["tp"], dim = 0 : i64, in_out = array<i1: false>} : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<8x6xf32>
  return
}

// -----

func.func @c1_one_rank(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) attributes {tfm.grid = {tp = 1}} {
  // expected-error@+1 {{expects a ring of two or more ranks, not 1}}
  %0 = tfm.gather_linear %x, %w {axes = ["tp"], dim = 0 : i64, in_out = array<i1: false>} : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @c2_orientations(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) attributes {tfm.grid = {tp = 2}} {
  // expected-error@+1 {{expects one or more weights with an in_out each, not 1 and 2}}
  %0 = tfm.gather_linear %x, %w {axes = ["tp"], dim = 0 : i64, in_out = array<i1: false, true>} : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<8x6xf32>
  return
}

// -----

func.func @c3_last_dimension(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) attributes {tfm.grid = {tp = 2}} {
  // expected-error@+1 {{expects a dimension of [4x8] before its last, not 1}}
  %0 = tfm.gather_linear %x, %w {axes = ["tp"], dim = 1 : i64, in_out = array<i1: false>} : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<8x6xf32>
  return
}

// -----

func.func @c4_contracted_size(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) attributes {tfm.grid = {tp = 2}} {
  // expected-error@+1 {{expects the last size of [4x8] to be that of a weight, 6}}
  %0 = tfm.gather_linear %x, %w {axes = ["tp"], dim = 0 : i64, in_out = array<i1: true>} : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @c4_rank(%x: tensor<4x8xf32>, %w: tensor<8xf32>) attributes {tfm.grid = {tp = 2}} {
  // expected-error@+1 {{expects weights of rank 2, not [8]}}
  %0 = tfm.gather_linear %x, %w {axes = ["tp"], dim = 0 : i64, in_out = array<i1: true>} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @c5_element_types(%x: tensor<4x8xf32>, %w: tensor<6x8xbf16>) attributes {tfm.grid = {tp = 2}} {
  // expected-error@+1 {{element type}}
  %0 = tfm.gather_linear %x, %w {axes = ["tp"], dim = 0 : i64, in_out = array<i1: false>} : (tensor<4x8xf32>, tensor<6x8xbf16>) -> tensor<8x6xf32>
  return
}

// -----

func.func @c6_shape(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) attributes {tfm.grid = {tp = 2}} {
  // expected-error@+1 {{expects result 1 to have shape [8x8], not [4x8]}}
  %0:2 = tfm.gather_linear %x, %w {axes = ["tp"], dim = 0 : i64, in_out = array<i1: false>} : (tensor<4x8xf32>, tensor<6x8xf32>) -> (tensor<8x6xf32>, tensor<4x8xf32>)
  return
}
