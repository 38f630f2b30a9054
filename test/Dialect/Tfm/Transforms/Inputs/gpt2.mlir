module {
  func.func @model(
      %input_ids: tensor<2x4xi64> {tfm.input = "input_ids"},
      %p1: tensor<13x8xf32> {tfm.parameter = "transformer.wte.weight"},
      %p2: tensor<32x8xf32> {tfm.parameter = "transformer.wpe.weight"},
      %p3: tensor<8xf32> {tfm.parameter = "transformer.h.0.ln_1.weight"},
      %p4: tensor<8xf32> {tfm.parameter = "transformer.h.0.ln_1.bias"},
      %p5: tensor<8x24xf32> {tfm.parameter = "transformer.h.0.attn.c_attn.weight"},
      %p6: tensor<24xf32> {tfm.parameter = "transformer.h.0.attn.c_attn.bias"},
      %p7: tensor<8x8xf32> {tfm.parameter = "transformer.h.0.attn.c_proj.weight"},
      %p8: tensor<8xf32> {tfm.parameter = "transformer.h.0.attn.c_proj.bias"},
      %p9: tensor<8xf32> {tfm.parameter = "transformer.h.0.ln_2.weight"},
      %p10: tensor<8xf32> {tfm.parameter = "transformer.h.0.ln_2.bias"},
      %p11: tensor<8x6xf32> {tfm.parameter = "transformer.h.0.mlp.c_fc.weight"},
      %p12: tensor<6xf32> {tfm.parameter = "transformer.h.0.mlp.c_fc.bias"},
      %p13: tensor<6x8xf32> {tfm.parameter = "transformer.h.0.mlp.c_proj.weight"},
      %p14: tensor<8xf32> {tfm.parameter = "transformer.h.0.mlp.c_proj.bias"},
      %p15: tensor<8xf32> {tfm.parameter = "transformer.h.1.ln_1.weight"},
      %p16: tensor<8xf32> {tfm.parameter = "transformer.h.1.ln_1.bias"},
      %p17: tensor<8x24xf32> {tfm.parameter = "transformer.h.1.attn.c_attn.weight"},
      %p18: tensor<24xf32> {tfm.parameter = "transformer.h.1.attn.c_attn.bias"},
      %p19: tensor<8x8xf32> {tfm.parameter = "transformer.h.1.attn.c_proj.weight"},
      %p20: tensor<8xf32> {tfm.parameter = "transformer.h.1.attn.c_proj.bias"},
      %p21: tensor<8xf32> {tfm.parameter = "transformer.h.1.ln_2.weight"},
      %p22: tensor<8xf32> {tfm.parameter = "transformer.h.1.ln_2.bias"},
      %p23: tensor<8x6xf32> {tfm.parameter = "transformer.h.1.mlp.c_fc.weight"},
      %p24: tensor<6xf32> {tfm.parameter = "transformer.h.1.mlp.c_fc.bias"},
      %p25: tensor<6x8xf32> {tfm.parameter = "transformer.h.1.mlp.c_proj.weight"},
      %p26: tensor<8xf32> {tfm.parameter = "transformer.h.1.mlp.c_proj.bias"},
      %p27: tensor<8xf32> {tfm.parameter = "transformer.ln_f.weight"},
      %p28: tensor<8xf32> {tfm.parameter = "transformer.ln_f.bias"},
      %p29: tensor<13x8xf32> {tfm.parameter = "lm_head.weight"})
      -> (tensor<2x4x13xf32> {tfm.output = "logits"}) {
    %0 = tfm.iota {axis = 1 : i64} : tensor<1x4xi64>
    %1 = tfm.embedding %0, %p2 : (tensor<1x4xi64>, tensor<32x8xf32>) -> tensor<1x4x8xf32>
    %2 = tfm.broadcast %1 : tensor<1x4x8xf32> -> tensor<2x4x8xf32>
    %3 = tfm.embedding %input_ids, %p1 : (tensor<2x4xi64>, tensor<13x8xf32>) -> tensor<2x4x8xf32>
    %4 = arith.addf %3, %2 : tensor<2x4x8xf32>
    %5 = tfm.layer_norm %4 weight %p3 bias %p4 {eps = 1.0e-5 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %6 = tfm.linear %5, %p5 in_out : (tensor<2x4x8xf32>, tensor<8x24xf32>) -> tensor<2x4x24xf32>
    %7 = tfm.bias_add %6, %p6 : (tensor<2x4x24xf32>, tensor<24xf32>) -> tensor<2x4x24xf32>
    %8 = tfm.slice %7 {offsets = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : tensor<2x4x24xf32> -> tensor<2x4x8xf32>
    %9 = tfm.slice %7 {offsets = array<i64: 0, 0, 8>, strides = array<i64: 1, 1, 1>} : tensor<2x4x24xf32> -> tensor<2x4x8xf32>
    %10 = tfm.slice %7 {offsets = array<i64: 0, 0, 16>, strides = array<i64: 1, 1, 1>} : tensor<2x4x24xf32> -> tensor<2x4x8xf32>
    %11:2 = tfm.attention %8, %9, %10 causal top_left {num_heads = 2 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x2x4xf32>)
    %12 = tfm.linear %11#0, %p7 in_out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %13 = tfm.bias_add %12, %p8 : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %14 = arith.addf %4, %13 : tensor<2x4x8xf32>
    %15 = tfm.layer_norm %14 weight %p9 bias %p10 {eps = 1.0e-5 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %16 = tfm.linear %15, %p11 in_out : (tensor<2x4x8xf32>, tensor<8x6xf32>) -> tensor<2x4x6xf32>
    %17 = tfm.bias_add %16, %p12 : (tensor<2x4x6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
    %18 = tfm.gelu %17 {kind = 1 : i32} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
    %19 = tfm.linear %18, %p13 in_out : (tensor<2x4x6xf32>, tensor<6x8xf32>) -> tensor<2x4x8xf32>
    %20 = tfm.bias_add %19, %p14 : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %21 = arith.addf %14, %20 : tensor<2x4x8xf32>
    %22 = tfm.layer_norm %21 weight %p15 bias %p16 {eps = 1.0e-5 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %23 = tfm.linear %22, %p17 in_out : (tensor<2x4x8xf32>, tensor<8x24xf32>) -> tensor<2x4x24xf32>
    %24 = tfm.bias_add %23, %p18 : (tensor<2x4x24xf32>, tensor<24xf32>) -> tensor<2x4x24xf32>
    %25 = tfm.slice %24 {offsets = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : tensor<2x4x24xf32> -> tensor<2x4x8xf32>
    %26 = tfm.slice %24 {offsets = array<i64: 0, 0, 8>, strides = array<i64: 1, 1, 1>} : tensor<2x4x24xf32> -> tensor<2x4x8xf32>
    %27 = tfm.slice %24 {offsets = array<i64: 0, 0, 16>, strides = array<i64: 1, 1, 1>} : tensor<2x4x24xf32> -> tensor<2x4x8xf32>
    %28:2 = tfm.attention %25, %26, %27 causal top_left {num_heads = 2 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x2x4xf32>)
    %29 = tfm.linear %28#0, %p19 in_out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %30 = tfm.bias_add %29, %p20 : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %31 = arith.addf %21, %30 : tensor<2x4x8xf32>
    %32 = tfm.layer_norm %31 weight %p21 bias %p22 {eps = 1.0e-5 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %33 = tfm.linear %32, %p23 in_out : (tensor<2x4x8xf32>, tensor<8x6xf32>) -> tensor<2x4x6xf32>
    %34 = tfm.bias_add %33, %p24 : (tensor<2x4x6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
    %35 = tfm.gelu %34 {kind = 1 : i32} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
    %36 = tfm.linear %35, %p25 in_out : (tensor<2x4x6xf32>, tensor<6x8xf32>) -> tensor<2x4x8xf32>
    %37 = tfm.bias_add %36, %p26 : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %38 = arith.addf %31, %37 : tensor<2x4x8xf32>
    %39 = tfm.layer_norm %38 weight %p27 bias %p28 {eps = 1.0e-5 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %40 = tfm.linear %39, %p29 : (tensor<2x4x8xf32>, tensor<13x8xf32>) -> tensor<2x4x13xf32>
    return %40 : tensor<2x4x13xf32>
  }
}
