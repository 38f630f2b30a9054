// Two layers of a norm, a projection and a residual add, learned positions, a head tied to the table.
module attributes {tfm.symbols = ["batch", "sequence"]} {
  func.func @model(%ids: tensor<?x?xi64> {tfm.input = "input_ids", tfm.shape = affine_map<()[s0, s1] -> (s0, s1)>},
                   %positions: tensor<?x?xi64> {tfm.input = "position_ids", tfm.shape = affine_map<()[s0, s1] -> (s0, s1)>},
                   %table: tensor<32x16xf32> {tfm.parameter = "wte.weight", tfm.aliases = ["lm_head.weight"]},
                   %wpe: tensor<8x16xf32> {tfm.parameter = "wpe.weight"},
                   %n0: tensor<16xf32> {tfm.parameter = "layers.0.norm.weight"},
                   %w0: tensor<16x16xf32> {tfm.parameter = "layers.0.proj.weight"},
                   %b0: tensor<16xf32> {tfm.parameter = "layers.0.proj.bias"},
                   %n1: tensor<16xf32> {tfm.parameter = "layers.1.norm.weight"},
                   %w1: tensor<16x16xf32> {tfm.parameter = "layers.1.proj.weight"},
                   %b1: tensor<16xf32> {tfm.parameter = "layers.1.proj.bias"},
                   %nf: tensor<16xf32> {tfm.parameter = "norm.weight"}) -> (tensor<?x?x32xf32> {tfm.output = "logits"}) {
    %e = tfm.embedding %ids, %table : (tensor<?x?xi64>, tensor<32x16xf32>) -> tensor<?x?x16xf32>
    %p = tfm.embedding %positions, %wpe : (tensor<?x?xi64>, tensor<8x16xf32>) -> tensor<?x?x16xf32>
    %x0 = arith.addf %e, %p : tensor<?x?x16xf32>
    %h0 = tfm.rms_norm %x0, %n0 {eps = 1.0e-6 : f64} : (tensor<?x?x16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
    %l0 = tfm.linear %h0, %w0 : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
    %a0 = tfm.bias_add %l0, %b0 : (tensor<?x?x16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
    %g0 = tfm.gelu %a0 {kind = 1 : i32} : (tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
    %x1 = arith.addf %x0, %g0 : tensor<?x?x16xf32>
    %h1 = tfm.rms_norm %x1, %n1 {eps = 1.0e-6 : f64} : (tensor<?x?x16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
    %l1 = tfm.linear %h1, %w1 : (tensor<?x?x16xf32>, tensor<16x16xf32>) -> tensor<?x?x16xf32>
    %a1 = tfm.bias_add %l1, %b1 : (tensor<?x?x16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
    %g1 = tfm.gelu %a1 {kind = 1 : i32} : (tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
    %x2 = arith.addf %x1, %g1 : tensor<?x?x16xf32>
    %hf = tfm.rms_norm %x2, %nf {eps = 1.0e-6 : f64} : (tensor<?x?x16xf32>, tensor<16xf32>) -> tensor<?x?x16xf32>
    %logits = tfm.linear %hf, %table : (tensor<?x?x16xf32>, tensor<32x16xf32>) -> tensor<?x?x32xf32>
    return %logits : tensor<?x?x32xf32>
  }
}
