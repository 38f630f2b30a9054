// RUN: %drover-opt --tfm-raise-positions --tfm-simplify-views --canonicalize --split-input-file %s | FileCheck %s

// OPT's positions over a mask of ones: a running sum, less one, plus two.
// CHECK-LABEL: @running_sum(
// CHECK-SAME: %[[T:[^:]*]]: tensor<64x4xf32>
// CHECK: %[[P:.*]] = tfm.iota {axis = 1 : i64, shape = #{{.*}}, start = 2 : i64} : tensor<1x?xi64>
// CHECK-NEXT: %[[E:.*]] = tfm.embedding %[[P]], %[[T]]
// CHECK-NEXT: %[[B:.*]] = tfm.broadcast %[[E]]
// CHECK-NEXT: return %[[B]]
#ids = affine_map<()[s0, s1] -> (s0, s1)>
#square = affine_map<()[s0, s1] -> (s0, s1, s1)>
#row = affine_map<()[s0, s1] -> (1, s1, 1)>
#column = affine_map<()[s0, s1] -> (1, 1, s1)>
module attributes {tfm.symbols = ["batch", "seq"]} {
  func.func @running_sum(%t: tensor<64x4xf32> {tfm.parameter = "t"}) -> tensor<?x?x4xf32> {
    %i = tfm.iota {axis = 1 : i64, shape = #row} : tensor<1x?x1xi64>
    %j = tfm.iota {axis = 2 : i64, shape = #column} : tensor<1x1x?xi64>
    %ib = tfm.broadcast %i {shape = #square} : tensor<1x?x1xi64> -> tensor<?x?x?xi64>
    %jb = tfm.broadcast %j {shape = #square} : tensor<1x1x?xi64> -> tensor<?x?x?xi64>
    %le = arith.cmpi sle, %jb, %ib : tensor<?x?x?xi64>
    %ones = arith.extui %le : tensor<?x?x?xi1> to tensor<?x?x?xi64>
    %sum = tfm.reduce %ones {axes = array<i64: 2>, kind = 0 : i32} : tensor<?x?x?xi64> -> tensor<?x?xi64>
    %one = tfm.fill {value = 1 : i64, shape = #ids} : tensor<?x?xi64>
    %p = arith.addi %sum, %one : tensor<?x?xi64>
    %e = tfm.embedding %p, %t : (tensor<?x?xi64>, tensor<64x4xf32>) -> tensor<?x?x4xf32>
    return %e : tensor<?x?x4xf32>
  }
}

// -----

// Squares do not count.
// CHECK-LABEL: @squares(
// CHECK: arith.muli
func.func @squares(%t: tensor<64x4xf32> {tfm.parameter = "t"}) -> tensor<1x4x4xf32> {
  %i = tfm.iota {axis = 1 : i64} : tensor<1x4xi64>
  %s = arith.muli %i, %i : tensor<1x4xi64>
  %e = tfm.embedding %s, %t : (tensor<1x4xi64>, tensor<64x4xf32>) -> tensor<1x4x4xf32>
  return %e : tensor<1x4x4xf32>
}
