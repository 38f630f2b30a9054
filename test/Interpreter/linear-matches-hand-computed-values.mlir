// RUN: drover-interpret %s --input=x=arange | FileCheck %s
// RUN: drover-interpret %s --input=x=arange --exact | FileCheck %s

// CHECK: plain 1x2x2xf32: 8 26 8 26
// CHECK: in_out 1x2x2xf32: 10 13 10 13
// CHECK: weight_grad 2x3xf32: 0 16 32 0 52 104
func.func @model(%x: tensor<1x2x3xf32> {tfm.input = "x"})
    -> (tensor<1x2x2xf32> {tfm.output = "plain"}, tensor<1x2x2xf32> {tfm.output = "in_out"},
        tensor<2x3xf32> {tfm.output = "weight_grad"}) {
  %w = arith.constant dense<[[1.0, 2.0, 3.0], [7.0, 8.0, 9.0]]> : tensor<2x3xf32>
  %v = arith.constant dense<[[1.0, 1.0], [2.0, 3.0], [4.0, 5.0]]> : tensor<3x2xf32>
  %0 = tfm.linear %x, %w : (tensor<1x2x3xf32>, tensor<2x3xf32>) -> tensor<1x2x2xf32>
  %1 = tfm.linear %x, %v in_out : (tensor<1x2x3xf32>, tensor<3x2xf32>) -> tensor<1x2x2xf32>
  %2 = tfm.linear_weight_grad %x, %0 : (tensor<1x2x3xf32>, tensor<1x2x2xf32>) -> tensor<2x3xf32>
  return %0, %1, %2 : tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<2x3xf32>
}
