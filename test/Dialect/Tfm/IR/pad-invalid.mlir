// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_too_few_offsets(%x: tensor<3x2xf32>) {
  // expected-error@+1 {{expects 2 offsets, strides and sizes}}
  %0 = tfm.pad %x {offsets = array<i64: 0>, strides = array<i64: 1, 1>} : tensor<3x2xf32> -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_another_rank(%x: tensor<3xf32>) {
  // expected-error@+1 {{expects 2 offsets, strides and sizes}}
  %0 = tfm.pad %x {offsets = array<i64: 0, 1>, strides = array<i64: 1, 1>} : tensor<3xf32> -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_stride_of_zero(%x: tensor<3x2xf32>) {
  // expected-error@+1 {{expects strides not to be zero}}
  %0 = tfm.pad %x {offsets = array<i64: 0, 1>, strides = array<i64: 1, 0>} : tensor<3x2xf32> -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_box_beyond_the_end(%x: tensor<3x5xf32>) {
  // expected-error@+1 {{expects the box to lie within [0, 5), not 5 elements from 1 by 1}}
  %0 = tfm.pad %x {offsets = array<i64: 0, 1>, strides = array<i64: 1, 1>} : tensor<3x5xf32> -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_negative_offset(%x: tensor<3x2xf32>) {
  // expected-error@+1 {{expects the box to lie within [0, 5), not 2 elements from -1 by 1}}
  %0 = tfm.pad %x {offsets = array<i64: 0, -1>, strides = array<i64: 1, 1>} : tensor<3x2xf32> -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_backward_beyond_the_start(%x: tensor<3x3xf32>) {
  // expected-error@+1 {{expects the box to lie within [0, 5), not 3 elements from 1 by -1}}
  %0 = tfm.pad %x {offsets = array<i64: 0, 1>, strides = array<i64: 1, -1>} : tensor<3x3xf32> -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_stride_beyond_64_bits(%x: tensor<3x3xf32>) {
  // expected-error@+1 {{expects the box to lie within [0, 5), not 3 elements from 1 by 9223372036854775807}}
  %0 = tfm.pad %x {offsets = array<i64: 0, 1>, strides = array<i64: 1, 9223372036854775807>} : tensor<3x3xf32> -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_dynamic_offset_without_map(%x: tensor<3x2xf32>) {
  // expected-error@+1 {{expects 'offset_map' where an offset is dynamic}}
  %0 = tfm.pad %x {offsets = array<i64: 0, -9223372036854775808>, strides = array<i64: 1, 1>} : tensor<3x2xf32> -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_offset_map_of_another_rank(%x: tensor<3x2xf32>) {
  // expected-error@+1 {{expects 'offset_map' to have no dimensions and 2 results}}
  %0 = tfm.pad %x {offsets = array<i64: 0, -9223372036854775808>, strides = array<i64: 1, 1>, offset_map = affine_map<()[s0] -> (s0)>} : tensor<3x2xf32> -> tensor<3x5xf32>
  return
}

// -----

func.func @c1_dynamic_without_shape(%x: tensor<3x?xf32>) {
  // expected-error@+1 {{expects 'shape' where a result size is dynamic}}
  %0 = tfm.pad %x {offsets = array<i64: 0, 1>, strides = array<i64: 1, 1>} : tensor<3x?xf32> -> tensor<3x?xf32>
  return
}

// -----

func.func @c1_another_type(%x: tensor<3x2xf32>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'bf16'}}
  %0 = tfm.pad %x {offsets = array<i64: 0, 1>, strides = array<i64: 1, 1>} : tensor<3x2xf32> -> tensor<3x5xbf16>
  return
}
