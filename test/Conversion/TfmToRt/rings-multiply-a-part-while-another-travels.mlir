// RUN: %drover-opt %s --convert-tfm-to-rt=tp-overlap=bulk --rt-verify-collectives | FileCheck %s

// Three ranks, three steps, two shifts; a matmul a weight between the start of a shift and its wait.
module attributes {tfm.grid = {tp = 3, cp = 1, dp = 1}} {
shard.grid @grid(shape = 3x1x1)

// CHECK-LABEL: func.func private @gather(
// CHECK-SAME: drover.collectives = [{bytes = 256 : i64, communicator = 1 : i64, dtype = f32, kind = "shift", reduction = -1 : i64}, {bytes = 256 : i64, communicator = 1 : i64, dtype = f32, kind = "shift", reduction = -1 : i64}]
// CHECK: rt.collective_start %{{.*}} shift tp slot 15 %{{.*}} into %[[FIRST:.*]] {inner = 1 : i64, local = 64 : i64, outer = 1 : i64, ranks = 3 : i64}
// CHECK-COUNT-2: rt.matmul
// CHECK: rt.collective_wait %{{.*}} slot 15
// CHECK: rt.collective_start %{{.*}} shift tp slot 15 %[[FIRST]] into
// CHECK-COUNT-2: rt.matmul
// CHECK: rt.collective_wait %{{.*}} slot 15
// CHECK-NOT: rt.collective_start
// CHECK-COUNT-2: rt.matmul
// CHECK: return
func.func private @gather(%x: tensor<2x4x8xf32>, %q: tensor<6x8xf32>, %k: tensor<8x2xf32>) -> (tensor<2x12x6xf32>, tensor<2x12x2xf32>) attributes {tfm.body = "forward"} {
  %0:2 = tfm.gather_linear %x, %q, %k {axes = ["tp"], dim = 1 : i64, in_out = array<i1: false, true>} : (tensor<2x4x8xf32>, tensor<6x8xf32>, tensor<8x2xf32>) -> (tensor<2x12x6xf32>, tensor<2x12x2xf32>)
  return %0#0, %0#1 : tensor<2x12x6xf32>, tensor<2x12x2xf32>
}

// The first matmul comes before the first shift: nothing can travel yet. Sums are rounded once a rank.
// CHECK-LABEL: func.func private @scatter(
// CHECK: rt.matmul
// CHECK: rt.collective_start %{{.*}} shift tp slot 15 %[[A:.*]] into %[[B:.*]] {inner = 1 : i64, local = 48 : i64, outer = 1 : i64, ranks = 3 : i64, reduction = 4 : i32} : memref<48xbf16>, memref<48xbf16>
// CHECK-NEXT: %{{.*}} = arith
// CHECK: rt.matmul
// CHECK-NEXT: rt.collective_wait %{{.*}} slot 15
// CHECK: rt.launch
// CHECK-NEXT: rt.collective_start %{{.*}} shift tp slot 15 %[[B]] into %[[A]]
// CHECK: rt.matmul
// CHECK: rt.collective_wait %{{.*}} slot 15
// CHECK: rt.launch
// CHECK-NOT: rt.collective_start
// CHECK: return
func.func private @scatter(%x: tensor<2x12x8xbf16>, %w: tensor<6x8xbf16>) -> tensor<2x4x6xbf16> attributes {tfm.body = "forward"} {
  %0 = tfm.linear_scatter %x, %w {axes = ["tp"], dim = 1 : i64, in_out = array<i1: false>, tfm.reduction = 4 : i64} : (tensor<2x12x8xbf16>, tensor<6x8xbf16>) -> tensor<2x4x6xbf16>
  return %0 : tensor<2x4x6xbf16>
}
}
