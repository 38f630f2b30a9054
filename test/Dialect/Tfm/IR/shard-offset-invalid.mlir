// RUN: %drover-opt %s -split-input-file -verify-diagnostics

func.func @c1_axis_of_no_grid() {
  // expected-error@+1 {{expects axes of an enclosing tfm.grid, not "tp"}}
  %0 = tfm.shard_offset {axes = ["tp"], size = 65 : i64} : tensor<i64>
  return
}

// -----

func.func @c2_no_size() attributes {tfm.grid = {tp = 4, cp = 2}} {
  // expected-error@+1 {{expects a positive size, not 0}}
  %0 = tfm.shard_offset {axes = ["tp"], size = 0 : i64} : tensor<i64>
  return
}
