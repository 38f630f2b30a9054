// RUN: %drover-opt --tfm-bind-inputs="inputs=attention_mask=ones,position_ids=arange" --canonicalize --tfm-simplify-views --canonicalize %s | FileCheck %s

// Ones say nothing as a key_mask; counting positions are one row.
// CHECK-LABEL: func.func @model(
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x?x8xf32> {{{.*}}}) ->
// CHECK: %[[P:.*]] = tfm.iota {axis = 1 : i64, {{.*}}} : tensor<1x?xi64>
// CHECK: %[[Q:.*]] = tfm.rope %[[X]], %[[P]]
// CHECK: tfm.attention %[[Q]], %[[X]], %[[X]] causal top_left {num_heads
#ids = affine_map<()[s0, s1] -> (s0, s1)>
module attributes {tfm.symbols = ["batch", "seq"]} {
  func.func @model(%x: tensor<?x?x8xf32> {tfm.input = "x", tfm.shape = affine_map<()[s0, s1] -> (s0, s1, 8)>},
                   %m: tensor<?x?xi64> {tfm.input = "attention_mask", tfm.shape = #ids},
                   %p: tensor<?x?xi64> {tfm.input = "position_ids", tfm.shape = #ids}) -> tensor<?x?x8xf32> {
    %q = tfm.rope %x, %p {head_size = 4 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64} : (tensor<?x?x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
    %o, %l = tfm.attention %q, %x, %x key_mask %m causal top_left {num_heads = 2 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?xi64>) -> (tensor<?x?x8xf32>, tensor<?x2x?xf32>)
    return %o : tensor<?x?x8xf32>
  }
}
