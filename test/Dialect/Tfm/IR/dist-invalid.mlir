// RUN: %drover-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{expects tp, kv, replica, cp, dp or layout, not 'pp'}}
func.func @no_axis(%a: tensor<4xf32, #tfm.dist<pp = S0>>) { return }

// -----

// expected-error@+1 {{expects each axis once, not 'tp' again}}
func.func @axis_twice(%a: tensor<4xf32, #tfm.dist<tp = S0, tp = P sum f32>>) { return }

// -----

// expected-error@+1 {{expects S with a dimension, P or V, not 'Q'}}
func.func @no_state(%a: tensor<4xf32, #tfm.dist<tp = Q>>) { return }

// -----

// expected-error@+1 {{expects sum or max and f32, bf16, f64 or i64 after P, not 'mean f32'}}
func.func @no_reduction(%a: tensor<4xf32, #tfm.dist<tp = P mean f32>>) { return }

// -----

// expected-error@+1 {{dist expects tp or its factors kv and replica, not both}}
func.func @tp_and_factor(%a: tensor<4x4xf32, #tfm.dist<tp = S0, kv = S1>>) { return }

// -----

// expected-error@+1 {{dist expects two chunks (x2) on cp only, not on tp}}
func.func @two_chunks_of_tp(%a: tensor<4xf32, #tfm.dist<tp = S0x2>>) { return }

// -----

// expected-error@+1 {{dist expects layouts of ascending dimensions, not 1 and 0}}
func.func @layouts_out_of_order(%a: tensor<4x4xf32, #tfm.dist<layout = {1 : [4, 1, 1, 4] and 0 : [4, 1, 1, 4]}>>) { return }

// -----

// expected-error@+1 {{dist shards dimension 2 over tp, but the tensor has rank 2}}
func.func @no_dimension(%a: tensor<4x4xf32, #tfm.dist<tp = S2>>) { return }

// -----

// expected-error@+1 {{dist has a layout of dimension 1, but the tensor has rank 1}}
func.func @no_dimension_of_layout(%a: tensor<4xf32, #tfm.dist<layout = {1 : [3, 1, 1, 4]}>>) { return }

// -----

// expected-error@+1 {{segments expects 0 < valid <= padded and 0 < groups <= total, not groups 3, valid 2, padded 1, total 4}}
func.func @valid_above_padded() attributes {s = #tfm.segments<[3, 2, 1, 4]>} { return }

// -----

// expected-error@+1 {{segments expects 0 < valid <= padded and 0 < groups <= total, not groups 5, valid 1, padded 1, total 4}}
func.func @groups_above_total() attributes {s = #tfm.segments<[5, 1, 1, 4]>} { return }

// -----

// expected-error@+1 {{expects four numbers, [groups, valid, padded, total], not 3}}
func.func @three_numbers() attributes {s = #tfm.segments<[5, 1, 1]>} { return }
