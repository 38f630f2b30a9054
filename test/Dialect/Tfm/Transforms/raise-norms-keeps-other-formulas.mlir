// RUN: %drover-opt --tfm-raise-norms --split-input-file %s | FileCheck %s
// What looks like a norm and is none stays.

// CHECK-LABEL: @eps_outside_root
// CHECK-NOT: tfm.rms_norm
// CHECK: return
func.func @eps_outside_root(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  %eps = arith.constant dense<1.0e-6> : tensor<2x4x1xf32>
  %0 = arith.mulf %x, %x : tensor<2x4x8xf32>
  %1 = tfm.reduce %0 {axes = array<i64: 2>, keep, kind = 3 : i32} : tensor<2x4x8xf32> -> tensor<2x4x1xf32>
  %2 = math.sqrt %1 : tensor<2x4x1xf32>
  %3 = arith.addf %2, %eps : tensor<2x4x1xf32>
  %4 = tfm.broadcast %3 : tensor<2x4x1xf32> -> tensor<2x4x8xf32>
  %5 = arith.divf %x, %4 : tensor<2x4x8xf32>
  return %5 : tensor<2x4x8xf32>
}

// -----

// CHECK-LABEL: @statistics_over_rows
// CHECK-NOT: tfm.rms_norm
// CHECK: return
func.func @statistics_over_rows(%x: tensor<2x8x8xf32>) -> tensor<2x8x8xf32> {
  %eps = arith.constant dense<1.0e-6> : tensor<2x1x8xf32>
  %0 = arith.mulf %x, %x : tensor<2x8x8xf32>
  %1 = tfm.reduce %0 {axes = array<i64: 1>, keep, kind = 3 : i32} : tensor<2x8x8xf32> -> tensor<2x1x8xf32>
  %2 = arith.addf %1, %eps : tensor<2x1x8xf32>
  %3 = math.rsqrt %2 : tensor<2x1x8xf32>
  %4 = tfm.broadcast %3 : tensor<2x1x8xf32> -> tensor<2x8x8xf32>
  %5 = arith.mulf %x, %4 : tensor<2x8x8xf32>
  return %5 : tensor<2x8x8xf32>
}

// -----

// CHECK-LABEL: @sum_divided_by_another_size
// CHECK-NOT: tfm.rms_norm
// CHECK: return
func.func @sum_divided_by_another_size(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  %seventh = arith.constant dense<0.14285714> : tensor<2x4x1xf32>
  %eps = arith.constant dense<1.0e-6> : tensor<2x4x1xf32>
  %0 = arith.mulf %x, %x : tensor<2x4x8xf32>
  %1 = tfm.reduce %0 {axes = array<i64: 2>, keep, kind = 0 : i32} : tensor<2x4x8xf32> -> tensor<2x4x1xf32>
  %2 = arith.mulf %1, %seventh : tensor<2x4x1xf32>
  %3 = arith.addf %2, %eps : tensor<2x4x1xf32>
  %4 = math.rsqrt %3 : tensor<2x4x1xf32>
  %5 = tfm.broadcast %4 : tensor<2x4x1xf32> -> tensor<2x4x8xf32>
  %6 = arith.mulf %x, %5 : tensor<2x4x8xf32>
  return %6 : tensor<2x4x8xf32>
}

// -----

// CHECK-LABEL: @statistics_of_another_value
// CHECK-NOT: tfm.rms_norm
// CHECK: return
func.func @statistics_of_another_value(%x: tensor<2x4x8xf32>, %y: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  %eps = arith.constant dense<1.0e-6> : tensor<2x4x1xf32>
  %0 = arith.mulf %y, %y : tensor<2x4x8xf32>
  %1 = tfm.reduce %0 {axes = array<i64: 2>, keep, kind = 3 : i32} : tensor<2x4x8xf32> -> tensor<2x4x1xf32>
  %2 = arith.addf %1, %eps : tensor<2x4x1xf32>
  %3 = math.rsqrt %2 : tensor<2x4x1xf32>
  %4 = tfm.broadcast %3 : tensor<2x4x1xf32> -> tensor<2x4x8xf32>
  %5 = arith.mulf %x, %4 : tensor<2x4x8xf32>
  return %5 : tensor<2x4x8xf32>
}
