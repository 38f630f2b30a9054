// RUN: %drover-opt %s | %drover-opt | FileCheck %s

// Axes in their order, whatever the order they are written in; an empty encoding stays what it is.
// CHECK-LABEL: func.func @states(
// CHECK-SAME: tensor<2x8x4xf32, #tfm.dist<tp = S2, cp = S1x2, dp = S0>>
// CHECK-SAME: tensor<2x8x4xbf16, #tfm.dist<kv = P sum bf16, replica = P sum bf16>>
// CHECK-SAME: tensor<2x8xf32, #tfm.dist<tp = P max f32, dp = S0>>
// CHECK-SAME: tensor<i64, #tfm.dist<tp = V>>
// CHECK-SAME: tensor<65x4xf32, #tfm.dist<tp = S0, layout = {0 : [257, 1, 1, 260]}>>
// CHECK-SAME: tensor<4x12xf32, #tfm.dist<tp = S1, layout = {0 : [3, 1, 1, 4] and 1 : [4, 2, 2, 4], [2, 2, 2, 4]}>>
func.func @states(
    %a: tensor<2x8x4xf32, #tfm.dist<dp = S0, cp = S1x2, tp = S2>>,
    %b: tensor<2x8x4xbf16, #tfm.dist<replica = P sum bf16, kv = P sum bf16>>,
    %c: tensor<2x8xf32, #tfm.dist<dp = S0, tp = P max f32>>,
    %d: tensor<i64, #tfm.dist<tp = V>>,
    %e: tensor<65x4xf32, #tfm.dist<layout = {0 : [257, 1, 1, 260]}, tp = S0>>,
    %f: tensor<4x12xf32, #tfm.dist<tp = S1, layout = {0 : [3, 1, 1, 4] and 1 : [4, 2, 2, 4], [2, 2, 2, 4]}>>)
    attributes {cut = #tfm.segments<[257, 1, 1, 260], [2, 8, 8, 2]>} {
  return
}
// CHECK: cut = #tfm.segments<[257, 1, 1, 260], [2, 8, 8, 2]>
