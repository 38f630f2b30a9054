// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_axis_of_no_grid() {
  // expected-error@+1 {{expects axes of an enclosing tfm.grid, not "tp"}}
  %0 = tfm.global_index {axes = ["tp"]} : tensor<8xi64>
  return
}

// -----

func.func @c1_axis_that_the_grid_has_not() attributes {tfm.grid = {tp = 4, cp = 2}} {
  // expected-error@+1 {{expects axes of an enclosing tfm.grid, not "kv"}}
  %0 = tfm.global_index {axes = ["cp", "kv"]} : tensor<8xi64>
  return
}

// -----

func.func @c1_axis_twice() attributes {tfm.grid = {tp = 4, cp = 2}} {
  // expected-error@+1 {{expects axes named once, not ["cp", "cp"]}}
  %0 = tfm.global_index {axes = ["cp", "cp"]} : tensor<8xi64>
  return
}

// -----

func.func @c1_axis_without_ranks() attributes {tfm.grid = {cp = 0}} {
  // expected-error@+1 {{expects axes of an enclosing tfm.grid, not "cp"}}
  %0 = tfm.global_index {axes = ["cp"]} : tensor<8xi64>
  return
}

// -----

func.func @c2_dynamic_result() attributes {tfm.grid = {tp = 4, cp = 2}} {
  // expected-error@+1 {{expects a result of a static size}}
  %0 = tfm.global_index {axes = ["tp"]} : tensor<?xi64>
  return
}

// -----

func.func @c3_segments_and_two_chunk() attributes {tfm.grid = {tp = 4, cp = 2}} {
  // expected-error@+1 {{expects segments or two_chunk, not both}}
  %0 = tfm.global_index {axes = ["cp"], segments = array<i64: 2, 8, 8, 2>, two_chunk} : tensor<8xi64>
  return
}

// -----

func.func @c4_two_chunk_without_axes() attributes {tfm.grid = {tp = 4, cp = 2}} {
  // expected-error@+1 {{expects axes with two_chunk}}
  %0 = tfm.global_index {axes = [], two_chunk} : tensor<8xi64>
  return
}

// -----

func.func @c4_odd_rows() attributes {tfm.grid = {tp = 4, cp = 2}} {
  // expected-error@+1 {{expects an even number of elements in two chunks, not 7 times 1}}
  %0 = tfm.global_index {axes = ["cp"], two_chunk} : tensor<7xi64>
  return
}

// -----

func.func @c5_three_numbers() attributes {tfm.grid = {tp = 4, cp = 2}} {
  // expected-error@+1 {{expects four numbers a segment, not 3}}
  %0 = tfm.global_index {axes = ["tp"], segments = array<i64: 2, 8, 8>} : tensor<8xi64>
  return
}

// -----

func.func @c5_padded_below_valid() attributes {tfm.grid = {tp = 4, cp = 2}} {
  // expected-error@+1 {{not [4, 9, 8, 4]}}
  %0 = tfm.global_index {axes = ["tp"], segments = array<i64: 4, 9, 8, 4>} : tensor<8xi64>
  return
}

// -----

func.func @c5_total_below_groups() attributes {tfm.grid = {tp = 4, cp = 2}} {
  // expected-error@+1 {{not [5, 8, 8, 4]}}
  %0 = tfm.global_index {axes = ["tp"], segments = array<i64: 5, 8, 8, 4>} : tensor<8xi64>
  return
}

// -----

func.func @c5_ranks_divide_not() attributes {tfm.grid = {tp = 4, cp = 2}} {
  // expected-error@+1 {{a multiple of 4, not [3, 2, 2, 3]}}
  %0 = tfm.global_index {axes = ["tp"], segments = array<i64: 3, 2, 2, 3>} : tensor<1xi64>
  return
}

// -----

func.func @c6_another_share() attributes {tfm.grid = {tp = 4, cp = 2}} {
  // expected-error@+1 {{expects a result of 16 elements}}
  %0 = tfm.global_index {axes = ["tp"], segments = array<i64: 4, 8, 8, 4, 4, 8, 8, 4>} : tensor<8xi64>
  return
}
