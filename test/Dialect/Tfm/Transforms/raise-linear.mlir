// RUN: %drover-opt --tfm-raise-linear --tfm-simplify-views --canonicalize --split-input-file %s | FileCheck %s

// The parameter as it is has the contracted dimension first; transposed it has it last.
// CHECK-LABEL: @orientations(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x4x8xf32>, %[[A:[^:]*]]: tensor<8x6xf32> {{.*}}, %[[B:[^:]*]]: tensor<6x8xf32>
// CHECK: tfm.linear %[[X]], %[[A]] in_out :
// CHECK: tfm.linear %[[X]], %[[B]] :
// CHECK: tfm.linear %[[X]], %[[B]] :
func.func @orientations(%x: tensor<2x4x8xf32>, %a: tensor<8x6xf32> {tfm.parameter = "a"},
                        %b: tensor<6x8xf32> {tfm.parameter = "b"})
    -> (tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>) {
  %0 = tfm.broadcast %a : tensor<8x6xf32> -> tensor<2x8x6xf32>
  %1 = tfm.matmul %x, %0 : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %2 = tfm.transpose %b {permutation = array<i64: 1, 0>} : tensor<6x8xf32> -> tensor<8x6xf32>
  %3 = tfm.broadcast %2 : tensor<8x6xf32> -> tensor<2x8x6xf32>
  %4 = tfm.matmul %x, %3 : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %5 = tfm.broadcast %b : tensor<6x8xf32> -> tensor<2x6x8xf32>
  %6 = tfm.matmul %x, %5 {transpose_rhs} : (tensor<2x4x8xf32>, tensor<2x6x8xf32>) -> tensor<2x4x6xf32>
  return %1, %4, %6 : tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>
}

// -----

// GPT-2's Gemm works on flattened rows: they stay [B, S, H], the residual add included.
// CHECK-LABEL: @flattened(
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x?x8xf32>
// CHECK: %[[L:.*]] = tfm.linear %[[X]], %{{.*}} in_out : (tensor<?x?x8xf32>, tensor<8x8xf32>) -> tensor<?x?x8xf32>
// CHECK-NEXT: %[[B:.*]] = tfm.bias_add %[[L]], %{{.*}} : (tensor<?x?x8xf32>, tensor<8xf32>) -> tensor<?x?x8xf32>
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[X]], %[[B]] : tensor<?x?x8xf32>
// CHECK-NEXT: return %[[S]]
module attributes {tfm.symbols = ["batch", "seq"]} {
  func.func @flattened(%x: tensor<?x?x8xf32> {tfm.shape = affine_map<()[s0, s1] -> (s0, s1, 8)>},
                       %w: tensor<8x8xf32> {tfm.parameter = "w"}, %b: tensor<8xf32> {tfm.parameter = "b"})
      -> tensor<?x?x8xf32> {
    %0 = tfm.reshape %x {shape = affine_map<()[s0, s1] -> (s0 * s1, 8)>} : tensor<?x?x8xf32> -> tensor<?x8xf32>
    %1 = tfm.matmul %0, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %2 = tfm.broadcast %b {shape = affine_map<()[s0, s1] -> (s0 * s1, 8)>} : tensor<8xf32> -> tensor<?x8xf32>
    %3 = arith.addf %2, %1 : tensor<?x8xf32>
    %4 = arith.addf %0, %3 : tensor<?x8xf32>
    %5 = tfm.reshape %4 {shape = affine_map<()[s0, s1] -> (s0, s1, 8)>} : tensor<?x8xf32> -> tensor<?x?x8xf32>
    return %5 : tensor<?x?x8xf32>
  }
}

// -----

// CHECK-LABEL: @embedding(
// CHECK-SAME: %[[I:[^:]*]]: tensor<2x4xi64>, %[[T:[^:]*]]: tensor<16x8xf32>
// CHECK: tfm.embedding %[[I]], %[[T]]
func.func @embedding(%ids: tensor<2x4xi64>, %table: tensor<16x8xf32> {tfm.parameter = "t"}) -> tensor<2x4x8xf32> {
  %0 = tfm.gather %table, %ids {axis = 0 : i64} : (tensor<16x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}

// -----

// Without a parameter it is no linear.
// CHECK-LABEL: @no_parameter(
// CHECK: tfm.matmul
func.func @no_parameter(%x: tensor<4x8xf32>, %y: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %0 = tfm.matmul %x, %y : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
