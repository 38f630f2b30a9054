// RUN: %drover-opt %s --tfm-specialize=sizes=batch_size=2,sequence_length=8 | FileCheck %s

// CHECK-NOT: tfm.symbols
// CHECK-LABEL: func.func @model(
// CHECK-SAME: %[[IDS:.*]]: tensor<2x8xi64> {tfm.input = "input_ids"}
// CHECK-SAME: -> (tensor<2x8x8xf32> {tfm.output = "x"}, tensor<i64>, tensor<2x3x16xf32>)
// CHECK-NOT: tfm.shape
module attributes {tfm.symbols = ["batch_size", "sequence_length"]} {
  func.func @model(%ids: tensor<?x?xi64> {tfm.input = "input_ids", tfm.shape = affine_map<()[s0, s1] -> (s0, s1)>},
                   %table: tensor<32x16xf32> {tfm.parameter = "table"})
      -> (tensor<?x?x8xf32> {tfm.output = "x"}, tensor<i64>, tensor<?x?x16xf32>) {
    // CHECK: %[[X:.*]] = tfm.embedding %[[IDS]], %{{.*}} -> tensor<2x8x16xf32>
    %x = tfm.embedding %ids, %table : (tensor<?x?xi64>, tensor<32x16xf32>) -> tensor<?x?x16xf32>
    // The sizes of a map over symbols.
    // CHECK: tfm.iota {axis = 1 : i64} : tensor<1x8xi64>
    %pos = tfm.iota {axis = 1 : i64, shape = affine_map<()[s0, s1] -> (1, s1)>} : tensor<1x?xi64>
    %all = tfm.broadcast %pos {shape = affine_map<()[s0, s1] -> (s0, s1)>} : tensor<1x?xi64> -> tensor<?x?xi64>
    // Element-wise operations of arith get their operands' shape.
    // CHECK: arith.addi %{{.*}}, %{{.*}} : tensor<2x8xi64>
    %sum = arith.addi %all, %ids : tensor<?x?xi64>
    %e = tfm.embedding %sum, %table : (tensor<?x?xi64>, tensor<32x16xf32>) -> tensor<?x?x16xf32>
    // CHECK: tfm.slice %[[X]] {offsets = array<i64: 0, 0, 8>, strides = array<i64: 1, 1, 1>} : tensor<2x8x16xf32> -> tensor<2x8x8xf32>
    %half = tfm.slice %x {offsets = array<i64: 0, 0, 8>, strides = array<i64: 1, 1, 1>, shape = affine_map<()[s0, s1] -> (s0, s1, 8)>} : tensor<?x?x16xf32> -> tensor<?x?x8xf32>
    // CHECK: tfm.slice %{{.*}} {offsets = array<i64: 0, 5, 0>, strides = array<i64: 1, 1, 1>} : tensor<2x8x16xf32> -> tensor<2x3x16xf32>
    %last = tfm.slice %e {offset_map = affine_map<()[s0, s1] -> (0, s1 - 3, 0)>, offsets = array<i64: 0, -9223372036854775808, 0>, strides = array<i64: 1, 1, 1>, shape = affine_map<()[s0, s1] -> (s0, 3, 16)>} : tensor<?x?x16xf32> -> tensor<?x?x16xf32>
    // CHECK: arith.constant dense<17> : tensor<i64>
    %size = tfm.size {value = affine_map<()[s0, s1] -> (s0 * s1 + 1)>} : tensor<i64>
    return %half, %size, %last : tensor<?x?x8xf32>, tensor<i64>, tensor<?x?x16xf32>
  }
}
