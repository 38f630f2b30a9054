// One result for each kernel with a formula in it; kernels.py computes the same numbers.
func.func @model(
    %x: tensor<2x3x8xf32> {tfm.input = "x"}, %y: tensor<2x3x8xf32> {tfm.input = "y"},
    %w: tensor<8xf32> {tfm.input = "w"}, %b: tensor<8xf32> {tfm.input = "b"},
    %p: tensor<2x3xi64> {tfm.input = "p"}, %k: tensor<2x4x4xf32> {tfm.input = "k"},
    %v: tensor<2x4x6xf32> {tfm.input = "v"}, %labels: tensor<2x3xi64> {tfm.input = "labels"},
    %moment: tensor<8xf32> {tfm.input = "moment"})
    -> (tensor<2x3x8xf32> {tfm.output = "rms_norm"}, tensor<2x3x8xf32> {tfm.output = "layer_norm"},
        tensor<2x3x8xf32> {tfm.output = "gelu_erf"}, tensor<2x3x8xf32> {tfm.output = "gelu_tanh"},
        tensor<2x3x8xf32> {tfm.output = "swiglu"}, tensor<2x3x8xf32> {tfm.output = "rope"},
        tensor<2x3x8xf32> {tfm.output = "rope_interleaved"},
        tensor<2x3x12xf32> {tfm.output = "attention"}, tensor<2x4x3xf32> {tfm.output = "log_sum_exp"},
        tensor<2x3x12xf32> {tfm.output = "attention_window"}, tensor<2x3x12xf32> {tfm.output = "attention_documents"},
        tensor<2x3x8xf32> {tfm.output = "softmax"}, tensor<f64> {tfm.output = "loss"},
        tensor<8xf32> {tfm.output = "parameter"}, tensor<8xf32> {tfm.output = "moment1"},
        tensor<8xf32> {tfm.output = "moment2"}) {
  %rms = tfm.rms_norm %x, %w {eps = 1.0e-2 : f64, weight_offset = 1.0 : f64} : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  %layer = tfm.layer_norm %x weight %w bias %b {eps = 1.0e-2 : f64} : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  %erf = tfm.gelu %x {kind = 0 : i32} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %tanh = tfm.gelu %x {kind = 1 : i32} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %swiglu = tfm.swiglu %x, %y : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %rope = tfm.rope %x, %p {head_size = 4 : i64, rotary_dim = 4 : i64, theta = 1.0e2 : f64} : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  %interleaved = tfm.rope %x, %p {head_size = 8 : i64, rotary_dim = 6 : i64, theta = 1.0e3 : f64, interleaved} : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  %o, %lse = tfm.attention %x, %k, %v causal bottom_right {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 3.0 : f64, softcap = 2.0 : f64, alibi_slopes = array<f32: 0.5, 0.25, 0.125, 0.0625>} : (tensor<2x3x8xf32>, tensor<2x4x4xf32>, tensor<2x4x6xf32>) -> (tensor<2x3x12xf32>, tensor<2x4x3xf32>)
  %ow, %lw = tfm.attention %x, %k, %v {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 3.0 : f64, window = 2 : i64} : (tensor<2x3x8xf32>, tensor<2x4x4xf32>, tensor<2x4x6xf32>) -> (tensor<2x3x12xf32>, tensor<2x4x3xf32>)
  %k3 = tfm.slice %k {offsets = array<i64: 0, 1, 0>, strides = array<i64: 1, 1, 1>} : tensor<2x4x4xf32> -> tensor<2x3x4xf32>
  %v3 = tfm.slice %v {offsets = array<i64: 0, 1, 0>, strides = array<i64: 1, 1, 1>} : tensor<2x4x6xf32> -> tensor<2x3x6xf32>
  %two = arith.constant dense<2> : tensor<2x3xi64>
  %documents = arith.divsi %p, %two : tensor<2x3xi64>
  %od, %ld = tfm.attention %x, %k3, %v3 documents %documents causal top_left {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 3.0 : f64} : (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x6xf32>, tensor<2x3xi64>) -> (tensor<2x3x12xf32>, tensor<2x4x3xf32>)
  %softmax = tfm.softmax %x {axis = 1 : i64} : tensor<2x3x8xf32> -> tensor<2x3x8xf32>
  // Labels in [-8, 8): half of them do not count.
  %eight = arith.constant dense<8> : tensor<2x3xi64>
  %shifted = arith.subi %labels, %eight : tensor<2x3xi64>
  %max = tfm.logits_max %x : (tensor<2x3x8xf32>) -> tensor<2x3xf32>
  %sum, %target = tfm.logits_sum %x, %shifted, %max : (tensor<2x3x8xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %loss = tfm.cross_entropy %shifted, %max, %sum, %target : (tensor<2x3xi64>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<f64>
  %hyper = arith.constant dense<[0.125, 0.25, 0.75, 0.5, 0.0625, 0.25, 0.5, 2.0]> : tensor<8xf32>
  %squared = arith.mulf %moment, %moment : tensor<8xf32>
  %p1, %m1, %v1 = tfm.adamw %w, %moment, %squared, %b, %hyper : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %rms, %layer, %erf, %tanh, %swiglu, %rope, %interleaved, %o, %lse, %ow, %od, %softmax, %loss, %p1, %m1, %v1 : tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x12xf32>, tensor<2x4x3xf32>, tensor<2x3x12xf32>, tensor<2x3x12xf32>, tensor<2x3x8xf32>, tensor<f64>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
