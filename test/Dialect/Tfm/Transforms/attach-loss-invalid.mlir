// RUN: %drover-opt %s --split-input-file --verify-diagnostics --tfm-attach-loss=documents=true

// expected-error@+1 {{expects a function @model}}
module {}

// -----

// expected-error@+1 {{has no output 'logits' and 2 floating-point outputs of rank 3, where training needs one; its outputs are 'a' ('tensor<1x2x4xf32>'), 'b' ('tensor<1x2x4xf32>'), 'c' ('tensor<2xf32>')}}
func.func @model(%x: tensor<1x2x4xf32> {tfm.input = "x"}, %y: tensor<2xf32> {tfm.input = "y"})
    -> (tensor<1x2x4xf32> {tfm.output = "a"}, tensor<1x2x4xf32> {tfm.output = "b"}, tensor<2xf32> {tfm.output = "c"}) {
  return %x, %x, %y : tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<2xf32>
}

// -----

// expected-error@+1 {{has an input 'labels' already, which the training step adds}}
func.func @model(%x: tensor<1x2x4xf32> {tfm.input = "labels"}) -> (tensor<1x2x4xf32> {tfm.output = "logits"}) {
  return %x : tensor<1x2x4xf32>
}

// -----

// expected-error@+1 {{has logits of type 'tensor<1x?x4xf32>'; tfm-specialize comes before}}
func.func @model(%x: tensor<1x?x4xf32> {tfm.input = "x"}) -> (tensor<1x?x4xf32> {tfm.output = "logits"}) {
  return %x : tensor<1x?x4xf32>
}

// -----

// expected-error@+1 {{has no 'tfm.attention' to restrict to documents, but 1 'tfm.softmax'; only mask=model is possible}}
func.func @model(%x: tensor<1x2x4xf32> {tfm.input = "x"}) -> (tensor<1x2x4xf32> {tfm.output = "logits"}) {
  %0 = tfm.softmax %x {axis = 2 : i64} : tensor<1x2x4xf32> -> tensor<1x2x4xf32>
  return %0 : tensor<1x2x4xf32>
}

// -----

func.func @model(%x: tensor<1x2x4xf32> {tfm.input = "x"}, %k: tensor<1x3x4xf32> {tfm.input = "k"})
    -> (tensor<1x2x4xf32> {tfm.output = "logits"}) {
  // expected-error@+1 {{attends from [1, 2] queries to [1, 3] keys; documents need both to be [1, 2]}}
  %0:2 = tfm.attention %x, %k, %k {num_heads = 2 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<1x2x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x2xf32>)
  return %0#0 : tensor<1x2x4xf32>
}
