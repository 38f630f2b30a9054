// RUN: %drover-opt %s --convert-tfm-to-rt | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: %drover-opt %s --convert-tfm-to-rt=tp-overlap=none | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: %drover-opt %s --convert-tfm-to-rt=tp-overlap=bulk | FileCheck %s --check-prefixes=CHECK,BULK
// RUN: not %drover-opt %s --convert-tfm-to-rt=tp-overlap=ring 2>&1 | FileCheck %s --check-prefix=OTHER

// OTHER: error: tp-overlap is none or bulk, not 'ring'

// Backward of a column-parallel linear: its input is gathered again beside the matmul of the input gradient, whose sum
// is scattered beside the matmul of the weight gradient.
module attributes {tfm.grid = {tp = 2, cp = 1, dp = 1}} {
shard.grid @grid(shape = 2x1x1)
// CHECK-LABEL: func.func private @backward(
// NONE: rt.matmul
// NONE: rt.collective_start %{{.*}} all_gather tp slot 0
// NONE-NEXT: rt.collective_wait %{{.*}} slot 0
// NONE: rt.matmul
// NONE: rt.collective_start %{{.*}} reduce_scatter tp slot 0
// NONE-NEXT: rt.collective_wait %{{.*}} slot 0
// NONE-NOT: rt.matmul
// NONE: return
// BULK-NOT: rt.matmul
// BULK: rt.collective_start %{{.*}} all_gather tp slot 0
// BULK-NOT: rt.collective_wait
// BULK: rt.matmul
// BULK-NOT: rt.matmul
// BULK: rt.collective_start %{{.*}} reduce_scatter tp slot [[SCATTER:[0-9]+]]
// BULK: rt.collective_wait %{{.*}} slot 0
// BULK-NOT: rt.collective_wait
// BULK: rt.matmul
// BULK: rt.collective_wait %{{.*}} slot [[SCATTER]]
// BULK: return
func.func private @backward(%x: tensor<1x4x8xf32>, %dy: tensor<1x8x4xf32>, %w: tensor<4x8xf32>, %dw: tensor<4x8xf32>) -> (tensor<1x4x8xf32>, tensor<4x8xf32> {tfm.inplace = 3 : i64}) attributes {tfm.body = "backward"} {
  %0 = tfm.linear %dy, %w in_out : (tensor<1x8x4xf32>, tensor<4x8xf32>) -> tensor<1x8x8xf32>
  %g = shard.all_gather %x on @grid grid_axes = [0] gather_axis = 1 : tensor<1x4x8xf32> -> tensor<1x8x8xf32>
  %1 = tfm.linear_weight_grad %g, %dy : (tensor<1x8x8xf32>, tensor<1x8x4xf32>) -> tensor<4x8xf32>
  %2 = tfm.accumulate %dw, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = shard.reduce_scatter %0 on @grid grid_axes = [0] scatter_axis = 1 {tfm.reduction = 0 : i64} : tensor<1x8x8xf32> -> tensor<1x4x8xf32>
  return %3, %2 : tensor<1x4x8xf32>, tensor<4x8xf32>
}

// What is gathered is rebuilt first, and two products are summed: both move up before a matmul that comes earlier.
// CHECK-LABEL: func.func private @rebuilt(
// BULK: rt.launch
// BULK: rt.collective_start %{{.*}} all_gather tp slot 0
// BULK: rt.matmul
// BULK: rt.matmul
// BULK: rt.collective_start %{{.*}} reduce_scatter tp slot 1
// BULK: rt.collective_wait %{{.*}} slot 0
// BULK: rt.matmul
// BULK: rt.collective_wait %{{.*}} slot 1
// BULK: rt.launch
// BULK-NOT: rt.matmul
// BULK: return
// NONE: rt.matmul
// NONE: rt.collective_start %{{.*}} all_gather tp slot 0
// NONE-NEXT: rt.collective_wait %{{.*}} slot 0
// NONE-COUNT-2: rt.matmul
// NONE: rt.collective_start %{{.*}} reduce_scatter tp slot 0
// NONE-NEXT: rt.collective_wait %{{.*}} slot 0
// NONE: return
func.func private @rebuilt(%x: tensor<1x4x8xf32>, %norm: tensor<8xf32>, %dy: tensor<1x8x4xf32>, %dz: tensor<1x8x4xf32>, %w: tensor<4x8xf32>, %v: tensor<4x8xf32>, %dw: tensor<4x8xf32>) -> (tensor<1x4x8xf32>, tensor<4x8xf32> {tfm.inplace = 6 : i64}) attributes {tfm.body = "backward"} {
  %0 = tfm.linear %dy, %w in_out : (tensor<1x8x4xf32>, tensor<4x8xf32>) -> tensor<1x8x8xf32>
  %n = tfm.rms_norm %x, %norm {eps = 1.0e-5 : f64} : (tensor<1x4x8xf32>, tensor<8xf32>) -> tensor<1x4x8xf32>
  %g = shard.all_gather %n on @grid grid_axes = [0] gather_axis = 1 : tensor<1x4x8xf32> -> tensor<1x8x8xf32>
  %1 = tfm.linear_weight_grad %g, %dy : (tensor<1x8x8xf32>, tensor<1x8x4xf32>) -> tensor<4x8xf32>
  %2 = tfm.accumulate %dw, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = tfm.linear %dz, %v in_out : (tensor<1x8x4xf32>, tensor<4x8xf32>) -> tensor<1x8x8xf32>
  %4 = arith.addf %0, %3 : tensor<1x8x8xf32>
  %5 = shard.reduce_scatter %4 on @grid grid_axes = [0] scatter_axis = 1 {tfm.reduction = 0 : i64} : tensor<1x8x8xf32> -> tensor<1x4x8xf32>
  %6 = arith.addf %5, %x : tensor<1x4x8xf32>
  return %6, %2 : tensor<1x4x8xf32>, tensor<4x8xf32>
}
}
