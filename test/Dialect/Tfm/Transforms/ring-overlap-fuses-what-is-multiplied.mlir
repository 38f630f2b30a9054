// RUN: %drover-opt %s --tfm-verify-distributions --tfm-ring-overlap --tfm-verify-distributions | FileCheck %s

module attributes {tfm.grid = {tp = 2 : i64, cp = 2 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 2x2x1)

// The projections read one gathered input, which travels once; the weight gradient reads it whole.
// CHECK-LABEL: func.func @projections(
// CHECK-SAME: %[[X:.*]]: tensor<1x2x8xbf16, #tfm.dist<tp = S1>>, %[[Q:[^:]*]]: {{.*}}, %[[K:[^:]*]]: {{.*}})
// CHECK-NEXT: %[[R:.*]]:3 = tfm.gather_linear %[[X]], %[[Q]], %[[K]] {axes = ["tp"], dim = 1 : i64, in_out = array<i1: false, true>} : {{.*}} -> (tensor<1x4x4xbf16, #tfm.dist<tp = S2>>, tensor<1x4x2xf32, #tfm.dist<tp = S2>>, tensor<1x4x8xbf16>)
// CHECK-NEXT: tfm.linear_weight_grad %[[R]]#2, %[[R]]#0
// CHECK-NOT: all_gather
func.func @projections(%x: tensor<1x2x8xbf16, #tfm.dist<tp = S1>>, %q: tensor<4x8xbf16, #tfm.dist<tp = S0>>, %k: tensor<8x2xbf16, #tfm.dist<tp = S1>>) -> (tensor<4x8xf32, #tfm.dist<tp = S0>>, tensor<1x4x2xf32, #tfm.dist<tp = S2>>) {
  %g = shard.all_gather %x on @grid grid_axes = [0] gather_axis = 1 : tensor<1x2x8xbf16, #tfm.dist<tp = S1>> -> tensor<1x4x8xbf16>
  %0 = tfm.linear %g, %q : (tensor<1x4x8xbf16>, tensor<4x8xbf16, #tfm.dist<tp = S0>>) -> tensor<1x4x4xbf16, #tfm.dist<tp = S2>>
  %1 = tfm.linear_weight_grad %g, %0 : (tensor<1x4x8xbf16>, tensor<1x4x4xbf16, #tfm.dist<tp = S2>>) -> tensor<4x8xf32, #tfm.dist<tp = S0>>
  %2 = tfm.linear %g, %k in_out : (tensor<1x4x8xbf16>, tensor<8x2xbf16, #tfm.dist<tp = S1>>) -> tensor<1x4x2xf32, #tfm.dist<tp = S2>>
  return %1, %2 : tensor<4x8xf32, #tfm.dist<tp = S0>>, tensor<1x4x2xf32, #tfm.dist<tp = S2>>
}

// A sum of linears, rounded once: the order of the additions stays.
// CHECK-LABEL: func.func @input_gradient(
// CHECK-SAME: %[[A:.*]]: tensor<1x4x4xbf16, #tfm.dist<tp = S2>>, %[[B:[^:]*]]: {{.*}}, %[[V:[^:]*]]: {{.*}}, %[[W:[^:]*]]: {{.*}})
// CHECK-NEXT: tfm.linear_scatter %[[B]], %[[A]], %[[W]], %[[V]] {axes = ["tp"], dim = 1 : i64, in_out = array<i1: true, true>, tfm.reduction = 5 : i64} : {{.*}} -> tensor<1x2x8xbf16, #tfm.dist<tp = S1>>
// CHECK-NEXT: return
func.func @input_gradient(%a: tensor<1x4x4xbf16, #tfm.dist<tp = S2>>, %b: tensor<1x4x2xbf16, #tfm.dist<tp = S2>>, %v: tensor<4x8xbf16, #tfm.dist<tp = S0>>, %w: tensor<2x8xbf16, #tfm.dist<tp = S0>>) -> tensor<1x2x8xbf16, #tfm.dist<tp = S1>> {
  %0 = tfm.linear %a, %v in_out : (tensor<1x4x4xbf16, #tfm.dist<tp = S2>>, tensor<4x8xbf16, #tfm.dist<tp = S0>>) -> tensor<1x4x8xf32, #tfm.dist<tp = P sum bf16>>
  %1 = tfm.linear %b, %w in_out : (tensor<1x4x2xbf16, #tfm.dist<tp = S2>>, tensor<2x8xbf16, #tfm.dist<tp = S0>>) -> tensor<1x4x8xf32, #tfm.dist<tp = P sum bf16>>
  %2 = arith.addf %1, %0 : tensor<1x4x8xf32, #tfm.dist<tp = P sum bf16>>
  %3 = arith.truncf %2 : tensor<1x4x8xf32, #tfm.dist<tp = P sum bf16>> to tensor<1x4x8xbf16, #tfm.dist<tp = P sum bf16>>
  %4 = shard.reduce_scatter %3 on @grid grid_axes = [0] scatter_axis = 1 {tfm.reduction = 5 : i64} : tensor<1x4x8xbf16, #tfm.dist<tp = P sum bf16>> -> tensor<1x2x8xbf16, #tfm.dist<tp = S1>>
  return %4 : tensor<1x2x8xbf16, #tfm.dist<tp = S1>>
}

// What is gathered for a weight gradient alone, over cp, or scattered from another sum stays a collective.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: tfm.gather_linear
// CHECK-NOT: tfm.linear_scatter
// CHECK: shard.all_gather
// CHECK: shard.all_gather
// CHECK: shard.reduce_scatter
func.func @others(%x: tensor<1x2x8xf32, #tfm.dist<tp = S1>>, %dy: tensor<1x4x4xf32, #tfm.dist<tp = S2>>, %k: tensor<1x2x8xf32, #tfm.dist<cp = S1>>, %w: tensor<4x8xf32>, %p: tensor<1x4x8xf32, #tfm.dist<tp = P sum f32>>) -> (tensor<4x8xf32, #tfm.dist<tp = S0>>, tensor<1x4x4xf32>, tensor<1x2x8xf32, #tfm.dist<tp = S1>>) {
  %g = shard.all_gather %x on @grid grid_axes = [0] gather_axis = 1 : tensor<1x2x8xf32, #tfm.dist<tp = S1>> -> tensor<1x4x8xf32>
  %0 = tfm.linear_weight_grad %g, %dy : (tensor<1x4x8xf32>, tensor<1x4x4xf32, #tfm.dist<tp = S2>>) -> tensor<4x8xf32, #tfm.dist<tp = S0>>
  %h = shard.all_gather %k on @grid grid_axes = [1] gather_axis = 1 : tensor<1x2x8xf32, #tfm.dist<cp = S1>> -> tensor<1x4x8xf32>
  %1 = tfm.linear %h, %w : (tensor<1x4x8xf32>, tensor<4x8xf32>) -> tensor<1x4x4xf32>
  %2 = shard.reduce_scatter %p on @grid grid_axes = [0] scatter_axis = 1 {tfm.reduction = 6 : i64} : tensor<1x4x8xf32, #tfm.dist<tp = P sum f32>> -> tensor<1x2x8xf32, #tfm.dist<tp = S1>>
  return %0, %1, %2 : tensor<4x8xf32, #tfm.dist<tp = S0>>, tensor<1x4x4xf32>, tensor<1x2x8xf32, #tfm.dist<tp = S1>>
}
}
