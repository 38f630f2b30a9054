// RUN: %drover-opt %s --tfm-outline=report=true 2>&1 | FileCheck %s

// The second layer's branches stand in another order, and its unused operation does not count.
// CHECK: remark: outlined 2 layers into 1 body: @layer x2
func.func @model(%ids: tensor<4xi64> {tfm.input = "x"}, %table: tensor<9x8xf32> {tfm.parameter = "table"},
                 %a0: tensor<8x8xf32> {tfm.parameter = "a0"},
                 %b0: tensor<8x8xf32> {tfm.parameter = "b0"}, %a1: tensor<8x8xf32> {tfm.parameter = "a1"},
                 %b1: tensor<8x8xf32> {tfm.parameter = "b1"}) -> (tensor<4x8xf32> {tfm.output = "y"}) {
  %x = tfm.embedding %ids, %table : (tensor<4xi64>, tensor<9x8xf32>) -> tensor<4x8xf32>
  %0 = tfm.linear %x, %a0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = tfm.linear %x, %b0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %2 = arith.mulf %0, %1 : tensor<4x8xf32>
  %3 = tfm.linear %2, %b1 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %4 = tfm.linear %2, %a1 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %unused = math.tanh %4 : tensor<4x8xf32>
  %5 = arith.mulf %4, %3 : tensor<4x8xf32>
  return %5 : tensor<4x8xf32>
}
