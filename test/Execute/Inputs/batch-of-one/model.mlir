// A batch that the model fixes at one, to which tables are added without a broadcast: whole, as a slice, of rank 2,
// and a slice of one that is computed.
module attributes {tfm.initializer_range = 2.000000e-01 : f64} {
  func.func @model(%ids: tensor<1x32xi64> {tfm.input = "input_ids"}, %embed: tensor<131x16xf32> {tfm.parameter = "embed.weight"},
                   %whole: tensor<1x32x16xf32> {tfm.parameter = "pos_emb"}, %long: tensor<40x16xf32> {tfm.parameter = "positions"},
                   %longer: tensor<1x40x16xf32> {tfm.parameter = "more"},
                   %norm: tensor<16xf32> {tfm.parameter = "norm.weight"}, %qkv: tensor<48x16xf32> {tfm.parameter = "qkv.weight"},
                   %out: tensor<16x16xf32> {tfm.parameter = "out.weight"}, %head: tensor<131x16xf32> {tfm.parameter = "head.weight"})
      -> (tensor<1x32x131xf32> {tfm.output = "logits"}) {
    %0 = tfm.embedding %ids, %embed : (tensor<1x32xi64>, tensor<131x16xf32>) -> tensor<1x32x16xf32>
    %1 = arith.addf %0, %whole : tensor<1x32x16xf32>
    %2 = tfm.slice %long {offsets = array<i64: 4, 0>, strides = array<i64: 1, 1>} : tensor<40x16xf32> -> tensor<32x16xf32>
    %3 = tfm.reshape %2 : tensor<32x16xf32> -> tensor<1x32x16xf32>
    %4 = arith.addf %1, %3 : tensor<1x32x16xf32>
    %5 = tfm.slice %longer {offsets = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : tensor<1x40x16xf32> -> tensor<1x32x16xf32>
    %places = tfm.iota {axis = 1 : i64} : tensor<1x40x16xf32>
    %few = tfm.slice %places {offsets = array<i64: 0, 3, 0>, strides = array<i64: 1, 1, 1>} : tensor<1x40x16xf32> -> tensor<1x32x16xf32>
    %tenth = arith.constant dense<0.1> : tensor<1x32x16xf32>
    %computed = arith.mulf %few, %tenth : tensor<1x32x16xf32>
    %sum = arith.addf %5, %4 : tensor<1x32x16xf32>
    %6 = arith.addf %sum, %computed : tensor<1x32x16xf32>
    %7 = tfm.rms_norm %6, %norm {eps = 1.000000e-05 : f64} : (tensor<1x32x16xf32>, tensor<16xf32>) -> tensor<1x32x16xf32>
    %8 = tfm.linear %7, %qkv : (tensor<1x32x16xf32>, tensor<48x16xf32>) -> tensor<1x32x48xf32>
    %q = tfm.slice %8 {offsets = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : tensor<1x32x48xf32> -> tensor<1x32x16xf32>
    %k = tfm.slice %8 {offsets = array<i64: 0, 0, 16>, strides = array<i64: 1, 1, 1>} : tensor<1x32x48xf32> -> tensor<1x32x16xf32>
    %v = tfm.slice %8 {offsets = array<i64: 0, 0, 32>, strides = array<i64: 1, 1, 1>} : tensor<1x32x48xf32> -> tensor<1x32x16xf32>
    %a, %lse = tfm.attention %q, %k, %v causal top_left {num_heads = 2 : i64, num_kv_heads = 2 : i64, scale = 0.35355339059327373 : f64} : (tensor<1x32x16xf32>, tensor<1x32x16xf32>, tensor<1x32x16xf32>) -> (tensor<1x32x16xf32>, tensor<1x2x32xf32>)
    %9 = tfm.linear %a, %out : (tensor<1x32x16xf32>, tensor<16x16xf32>) -> tensor<1x32x16xf32>
    %10 = arith.addf %6, %9 : tensor<1x32x16xf32>
    %11 = tfm.linear %10, %head : (tensor<1x32x16xf32>, tensor<131x16xf32>) -> tensor<1x32x131xf32>
    return %11 : tensor<1x32x131xf32>
  }
}
