// RUN: %drover-opt %s --convert-tfm-to-rt=tp-overlap=bulk | FileCheck %s

// The gathers start as early as their operands allow, in their order, and are waited for where they are read; the
// product of %q needs neither. What is gathered is a descriptor's [outer, local, inner].
module attributes {tfm.grid = {tp = 2, cp = 2, dp = 1}} {
// CHECK-NOT: shard.grid
shard.grid @grid(shape = 2x2x1)
// CHECK-LABEL: func.func private @body(
// CHECK-SAME: drover.collectives = [{bytes = 768 : i64, communicator = 4 : i64, dtype = f32, kind = "all_gather", reduction = -1 : i64}, {bytes = 768 : i64, communicator = 4 : i64, dtype = f32, kind = "all_gather", reduction = -1 : i64}, {bytes = 768 : i64, communicator = 1 : i64, dtype = f32, kind = "all_reduce", reduction = 7 : i64}]
func.func private @body(%x: tensor<2x8x12xf32>, %wq: tensor<12x12xf32>, %wk: tensor<6x12xf32>) -> (tensor<2x8x12xf32>, tensor<2x16x6xf32>) attributes {tfm.body = "forward"} {
  // CHECK: rt.matmul
  // CHECK: rt.collective_start %{{.*}} all_gather cp slot 0 %{{.*}} into %{{.*}} {inner = 6 : i64, local = 8 : i64, outer = 2 : i64, ranks = 2 : i64, two_chunk}
  // CHECK: rt.matmul
  // CHECK: rt.collective_start %{{.*}} all_gather cp slot 1
  // CHECK: rt.matmul
  %k = tfm.linear %x, %wk : (tensor<2x8x12xf32>, tensor<6x12xf32>) -> tensor<2x8x6xf32>
  %v = tfm.linear %x, %wk : (tensor<2x8x12xf32>, tensor<6x12xf32>) -> tensor<2x8x6xf32>
  %q = tfm.linear %x, %wq : (tensor<2x8x12xf32>, tensor<12x12xf32>) -> tensor<2x8x12xf32>
  %gk = shard.all_gather %k on @grid grid_axes = [1] gather_axis = 1 {tfm.two_chunk} : tensor<2x8x6xf32> -> tensor<2x16x6xf32>
  %gv = shard.all_gather %v on @grid grid_axes = [1] gather_axis = 1 {tfm.two_chunk} : tensor<2x8x6xf32> -> tensor<2x16x6xf32>
  // An all-reduce is in place where nobody else reads its operand.
  // CHECK: %[[IN:.*]] = memref.reinterpret_cast %[[BUFFER:.*]] to offset: [0], sizes: [2, 8, 12]
  // CHECK-NEXT: %[[OUT:.*]] = memref.reinterpret_cast %[[BUFFER]] to
  // CHECK-NEXT: rt.collective_start %{{.*}} all_reduce tp slot 2 %[[IN]] into %[[OUT]] {inner = 192 : i64, local = 1 : i64, outer = 1 : i64, ranks = 2 : i64, reduction = 7 : i32}
  // CHECK-DAG: rt.collective_wait %{{.*}} slot 0
  // CHECK-DAG: rt.collective_wait %{{.*}} slot 1
  // CHECK: rt.launch
  // CHECK: rt.collective_wait %{{.*}} slot 2
  // CHECK-NEXT: return
  %s = shard.all_reduce %q on @grid grid_axes = [0] {tfm.reduction = 7 : i64} : tensor<2x8x12xf32> -> tensor<2x8x12xf32>
  %sum = arith.addf %gk, %gv : tensor<2x16x6xf32>
  return %s, %sum : tensor<2x8x12xf32>, tensor<2x16x6xf32>
}
}
