// RUN: %drover-opt %s --split-input-file --verify-diagnostics --tfm-differentiate=freeze=frozen

// expected-error@+1 {{has no parameter to train: freeze 'frozen' matches all 1}}
func.func @microbatch(%w: tensor<2xf32> {tfm.parameter = "frozen"}) attributes {tfm.microbatch} {
  return
}

// -----

// expected-error@+1 {{has no parameter to train: every floating-point tensor is a constant, such as 'tensor<2xf32>', 'tensor<3xf32>', 'tensor<4xf32>'}}
func.func @microbatch(%x: tensor<2xf32> {tfm.input = "x"}) attributes {tfm.microbatch} {
  %number = arith.constant dense<1.0> : tensor<f32>
  %count = arith.constant dense<[1, 2]> : tensor<2xi64>
  %2 = arith.constant dense<1.0> : tensor<2xf32>
  %3 = arith.constant dense<1.0> : tensor<3xf32>
  %4 = arith.constant dense<1.0> : tensor<4xf32>
  %5 = arith.constant dense<1.0> : tensor<5xf32>
  return
}

// -----

// expected-error@+1 {{has no parameter to train: 1 parameters hold integers}}
func.func @microbatch(%w: tensor<2xi32> {tfm.parameter = "w"}) attributes {tfm.microbatch} {
  return
}

// -----

// expected-error@+1 {{has no parameter that freeze 'frozen' matches; the first one is 'w'}}
func.func @microbatch(%w: tensor<2xf32> {tfm.parameter = "w"}) attributes {tfm.microbatch} {
  return
}

// -----

func.func @microbatch(%v: tensor<2xf32> {tfm.parameter = "frozen"}, %w: tensor<2xf32> {tfm.parameter = "w"}) attributes {tfm.microbatch} {
  // expected-error@+1 {{is not the call of a body; tfm-outline comes before}}
  %0 = math.tanh %w : tensor<2xf32>
  return
}

// -----

// expected-error@+1 {{expects a 'tfm.cross_entropy' as its only result; tfm-attach-loss comes before}}
func.func @microbatch(%v: tensor<2xf32> {tfm.parameter = "frozen"}, %w: tensor<2xf32> {tfm.parameter = "w"}) -> tensor<2xf32> attributes {tfm.microbatch} {
  return %w : tensor<2xf32>
}

// -----

func.func private @head(%x: tensor<1x2x8xf32>, %labels: tensor<1x2xi64>) -> tensor<f64> attributes {tfm.body = "forward"} {
  %m = tfm.logits_max %x : (tensor<1x2x8xf32>) -> tensor<1x2xf32>
  %s:2 = tfm.logits_sum %x, %labels, %m : (tensor<1x2x8xf32>, tensor<1x2xi64>, tensor<1x2xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>)
  %l = tfm.cross_entropy %labels, %m, %s#0, %s#1 : (tensor<1x2xi64>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<f64>
  return %l : tensor<f64>
}
// expected-error@+1 {{has a loss that depends on no trainable parameter}}
func.func @microbatch(%v: tensor<1x2x8xf32> {tfm.parameter = "frozen"}, %w: tensor<2xf32> {tfm.parameter = "w"}, %labels: tensor<1x2xi64> {tfm.input = "labels"})
    -> (tensor<f64> {tfm.output = "loss"}) attributes {tfm.microbatch} {
  %0 = call @head(%v, %labels) : (tensor<1x2x8xf32>, tensor<1x2xi64>) -> tensor<f64>
  return %0 : tensor<f64>
}

// -----

// All operations without a derivative, in one diagnostic.
func.func private @head(%x: tensor<1x2x8xf32>, %labels: tensor<1x2xi64>, %i: tensor<1x1xi64>, %j: tensor<2xi64>, %u: tensor<1x2x8xf32>) -> tensor<f64> attributes {tfm.body = "forward"} {
  // expected-note@+1 {{'tfm.scatter_nd' in @head}}
  %0 = tfm.scatter_nd %x, %i, %u : (tensor<1x2x8xf32>, tensor<1x1xi64>, tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  // expected-note@+1 {{'tfm.scatter_nd' in @head}}
  %1 = tfm.scatter_nd %0, %i, %u : (tensor<1x2x8xf32>, tensor<1x1xi64>, tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  // expected-note@+1 {{'tfm.scatter_add' in @head}}
  %2 = tfm.scatter_add %1, %j {axis = 1 : i64} : (tensor<1x2x8xf32>, tensor<2xi64>) -> tensor<1x2x8xf32>
  %m = tfm.logits_max %2 : (tensor<1x2x8xf32>) -> tensor<1x2xf32>
  %s:2 = tfm.logits_sum %2, %labels, %m : (tensor<1x2x8xf32>, tensor<1x2xi64>, tensor<1x2xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>)
  %l = tfm.cross_entropy %labels, %m, %s#0, %s#1 : (tensor<1x2xi64>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<f64>
  return %l : tensor<f64>
}
// expected-error@+1 {{cannot be differentiated: no derivative of 'tfm.scatter_nd', 'tfm.scatter_add'}}
func.func @microbatch(%labels: tensor<1x2xi64> {tfm.input = "labels"}, %i: tensor<1x1xi64> {tfm.input = "i"}, %j: tensor<2xi64> {tfm.input = "j"}, %v: tensor<1x2x8xf32> {tfm.parameter = "frozen"}, %w: tensor<1x2x8xf32> {tfm.parameter = "w"})
    -> (tensor<f64> {tfm.output = "loss"}) attributes {tfm.microbatch} {
  %0 = call @head(%w, %labels, %i, %j, %v) : (tensor<1x2x8xf32>, tensor<1x2xi64>, tensor<1x1xi64>, tensor<2xi64>, tensor<1x2x8xf32>) -> tensor<f64>
  return %0 : tensor<f64>
}

// -----

// Partitioning comes after differentiation: a part of the vocabulary has no derivative.
func.func private @head(%x: tensor<1x2x8xf32>, %labels: tensor<1x2xi64>) -> tensor<f64> attributes {tfm.body = "forward"} {
  %o = arith.constant dense<8> : tensor<i64>
  %m = tfm.logits_max %x : (tensor<1x2x8xf32>) -> tensor<1x2xf32>
  %s:2 = tfm.logits_sum %x, %labels, %m offset %o : (tensor<1x2x8xf32>, tensor<1x2xi64>, tensor<1x2xf32>, tensor<i64>) -> (tensor<1x2xf32>, tensor<1x2xf32>)
  // expected-note@+1 {{'tfm.cross_entropy' in @head}}
  %l = tfm.cross_entropy %labels, %m, %s#0, %s#1 : (tensor<1x2xi64>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<f64>
  return %l : tensor<f64>
}
// expected-error@+1 {{cannot be differentiated: no derivative of 'tfm.cross_entropy'}}
func.func @microbatch(%v: tensor<2xf32> {tfm.parameter = "frozen"}, %w: tensor<1x2x8xf32> {tfm.parameter = "w"}, %labels: tensor<1x2xi64> {tfm.input = "labels"})
    -> (tensor<f64> {tfm.output = "loss"}) attributes {tfm.microbatch} {
  %0 = call @head(%w, %labels) : (tensor<1x2x8xf32>, tensor<1x2xi64>) -> tensor<f64>
  return %0 : tensor<f64>
}

// -----

func.func private @head(%x: tensor<1x4x8xf32>, %k: tensor<1x4x8xf32>, %labels: tensor<1x4xi64>, %i: tensor<4xi64>) -> tensor<f64> attributes {tfm.body = "forward"} {
  // expected-error@+1 {{expects no query_index to be differentiated: partition afterwards}}
  %a, %lse = tfm.attention %x, %k, %k query_index %i {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 1.0 : f64} : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<4xi64>) -> (tensor<1x4x8xf32>, tensor<1x1x4xf32>)
  %m = tfm.logits_max %a : (tensor<1x4x8xf32>) -> tensor<1x4xf32>
  %s:2 = tfm.logits_sum %a, %labels, %m : (tensor<1x4x8xf32>, tensor<1x4xi64>, tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
  %l = tfm.cross_entropy %labels, %m, %s#0, %s#1 : (tensor<1x4xi64>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<f64>
  return %l : tensor<f64>
}
func.func @microbatch(%v: tensor<1x4x8xf32> {tfm.parameter = "frozen"}, %w: tensor<1x4x8xf32> {tfm.parameter = "w"}, %labels: tensor<1x4xi64> {tfm.input = "labels"}, %i: tensor<4xi64> {tfm.input = "i"})
    -> (tensor<f64> {tfm.output = "loss"}) attributes {tfm.microbatch} {
  %0 = call @head(%w, %v, %labels, %i) : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4xi64>, tensor<4xi64>) -> tensor<f64>
  return %0 : tensor<f64>
}

// -----

func.func private @head(%ids: tensor<1x4xi64>, %t: tensor<8x8xf32>, %labels: tensor<1x4xi64>, %o: tensor<i64>) -> tensor<f64> attributes {tfm.body = "forward"} {
  // expected-error@+1 {{expects no offset to be differentiated: partition afterwards}}
  %a = tfm.embedding %ids, %t offset %o : (tensor<1x4xi64>, tensor<8x8xf32>, tensor<i64>) -> tensor<1x4x8xf32>
  %m = tfm.logits_max %a : (tensor<1x4x8xf32>) -> tensor<1x4xf32>
  %s:2 = tfm.logits_sum %a, %labels, %m : (tensor<1x4x8xf32>, tensor<1x4xi64>, tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
  %l = tfm.cross_entropy %labels, %m, %s#0, %s#1 : (tensor<1x4xi64>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<f64>
  return %l : tensor<f64>
}
func.func @microbatch(%v: tensor<8x8xf32> {tfm.parameter = "frozen"}, %w: tensor<8x8xf32> {tfm.parameter = "w"}, %labels: tensor<1x4xi64> {tfm.input = "labels"}, %o: tensor<i64> {tfm.input = "o"})
    -> (tensor<f64> {tfm.output = "loss"}) attributes {tfm.microbatch} {
  %0 = call @head(%labels, %w, %labels, %o) : (tensor<1x4xi64>, tensor<8x8xf32>, tensor<1x4xi64>, tensor<i64>) -> tensor<f64>
  return %0 : tensor<f64>
}
