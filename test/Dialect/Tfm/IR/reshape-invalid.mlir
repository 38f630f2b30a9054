// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_another_number_of_elements(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{expects as many elements in the result as in the operand, not [7] for [2x3]}}
  %0 = tfm.reshape %x : tensor<2x3xf32> -> tensor<7xf32>
  return
}

// -----

func.func @c1_another_type(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'i32'}}
  %0 = tfm.reshape %x : tensor<2x3xf32> -> tensor<6xi32>
  return
}

// -----

func.func @c2_dynamic_without_shape(%x: tensor<?x3xf32>) {
  // expected-error@+1 {{expects 'shape' where a result size is dynamic}}
  %0 = tfm.reshape %x : tensor<?x3xf32> -> tensor<?xf32>
  return
}

// -----

func.func @c2_shape_of_another_rank(%x: tensor<?x3xf32>) {
  // expected-error@+1 {{expects 'shape' to have no dimensions and 1 results}}
  %0 = tfm.reshape %x {shape = affine_map<()[s0] -> (s0, 3)>} : tensor<?x3xf32> -> tensor<?xf32>
  return
}

// -----

func.func @c2_shape_with_dimensions(%x: tensor<?x3xf32>) {
  // expected-error@+1 {{expects 'shape' to have no dimensions and 1 results}}
  %0 = tfm.reshape %x {shape = affine_map<(d0) -> (d0)>} : tensor<?x3xf32> -> tensor<?xf32>
  return
}
