// RUN: %drover-opt %s -split-input-file -verify-diagnostics --tfm-partition="tp=4 cp=2"

func.func private @body(%q: tensor<1x16x32xf32>, %k: tensor<1x16x8xf32>) -> tensor<1x16x32xf32> attributes {tfm.body = "forward"} {
  %a, %l = tfm.attention %q, %k, %k {num_heads = 8 : i64, num_kv_heads = 2 : i64, scale = 1.0 : f64} : (tensor<1x16x32xf32>, tensor<1x16x8xf32>, tensor<1x16x8xf32>) -> (tensor<1x16x32xf32>, tensor<1x8x16xf32>)
  %k1 = tfm.slice %k {offsets = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : tensor<1x16x8xf32> -> tensor<1x16x4xf32>
  // expected-error@+1 {{'tfm.attention' op expects as many kv heads as another attention where both have fewer than tp (4): this has 1, the other 2}}
  %b, %m = tfm.attention %a, %k1, %k1 {num_heads = 8 : i64, num_kv_heads = 1 : i64, scale = 1.0 : f64} : (tensor<1x16x32xf32>, tensor<1x16x4xf32>, tensor<1x16x4xf32>) -> (tensor<1x16x32xf32>, tensor<1x8x16xf32>)
  return %b : tensor<1x16x32xf32>
}
func.func @microbatch(%q: tensor<1x16x32xf32> {tfm.input = "q"}, %k: tensor<1x16x8xf32> {tfm.input = "k"}) -> (tensor<1x16x32xf32> {tfm.output = "y"}) attributes {tfm.microbatch} {
  %0 = call @body(%q, %k) : (tensor<1x16x32xf32>, tensor<1x16x8xf32>) -> tensor<1x16x32xf32>
  return %0 : tensor<1x16x32xf32>
}

// -----

func.func private @body(%ids: tensor<1x16xi64>, %w: tensor<8x4xf32>) -> tensor<1x16x4xi1> attributes {tfm.body = "forward"} {
  %0 = tfm.embedding %ids, %w : (tensor<1x16xi64>, tensor<8x4xf32>) -> tensor<1x16x4xf32>
  // expected-error@+1 {{'math.isnan' op has no partition rule, so that operand 0 must be whole over cp, not S1x2; accepted with cp 1}}
  %1 = math.isnan %0 : tensor<1x16x4xf32>
  return %1 : tensor<1x16x4xi1>
}
func.func @microbatch(%ids: tensor<1x16xi64> {tfm.input = "input_ids"}, %w: tensor<8x4xf32> {tfm.parameter = "w"}) -> (tensor<1x16x4xi1> {tfm.output = "y"}) attributes {tfm.microbatch} {
  %0 = call @body(%ids, %w) : (tensor<1x16xi64>, tensor<8x4xf32>) -> tensor<1x16x4xi1>
  return %0 : tensor<1x16x4xi1>
}

// -----

// Outputs that are taken apart are cut part by part, and cannot be seen as one again.
func.func private @body(%x: tensor<1x16x4xf32>, %w: tensor<16x4xf32>) -> (tensor<1x16x8xf32>, tensor<1x16x8xf32>, tensor<1x16x16xf32>) attributes {tfm.body = "forward"} {
  %0 = tfm.linear %x, %w : (tensor<1x16x4xf32>, tensor<16x4xf32>) -> tensor<1x16x16xf32>
  %1 = tfm.slice %0 {offsets = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : tensor<1x16x16xf32> -> tensor<1x16x8xf32>
  %2 = tfm.slice %0 {offsets = array<i64: 0, 0, 8>, strides = array<i64: 1, 1, 1>} : tensor<1x16x16xf32> -> tensor<1x16x8xf32>
  // expected-error@+1 {{'tfm.softmax' op cannot be partitioned: cannot gather dimension 2 of segments [[8, 1, 1, 8], [8, 1, 1, 8]]}}
  %3 = tfm.softmax %0 {axis = 2 : i64} : tensor<1x16x16xf32> -> tensor<1x16x16xf32>
  return %1, %2, %3 : tensor<1x16x8xf32>, tensor<1x16x8xf32>, tensor<1x16x16xf32>
}
func.func @microbatch(%x: tensor<1x16x4xf32> {tfm.input = "x"}, %w: tensor<16x4xf32> {tfm.parameter = "w"}) -> (tensor<1x16x8xf32> {tfm.output = "a"}, tensor<1x16x8xf32> {tfm.output = "b"}, tensor<1x16x16xf32> {tfm.output = "c"}) attributes {tfm.microbatch} {
  %0:3 = call @body(%x, %w) : (tensor<1x16x4xf32>, tensor<16x4xf32>) -> (tensor<1x16x8xf32>, tensor<1x16x8xf32>, tensor<1x16x16xf32>)
  return %0#0, %0#1, %0#2 : tensor<1x16x8xf32>, tensor<1x16x8xf32>, tensor<1x16x16xf32>
}

// -----

func.func @microbatch(%x: tensor<4xf32> {tfm.input = "x"}) -> (tensor<4xf32> {tfm.output = "y"}) attributes {tfm.microbatch} {
  // expected-error@+1 {{'arith.negf' op is not the call of a body}}
  %0 = arith.negf %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{expects argument 0 to be a tensor, not 'f32'}}
func.func @microbatch(%x: f32 {tfm.input = "x"}) attributes {tfm.microbatch} {
  return
}
