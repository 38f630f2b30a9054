// RUN: %drover-opt %s --pass-pipeline="builtin.module(func.func(tfm-simplify-collectives),tfm-verify-distributions)" | FileCheck %s

module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 2x1x1)

// CHECK-LABEL: func.func @gather_of_slice(
// CHECK-SAME: %[[X:[a-z0-9]+]]:
// CHECK-NEXT: return %[[X]]
func.func @gather_of_slice(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %s = shard.all_slice %x on @grid grid_axes = [0] slice_axis = 0 : tensor<4x4xf32> -> tensor<2x4xf32, #tfm.dist<tp = S0>>
  %g = shard.all_gather %s on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  return %g : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @slice_of_gather(
// CHECK-SAME: %[[X:[a-z0-9]+]]:
// CHECK-NEXT: return %[[X]]
func.func @slice_of_gather(%x: tensor<2x4xf32, #tfm.dist<tp = S0>>) -> tensor<2x4xf32, #tfm.dist<tp = S0>> {
  %g = shard.all_gather %x on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  %s = shard.all_slice %g on @grid grid_axes = [0] slice_axis = 0 : tensor<4x4xf32> -> tensor<2x4xf32, #tfm.dist<tp = S0>>
  return %s : tensor<2x4xf32, #tfm.dist<tp = S0>>
}

// Along another dimension they are no inverses.
// CHECK-LABEL: func.func @slice_along_another_dimension(
// CHECK: shard.all_gather
// CHECK: shard.all_slice
func.func @slice_along_another_dimension(%x: tensor<2x4xf32, #tfm.dist<tp = S0>>) -> tensor<4x2xf32, #tfm.dist<tp = S1>> {
  %g = shard.all_gather %x on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  %s = shard.all_slice %g on @grid grid_axes = [0] slice_axis = 1 : tensor<4x4xf32> -> tensor<4x2xf32, #tfm.dist<tp = S1>>
  return %s : tensor<4x2xf32, #tfm.dist<tp = S1>>
}

// CHECK-LABEL: func.func @slice_of_reduce(
// CHECK-NEXT: %[[Y:.*]] = shard.reduce_scatter %{{.*}} on @grid grid_axes = [0] scatter_axis = 1 {tfm.reduction = 3 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @slice_of_reduce(%x: tensor<4x4xf32, #tfm.dist<tp = P sum f32>>) -> tensor<4x2xf32, #tfm.dist<tp = S1>> {
  %r = shard.all_reduce %x on @grid grid_axes = [0] {tfm.reduction = 3 : i64} : tensor<4x4xf32, #tfm.dist<tp = P sum f32>> -> tensor<4x4xf32>
  %s = shard.all_slice %r on @grid grid_axes = [0] slice_axis = 1 : tensor<4x4xf32> -> tensor<4x2xf32, #tfm.dist<tp = S1>>
  return %s : tensor<4x2xf32, #tfm.dist<tp = S1>>
}

// CHECK-LABEL: func.func @gather_of_scatter(
// CHECK-NEXT: %[[Y:.*]] = shard.all_reduce %{{.*}} on @grid grid_axes = [0] {tfm.reduction = 4 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @gather_of_scatter(%x: tensor<4x4xf32, #tfm.dist<tp = P sum f32>>) -> tensor<4x4xf32> {
  %s = shard.reduce_scatter %x on @grid grid_axes = [0] scatter_axis = 1 {tfm.reduction = 4 : i64} : tensor<4x4xf32, #tfm.dist<tp = P sum f32>> -> tensor<4x2xf32, #tfm.dist<tp = S1>>
  %g = shard.all_gather %s on @grid grid_axes = [0] gather_axis = 1 : tensor<4x2xf32, #tfm.dist<tp = S1>> -> tensor<4x4xf32>
  return %g : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @twice(
// CHECK-NEXT: %[[Y:.*]] = shard.all_gather
// CHECK-NEXT: return %[[Y]], %[[Y]]
func.func @twice(%x: tensor<2x4xf32, #tfm.dist<tp = S0>>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %a = shard.all_gather %x on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  %b = shard.all_gather %x on @grid grid_axes = [0] gather_axis = 0 : tensor<2x4xf32, #tfm.dist<tp = S0>> -> tensor<4x4xf32>
  return %a, %b : tensor<4x4xf32>, tensor<4x4xf32>
}
}
