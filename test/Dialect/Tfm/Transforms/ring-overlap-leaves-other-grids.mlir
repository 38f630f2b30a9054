// RUN: %drover-opt %s --tfm-ring-overlap | FileCheck %s

// A gather over an axis that tfm.grid has not is left alone; the verifier of distributions names it.
// CHECK-LABEL: func.func @of_another_grid
// CHECK-NEXT: shard.all_gather
// CHECK-NEXT: tfm.linear
module attributes {tfm.grid = {tp = 2 : i64, cp = 1 : i64, dp = 1 : i64}} {
shard.grid @grid(shape = 2x1x1x2x2)
func.func @of_another_grid(%x: tensor<1x4x8xf32>, %w: tensor<8x8xf32>) -> tensor<1x8x8xf32> {
  %0 = shard.all_gather %x on @grid grid_axes = [4] gather_axis = 1 : tensor<1x4x8xf32> -> tensor<1x8x8xf32>
  %1 = tfm.linear %0, %w : (tensor<1x8x8xf32>, tensor<8x8xf32>) -> tensor<1x8x8xf32>
  return %1 : tensor<1x8x8xf32>
}
}
