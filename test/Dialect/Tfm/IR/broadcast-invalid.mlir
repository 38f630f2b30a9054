// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_size_neither_1_nor_equal(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{expects [2x3] to broadcast to [4x3]}}
  %0 = tfm.broadcast %x : tensor<2x3xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @c1_result_of_lower_rank(%x: tensor<1x3xf32>) {
  // expected-error@+1 {{expects a result of rank 2 or more, not 1}}
  %0 = tfm.broadcast %x : tensor<1x3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @c2_dynamic_without_shape(%x: tensor<1xf32>) {
  // expected-error@+1 {{expects 'shape' where a result size is dynamic}}
  %0 = tfm.broadcast %x : tensor<1xf32> -> tensor<?xf32>
  return
}

// -----

func.func @c3_another_type(%x: tensor<1xf32>) {
  // expected-error@+1 {{expects equal element types, not 'f32' and 'i1'}}
  %0 = tfm.broadcast %x : tensor<1xf32> -> tensor<4xi1>
  return
}
