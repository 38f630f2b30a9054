// RUN: %drover-opt --tfm-raise %s | FileCheck %s
// One Llama layer as TorchScript exports it, with attention_mask and position_ids: twelve ops a layer, no head
// dimension, nothing of the mask left but the input itself.
// CHECK-LABEL: func.func @model
// CHECK-SAME: %[[IDS:[^:]*]]: tensor<?x?xi64> {tfm.input = "input_ids"
// CHECK-SAME: %[[MASK:[^:]*]]: tensor<?x?xi64> {tfm.input = "attention_mask"
// CHECK-SAME: %[[POS:[^:]*]]: tensor<?x?xi64> {tfm.input = "position_ids"
// CHECK-NEXT: %[[X:.*]] = tfm.embedding %[[IDS]]
// CHECK-NEXT: %[[N:.*]] = tfm.rms_norm %[[X]], %{{.*}} {eps = 9.9999999999999995E-7 : f64}
// CHECK-NEXT: %[[Q:.*]] = tfm.linear %[[N]]
// CHECK-NEXT: %[[RQ:.*]] = tfm.rope %[[Q]], %[[POS]] {head_size = 8 : i64, rotary_dim = 8 : i64, theta = 1.000000e+04 : f64}
// CHECK-NEXT: %[[K:.*]] = tfm.linear %[[N]]
// CHECK-NEXT: %[[RK:.*]] = tfm.rope %[[K]], %[[POS]] {head_size = 8 : i64, rotary_dim = 8 : i64, theta = 1.000000e+04 : f64}
// CHECK-NEXT: %[[V:.*]] = tfm.linear %[[N]]
// CHECK-NEXT: %[[A:.*]], %{{.*}} = tfm.attention %[[RQ]], %[[RK]], %[[V]] key_mask %[[MASK]] causal top_left {num_heads = 8 : i64, num_kv_heads = 2 : i64, scale = 0.35355339059327373 : f64}
// CHECK-NEXT: %[[O:.*]] = tfm.linear %[[A]]
// CHECK-NEXT: %[[H:.*]] = arith.addf %[[X]], %[[O]]
// CHECK-NEXT: %[[N2:.*]] = tfm.rms_norm %[[H]]
// CHECK-NEXT: %[[G:.*]] = tfm.linear %[[N2]]
// CHECK-NEXT: %[[U:.*]] = tfm.linear %[[N2]]
// CHECK-NEXT: %[[S:.*]] = tfm.swiglu %[[G]], %[[U]]
// CHECK-NEXT: %[[D:.*]] = tfm.linear %[[S]]
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[H]], %[[D]]
// CHECK-NEXT: return %[[Y]]

#map = affine_map<()[s0, s1] -> (s1)>
#map1 = affine_map<()[s0, s1] -> (s1, s1)>
#map2 = affine_map<()[s0, s1] -> (s1, 1)>
#map3 = affine_map<()[s0, s1] -> (1, s1, s1)>
#map4 = affine_map<()[s0, s1] -> (1, 1, s1, s1)>
#map5 = affine_map<()[s0, s1] -> (s0, 1, s1, s1)>
#map6 = affine_map<()[s0, s1] -> (s0, 1, s1)>
#map7 = affine_map<()[s0, s1] -> (s0, 1, 1, s1)>
#map8 = affine_map<()[s0, s1] -> (s0)>
#map9 = affine_map<()[s0, s1] -> (s0, 1, 1, 1)>
#map10 = affine_map<()[s0, s1] -> (s0, 1, s1, s1, 1)>
#map11 = affine_map<()[s0, s1] -> (s0, 4, 1)>
#map12 = affine_map<()[s0, s1] -> (s0, s1, 8)>
#map13 = affine_map<()[s0, s1] -> (s0, s1, 1)>
#map14 = affine_map<()[s0, s1] -> (s0, s1, 64)>
#map15 = affine_map<()[s0, s1] -> (s0, s1, 8, 8)>
#map16 = affine_map<()[s0, s1] -> (s0, s1, 2, 8)>
#map17 = affine_map<()[s0, s1] -> (s0, 1, s1, 8)>
#map18 = affine_map<()[s0, s1] -> (s0, 8, s1, 8)>
#map19 = affine_map<()[s0, s1] -> (s0, 8, s1, 4)>
#map20 = affine_map<()[s0, s1] -> (s0, 2, s1, 8)>
#map21 = affine_map<()[s0, s1] -> (s0, 2, s1, 4)>
#map22 = affine_map<()[s0, s1] -> (s0, 2, 1, s1, 8)>
#map23 = affine_map<()[s0, s1] -> (s0, 2, 4, s1, 8)>
#map24 = affine_map<()[s0, s1] -> (s0, 8, 8, s1)>
#map25 = affine_map<()[s0, s1] -> (s0, 8, s1, s1)>
#map26 = affine_map<()[s0, s1] -> (s0, s1, 176)>
module attributes {tfm.symbols = ["batch_size", "sequence_length"]} {
  func.func @model(
      %arg0: tensor<?x?xi64> {tfm.input = "input_ids", tfm.shape = affine_map<()[s0, s1] -> (s0, s1)>},
      %arg1: tensor<?x?xi64> {tfm.input = "attention_mask", tfm.shape = affine_map<()[s0, s1] -> (s0, s1)>},
      %arg2: tensor<?x?xi64> {tfm.input = "position_ids", tfm.shape = affine_map<()[s0, s1] -> (s0, s1)>},
      %arg3: tensor<256x64xf32> {tfm.parameter = "model.embed_tokens.weight"},
      %arg4: tensor<64xf32> {tfm.parameter = "model.layers.0.input_layernorm.weight"},
      %arg5: tensor<64x64xf32> {tfm.parameter = "model.layers.0.self_attn.q_proj.weight"},
      %arg6: tensor<16x64xf32> {tfm.parameter = "model.layers.0.self_attn.k_proj.weight"},
      %arg7: tensor<16x64xf32> {tfm.parameter = "model.layers.0.self_attn.v_proj.weight"},
      %arg8: tensor<64x64xf32> {tfm.parameter = "model.layers.0.self_attn.o_proj.weight"},
      %arg9: tensor<64xf32> {tfm.parameter = "model.layers.0.post_attention_layernorm.weight"},
      %arg10: tensor<176x64xf32> {tfm.parameter = "model.layers.0.mlp.gate_proj.weight"},
      %arg11: tensor<176x64xf32> {tfm.parameter = "model.layers.0.mlp.up_proj.weight"},
      %arg12: tensor<64x176xf32> {tfm.parameter = "model.layers.0.mlp.down_proj.weight"})
      -> (tensor<?x?x64xf32> {tfm.output = "logits"}) {
    %0 = tfm.embedding %arg0, %arg3 : (tensor<?x?xi64>, tensor<256x64xf32>) -> tensor<?x?x64xf32>
    %1 = tfm.iota {axis = 0 : i64, shape = #map} : tensor<?xi64>
    %2 = tfm.iota {axis = 0 : i64, shape = #map1} : tensor<?x?xi64>
    %3 = tfm.iota {axis = 1 : i64, shape = #map1} : tensor<?x?xi64>
    %4 = tfm.fill {shape = #map1, value = 1 : i64} : tensor<?x?xi64>
    %5 = arith.addi %2, %4 : tensor<?x?xi64>
    %6 = arith.cmpi sle, %5, %3 : tensor<?x?xi64>
    %7 = tfm.fill {shape = #map1, value = -3.40282347E+38 : f32} : tensor<?x?xf32>
    %8 = tfm.fill {shape = #map1, value = 0.000000e+00 : f32} : tensor<?x?xf32>
    %9 = arith.select %6, %7, %8 : tensor<?x?xi1>, tensor<?x?xf32>
    %10 = tfm.reshape %1 {shape = #map2} : tensor<?xi64> -> tensor<?x1xi64>
    %11 = tfm.broadcast %10 {shape = #map1} : tensor<?x1xi64> -> tensor<?x?xi64>
    %12 = tfm.broadcast %1 {shape = #map1} : tensor<?xi64> -> tensor<?x?xi64>
    %13 = arith.cmpi slt, %11, %12 : tensor<?x?xi64>
    %14 = arith.uitofp %13 : tensor<?x?xi1> to tensor<?x?xf32>
    %15 = arith.mulf %9, %14 : tensor<?x?xf32>
    %16 = tfm.reshape %15 {shape = #map3} : tensor<?x?xf32> -> tensor<1x?x?xf32>
    %17 = tfm.reshape %16 {shape = #map4} : tensor<1x?x?xf32> -> tensor<1x1x?x?xf32>
    %18 = tfm.broadcast %17 {shape = #map5} : tensor<1x1x?x?xf32> -> tensor<?x1x?x?xf32>
    %19 = tfm.reshape %arg1 {shape = #map6} : tensor<?x?xi64> -> tensor<?x1x?xi64>
    %20 = tfm.reshape %19 {shape = #map7} : tensor<?x1x?xi64> -> tensor<?x1x1x?xi64>
    %21 = arith.sitofp %20 : tensor<?x1x1x?xi64> to tensor<?x1x1x?xf32>
    %22 = tfm.broadcast %21 {shape = #map5} : tensor<?x1x1x?xf32> -> tensor<?x1x?x?xf32>
    %23 = arith.addf %18, %22 : tensor<?x1x?x?xf32>
    %24 = tfm.fill {shape = #map5, value = 0.000000e+00 : f32} : tensor<?x1x?x?xf32>
    %25 = arith.cmpf oeq, %23, %24 : tensor<?x1x?x?xf32>
    %26 = tfm.fill {shape = #map5, value = -3.40282347E+38 : f32} : tensor<?x1x?x?xf32>
    %27 = arith.select %25, %26, %18 : tensor<?x1x?x?xi1>, tensor<?x1x?x?xf32>
    %28 = tfm.iota {axis = 0 : i64, shape = #map8} : tensor<?xi64>
    %29 = tfm.reshape %28 {shape = #map9} : tensor<?xi64> -> tensor<?x1x1x1xi64>
    %30 = tfm.broadcast %1 {shape = #map5} : tensor<?xi64> -> tensor<?x1x?x?xi64>
    %31 = tfm.broadcast %29 {shape = #map5} : tensor<?x1x1x1xi64> -> tensor<?x1x?x?xi64>
    %32 = tfm.reshape %31 {shape = #map10} : tensor<?x1x?x?xi64> -> tensor<?x1x?x?x1xi64>
    %33 = tfm.broadcast %10 {shape = #map5} : tensor<?x1xi64> -> tensor<?x1x?x?xi64>
    %34 = tfm.reshape %33 {shape = #map10} : tensor<?x1x?x?xi64> -> tensor<?x1x?x?x1xi64>
    %35 = tfm.reshape %30 {shape = #map10} : tensor<?x1x?x?xi64> -> tensor<?x1x?x?x1xi64>
    %36 = tfm.fill {shape = #map10, value = 0 : i64} : tensor<?x1x?x?x1xi64>
    %37 = tfm.concat %32, %36, %34, %35 {axis = 4 : i64} : (tensor<?x1x?x?x1xi64>, tensor<?x1x?x?x1xi64>, tensor<?x1x?x?x1xi64>, tensor<?x1x?x?x1xi64>) -> tensor<?x1x?x?x4xi64>
    %38 = tfm.scatter_nd %18, %37, %27 : (tensor<?x1x?x?xf32>, tensor<?x1x?x?x4xi64>, tensor<?x1x?x?xf32>) -> tensor<?x1x?x?xf32>
    %cst = arith.constant dense<[[[1.000000e+00], [1.000000e-01], [0.00999999977], [1.000000e-03]]]> : tensor<1x4x1xf32>
    %39 = tfm.broadcast %cst {shape = #map11} : tensor<1x4x1xf32> -> tensor<?x4x1xf32>
    %40 = tfm.reshape %arg2 {shape = #map6} : tensor<?x?xi64> -> tensor<?x1x?xi64>
    %41 = arith.sitofp %40 : tensor<?x1x?xi64> to tensor<?x1x?xf32>
    %42 = tfm.matmul %39, %41 : (tensor<?x4x1xf32>, tensor<?x1x?xf32>) -> tensor<?x4x?xf32>
    %43 = tfm.transpose %42 {permutation = array<i64: 0, 2, 1>} : tensor<?x4x?xf32> -> tensor<?x?x4xf32>
    %44 = tfm.concat %43, %43 {axis = 2 : i64} : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x8xf32>
    %45 = math.cos %44 : tensor<?x?x8xf32>
    %46 = math.sin %44 : tensor<?x?x8xf32>
    %47 = tfm.fill {shape = #map12, value = 1.000000e+00 : f32} : tensor<?x?x8xf32>
    %48 = arith.mulf %45, %47 : tensor<?x?x8xf32>
    %49 = arith.mulf %46, %47 : tensor<?x?x8xf32>
    %50 = arith.mulf %0, %0 : tensor<?x?x64xf32>
    %51 = tfm.reduce %50 {axes = array<i64: 2>, keep, kind = 3 : i32} : tensor<?x?x64xf32> -> tensor<?x?x1xf32>
    %52 = tfm.fill {shape = #map13, value = 9.99999997E-7 : f32} : tensor<?x?x1xf32>
    %53 = arith.addf %51, %52 : tensor<?x?x1xf32>
    %54 = math.sqrt %53 : tensor<?x?x1xf32>
    %55 = tfm.fill {shape = #map13, value = 1.000000e+00 : f32} : tensor<?x?x1xf32>
    %56 = arith.divf %55, %54 : tensor<?x?x1xf32>
    %57 = tfm.broadcast %56 {shape = #map14} : tensor<?x?x1xf32> -> tensor<?x?x64xf32>
    %58 = arith.mulf %0, %57 : tensor<?x?x64xf32>
    %59 = tfm.broadcast %arg4 {shape = #map14} : tensor<64xf32> -> tensor<?x?x64xf32>
    %60 = arith.mulf %59, %58 : tensor<?x?x64xf32>
    %61 = tfm.linear %60, %arg5 : (tensor<?x?x64xf32>, tensor<64x64xf32>) -> tensor<?x?x64xf32>
    %62 = tfm.linear %60, %arg6 : (tensor<?x?x64xf32>, tensor<16x64xf32>) -> tensor<?x?x16xf32>
    %63 = tfm.linear %60, %arg7 : (tensor<?x?x64xf32>, tensor<16x64xf32>) -> tensor<?x?x16xf32>
    %64 = tfm.reshape %61 {shape = #map15} : tensor<?x?x64xf32> -> tensor<?x?x8x8xf32>
    %65 = tfm.transpose %64 {permutation = array<i64: 0, 2, 1, 3>} : tensor<?x?x8x8xf32> -> tensor<?x8x?x8xf32>
    %66 = tfm.reshape %62 {shape = #map16} : tensor<?x?x16xf32> -> tensor<?x?x2x8xf32>
    %67 = tfm.transpose %66 {permutation = array<i64: 0, 2, 1, 3>} : tensor<?x?x2x8xf32> -> tensor<?x2x?x8xf32>
    %68 = tfm.reshape %63 {shape = #map16} : tensor<?x?x16xf32> -> tensor<?x?x2x8xf32>
    %69 = tfm.transpose %68 {permutation = array<i64: 0, 2, 1, 3>} : tensor<?x?x2x8xf32> -> tensor<?x2x?x8xf32>
    %70 = tfm.reshape %48 {shape = #map17} : tensor<?x?x8xf32> -> tensor<?x1x?x8xf32>
    %71 = tfm.reshape %49 {shape = #map17} : tensor<?x?x8xf32> -> tensor<?x1x?x8xf32>
    %72 = tfm.broadcast %70 {shape = #map18} : tensor<?x1x?x8xf32> -> tensor<?x8x?x8xf32>
    %73 = arith.mulf %65, %72 : tensor<?x8x?x8xf32>
    %74 = tfm.slice %65 {offsets = array<i64: 0, 0, 0, 0>, shape = #map19, strides = array<i64: 1, 1, 1, 1>} : tensor<?x8x?x8xf32> -> tensor<?x8x?x4xf32>
    %75 = tfm.slice %65 {offsets = array<i64: 0, 0, 0, 4>, shape = #map19, strides = array<i64: 1, 1, 1, 1>} : tensor<?x8x?x8xf32> -> tensor<?x8x?x4xf32>
    %76 = arith.negf %75 : tensor<?x8x?x4xf32>
    %77 = tfm.concat %76, %74 {axis = 3 : i64} : (tensor<?x8x?x4xf32>, tensor<?x8x?x4xf32>) -> tensor<?x8x?x8xf32>
    %78 = tfm.broadcast %71 {shape = #map18} : tensor<?x1x?x8xf32> -> tensor<?x8x?x8xf32>
    %79 = arith.mulf %77, %78 : tensor<?x8x?x8xf32>
    %80 = arith.addf %73, %79 : tensor<?x8x?x8xf32>
    %81 = tfm.broadcast %70 {shape = #map20} : tensor<?x1x?x8xf32> -> tensor<?x2x?x8xf32>
    %82 = arith.mulf %67, %81 : tensor<?x2x?x8xf32>
    %83 = tfm.slice %67 {offsets = array<i64: 0, 0, 0, 0>, shape = #map21, strides = array<i64: 1, 1, 1, 1>} : tensor<?x2x?x8xf32> -> tensor<?x2x?x4xf32>
    %84 = tfm.slice %67 {offsets = array<i64: 0, 0, 0, 4>, shape = #map21, strides = array<i64: 1, 1, 1, 1>} : tensor<?x2x?x8xf32> -> tensor<?x2x?x4xf32>
    %85 = arith.negf %84 : tensor<?x2x?x4xf32>
    %86 = tfm.concat %85, %83 {axis = 3 : i64} : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x8xf32>
    %87 = tfm.broadcast %71 {shape = #map20} : tensor<?x1x?x8xf32> -> tensor<?x2x?x8xf32>
    %88 = arith.mulf %86, %87 : tensor<?x2x?x8xf32>
    %89 = arith.addf %82, %88 : tensor<?x2x?x8xf32>
    %90 = tfm.reshape %89 {shape = #map22} : tensor<?x2x?x8xf32> -> tensor<?x2x1x?x8xf32>
    %91 = tfm.broadcast %90 {shape = #map23} : tensor<?x2x1x?x8xf32> -> tensor<?x2x4x?x8xf32>
    %92 = tfm.reshape %91 {shape = #map18} : tensor<?x2x4x?x8xf32> -> tensor<?x8x?x8xf32>
    %93 = tfm.reshape %69 {shape = #map22} : tensor<?x2x?x8xf32> -> tensor<?x2x1x?x8xf32>
    %94 = tfm.broadcast %93 {shape = #map23} : tensor<?x2x1x?x8xf32> -> tensor<?x2x4x?x8xf32>
    %95 = tfm.reshape %94 {shape = #map18} : tensor<?x2x4x?x8xf32> -> tensor<?x8x?x8xf32>
    %96 = tfm.transpose %92 {permutation = array<i64: 0, 1, 3, 2>} : tensor<?x8x?x8xf32> -> tensor<?x8x8x?xf32>
    %97 = tfm.fill {shape = #map18, value = 0.594603539 : f32} : tensor<?x8x?x8xf32>
    %98 = arith.mulf %80, %97 : tensor<?x8x?x8xf32>
    %99 = tfm.fill {shape = #map24, value = 0.594603539 : f32} : tensor<?x8x8x?xf32>
    %100 = arith.mulf %96, %99 : tensor<?x8x8x?xf32>
    %101 = tfm.matmul %98, %100 : (tensor<?x8x?x8xf32>, tensor<?x8x8x?xf32>) -> tensor<?x8x?x?xf32>
    %102 = tfm.broadcast %38 {shape = #map25} : tensor<?x1x?x?xf32> -> tensor<?x8x?x?xf32>
    %103 = arith.addf %101, %102 : tensor<?x8x?x?xf32>
    %104 = tfm.softmax %103 {axis = 3 : i64} : tensor<?x8x?x?xf32> -> tensor<?x8x?x?xf32>
    %105 = tfm.matmul %104, %95 : (tensor<?x8x?x?xf32>, tensor<?x8x?x8xf32>) -> tensor<?x8x?x8xf32>
    %106 = tfm.transpose %105 {permutation = array<i64: 0, 2, 1, 3>} : tensor<?x8x?x8xf32> -> tensor<?x?x8x8xf32>
    %107 = tfm.reshape %106 {shape = #map14} : tensor<?x?x8x8xf32> -> tensor<?x?x64xf32>
    %108 = tfm.linear %107, %arg8 : (tensor<?x?x64xf32>, tensor<64x64xf32>) -> tensor<?x?x64xf32>
    %109 = arith.addf %0, %108 : tensor<?x?x64xf32>
    %110 = arith.mulf %109, %109 : tensor<?x?x64xf32>
    %111 = tfm.reduce %110 {axes = array<i64: 2>, keep, kind = 3 : i32} : tensor<?x?x64xf32> -> tensor<?x?x1xf32>
    %112 = arith.addf %111, %52 : tensor<?x?x1xf32>
    %113 = math.sqrt %112 : tensor<?x?x1xf32>
    %114 = arith.divf %55, %113 : tensor<?x?x1xf32>
    %115 = tfm.broadcast %114 {shape = #map14} : tensor<?x?x1xf32> -> tensor<?x?x64xf32>
    %116 = arith.mulf %109, %115 : tensor<?x?x64xf32>
    %117 = tfm.broadcast %arg9 {shape = #map14} : tensor<64xf32> -> tensor<?x?x64xf32>
    %118 = arith.mulf %117, %116 : tensor<?x?x64xf32>
    %119 = tfm.linear %118, %arg10 : (tensor<?x?x64xf32>, tensor<176x64xf32>) -> tensor<?x?x176xf32>
    %120 = arith.negf %119 : tensor<?x?x176xf32>
    %121 = math.exp %120 : tensor<?x?x176xf32>
    %122 = tfm.fill {shape = #map26, value = 1.000000e+00 : f32} : tensor<?x?x176xf32>
    %123 = arith.addf %121, %122 : tensor<?x?x176xf32>
    %124 = arith.divf %122, %123 : tensor<?x?x176xf32>
    %125 = arith.mulf %119, %124 : tensor<?x?x176xf32>
    %126 = tfm.linear %118, %arg11 : (tensor<?x?x64xf32>, tensor<176x64xf32>) -> tensor<?x?x176xf32>
    %127 = arith.mulf %125, %126 : tensor<?x?x176xf32>
    %128 = tfm.linear %127, %arg12 : (tensor<?x?x176xf32>, tensor<64x176xf32>) -> tensor<?x?x64xf32>
    %129 = arith.addf %109, %128 : tensor<?x?x64xf32>
    return %129 : tensor<?x?x64xf32>
  }
}
