// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_two_results() {
  // expected-error@+1 {{expects a map without dimensions and with one result}}
  %0 = tfm.size {value = affine_map<()[s0] -> (s0, s0)>} : tensor<i64>
  return
}

// -----

func.func @c1_dimension() {
  // expected-error@+1 {{expects a map without dimensions and with one result}}
  %0 = tfm.size {value = affine_map<(d0) -> (d0)>} : tensor<i64>
  return
}

// -----

func.func @c1_result_of_rank_1() {
  // expected-error@+1 {{expects a result of rank 0, not [?]}}
  %0 = tfm.size {value = affine_map<() -> (3)>} : tensor<?xi64>
  return
}
