// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_axis_out_of_range() {
  // expected-error@+1 {{expects axis to be a dimension of [2x8]}}
  %0 = tfm.iota {axis = 2 : i64} : tensor<2x8xi64>
  return
}

// -----

func.func @c1_rank_0() {
  // expected-error@+1 {{expects axis to be a dimension of []}}
  %0 = tfm.iota {axis = 0 : i64} : tensor<i64>
  return
}

// -----

func.func @c2_dynamic_without_shape() {
  // expected-error@+1 {{expects 'shape' where a result size is dynamic}}
  %0 = tfm.iota {axis = 0 : i64} : tensor<?xi64>
  return
}
