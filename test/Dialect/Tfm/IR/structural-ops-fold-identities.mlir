// RUN: %drover-opt %s --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @identities
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>)
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[X]]
func.func @identities(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = tfm.reshape %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %1 = tfm.transpose %x {permutation = array<i64: 0, 1>} : tensor<2x3xf32> -> tensor<2x3xf32>
  %2 = tfm.broadcast %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %3 = tfm.slice %x {offsets = array<i64: 0, 0>, strides = array<i64: 1, 1>} : tensor<2x3xf32> -> tensor<2x3xf32>
  %4 = tfm.pad %x {offsets = array<i64: 0, 0>, strides = array<i64: 1, 1>} : tensor<2x3xf32> -> tensor<2x3xf32>
  %5 = tfm.concat %x {axis = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %6 = tfm.reduce %x {axes = array<i64>, kind = 0 : i32} : tensor<2x3xf32> -> tensor<2x3xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @compositions
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>)
// CHECK-DAG: %[[R:.*]] = tfm.reshape %[[X]] : tensor<2x3x4xf32> -> tensor<4x6xf32>
// CHECK-DAG: %[[T:.*]] = tfm.transpose %[[X]] {permutation = array<i64: 1, 0, 2>} : tensor<2x3x4xf32> -> tensor<3x2x4xf32>
// CHECK: return %[[R]], %[[T]], %[[X]]
func.func @compositions(%x: tensor<2x3x4xf32>) -> (tensor<4x6xf32>, tensor<3x2x4xf32>, tensor<2x3x4xf32>) {
  %0 = tfm.reshape %x : tensor<2x3x4xf32> -> tensor<24xf32>
  %1 = tfm.reshape %0 : tensor<24xf32> -> tensor<4x6xf32>
  %2 = tfm.transpose %x {permutation = array<i64: 2, 0, 1>} : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  %3 = tfm.transpose %2 {permutation = array<i64: 2, 1, 0>} : tensor<4x2x3xf32> -> tensor<3x2x4xf32>
  %4 = tfm.transpose %2 {permutation = array<i64: 1, 2, 0>} : tensor<4x2x3xf32> -> tensor<2x3x4xf32>
  return %1, %3, %4 : tensor<4x6xf32>, tensor<3x2x4xf32>, tensor<2x3x4xf32>
}

// -----

// Types that say less about sizes stay.
// CHECK-LABEL: func.func @refinements_stay
// CHECK: tfm.transpose
func.func @refinements_stay(%x: tensor<?x3xf32>) -> tensor<2x3xf32> {
  %0 = tfm.transpose %x {permutation = array<i64: 0, 1>} : tensor<?x3xf32> -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @sizes
// CHECK-DAG: arith.constant dense<12> : tensor<i64>
// CHECK-DAG: arith.constant dense<3.000000e+00> : tensor<f32>
// CHECK: tfm.size {{.*}} tensor<i32>
func.func @sizes() -> (tensor<i64>, tensor<f32>, tensor<i32>) {
  %0 = tfm.size {value = affine_map<() -> (12)>} : tensor<i64>
  %1 = tfm.size {value = affine_map<() -> (3)>} : tensor<f32>
  %2 = tfm.size {value = affine_map<() -> (4294967296)>} : tensor<i32>
  return %0, %1, %2 : tensor<i64>, tensor<f32>, tensor<i32>
}
