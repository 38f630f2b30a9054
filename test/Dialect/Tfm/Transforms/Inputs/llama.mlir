module {
  func.func @model(
      %input_ids: tensor<2x4xi64> {tfm.input = "input_ids"},
      %p1: tensor<13x8xf32> {tfm.parameter = "model.embed_tokens.weight"},
      %p2: tensor<8xf32> {tfm.parameter = "model.layers.0.input_layernorm.weight"},
      %p3: tensor<8x8xf32> {tfm.parameter = "model.layers.0.self_attn.q_proj.weight"},
      %p4: tensor<4x8xf32> {tfm.parameter = "model.layers.0.self_attn.k_proj.weight"},
      %p5: tensor<4x8xf32> {tfm.parameter = "model.layers.0.self_attn.v_proj.weight"},
      %p6: tensor<8x8xf32> {tfm.parameter = "model.layers.0.self_attn.o_proj.weight"},
      %p7: tensor<8xf32> {tfm.parameter = "model.layers.0.post_attention_layernorm.weight"},
      %p8: tensor<6x8xf32> {tfm.parameter = "model.layers.0.mlp.gate_proj.weight"},
      %p9: tensor<6x8xf32> {tfm.parameter = "model.layers.0.mlp.up_proj.weight"},
      %p10: tensor<8x6xf32> {tfm.parameter = "model.layers.0.mlp.down_proj.weight"},
      %p11: tensor<8xf32> {tfm.parameter = "model.layers.1.input_layernorm.weight"},
      %p12: tensor<8x8xf32> {tfm.parameter = "model.layers.1.self_attn.q_proj.weight"},
      %p13: tensor<4x8xf32> {tfm.parameter = "model.layers.1.self_attn.k_proj.weight"},
      %p14: tensor<4x8xf32> {tfm.parameter = "model.layers.1.self_attn.v_proj.weight"},
      %p15: tensor<8x8xf32> {tfm.parameter = "model.layers.1.self_attn.o_proj.weight"},
      %p16: tensor<8xf32> {tfm.parameter = "model.layers.1.post_attention_layernorm.weight"},
      %p17: tensor<6x8xf32> {tfm.parameter = "model.layers.1.mlp.gate_proj.weight"},
      %p18: tensor<6x8xf32> {tfm.parameter = "model.layers.1.mlp.up_proj.weight"},
      %p19: tensor<8x6xf32> {tfm.parameter = "model.layers.1.mlp.down_proj.weight"},
      %p20: tensor<8xf32> {tfm.parameter = "model.norm.weight"},
      %p21: tensor<13x8xf32> {tfm.parameter = "lm_head.weight"})
      -> (tensor<2x4x13xf32> {tfm.output = "logits"}) {
    %0 = tfm.iota {axis = 1 : i64} : tensor<1x4xi64>
    %1 = tfm.embedding %input_ids, %p1 : (tensor<2x4xi64>, tensor<13x8xf32>) -> tensor<2x4x8xf32>
    %2 = tfm.rms_norm %1, %p2 {eps = 1.0e-5 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %3 = tfm.linear %2, %p3 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %4 = tfm.linear %2, %p4 : (tensor<2x4x8xf32>, tensor<4x8xf32>) -> tensor<2x4x4xf32>
    %5 = tfm.linear %2, %p5 : (tensor<2x4x8xf32>, tensor<4x8xf32>) -> tensor<2x4x4xf32>
    %6 = tfm.rope %3, %0 {head_size = 4 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64} : (tensor<2x4x8xf32>, tensor<1x4xi64>) -> tensor<2x4x8xf32>
    %7 = tfm.rope %4, %0 {head_size = 4 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64} : (tensor<2x4x4xf32>, tensor<1x4xi64>) -> tensor<2x4x4xf32>
    %8:2 = tfm.attention %6, %7, %5 causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.5 : f64} : (tensor<2x4x8xf32>, tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> (tensor<2x4x8xf32>, tensor<2x2x4xf32>)
    %9 = tfm.linear %8#0, %p6 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %10 = arith.addf %1, %9 : tensor<2x4x8xf32>
    %11 = tfm.rms_norm %10, %p7 {eps = 1.0e-5 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %12 = tfm.linear %11, %p8 : (tensor<2x4x8xf32>, tensor<6x8xf32>) -> tensor<2x4x6xf32>
    %13 = tfm.linear %11, %p9 : (tensor<2x4x8xf32>, tensor<6x8xf32>) -> tensor<2x4x6xf32>
    %14 = tfm.swiglu %12, %13 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
    %15 = tfm.linear %14, %p10 : (tensor<2x4x6xf32>, tensor<8x6xf32>) -> tensor<2x4x8xf32>
    %16 = arith.addf %10, %15 : tensor<2x4x8xf32>
    %17 = tfm.rms_norm %16, %p11 {eps = 1.0e-5 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %18 = tfm.linear %17, %p12 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %19 = tfm.linear %17, %p13 : (tensor<2x4x8xf32>, tensor<4x8xf32>) -> tensor<2x4x4xf32>
    %20 = tfm.linear %17, %p14 : (tensor<2x4x8xf32>, tensor<4x8xf32>) -> tensor<2x4x4xf32>
    %21 = tfm.rope %18, %0 {head_size = 4 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64} : (tensor<2x4x8xf32>, tensor<1x4xi64>) -> tensor<2x4x8xf32>
    %22 = tfm.rope %19, %0 {head_size = 4 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64} : (tensor<2x4x4xf32>, tensor<1x4xi64>) -> tensor<2x4x4xf32>
    %23:2 = tfm.attention %21, %22, %20 causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.5 : f64} : (tensor<2x4x8xf32>, tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> (tensor<2x4x8xf32>, tensor<2x2x4xf32>)
    %24 = tfm.linear %23#0, %p15 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %25 = arith.addf %16, %24 : tensor<2x4x8xf32>
    %26 = tfm.rms_norm %25, %p16 {eps = 1.0e-5 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %27 = tfm.linear %26, %p17 : (tensor<2x4x8xf32>, tensor<6x8xf32>) -> tensor<2x4x6xf32>
    %28 = tfm.linear %26, %p18 : (tensor<2x4x8xf32>, tensor<6x8xf32>) -> tensor<2x4x6xf32>
    %29 = tfm.swiglu %27, %28 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
    %30 = tfm.linear %29, %p19 : (tensor<2x4x6xf32>, tensor<8x6xf32>) -> tensor<2x4x8xf32>
    %31 = arith.addf %25, %30 : tensor<2x4x8xf32>
    %32 = tfm.rms_norm %31, %p20 {eps = 1.0e-5 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %33 = tfm.linear %32, %p21 : (tensor<2x4x8xf32>, tensor<13x8xf32>) -> tensor<2x4x13xf32>
    return %33 : tensor<2x4x13xf32>
  }
}
