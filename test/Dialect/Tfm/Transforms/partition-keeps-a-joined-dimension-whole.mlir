// A joined dimension has another size in each value, and is never cut; the others are.
// RUN: %drover-opt %s --tfm-partition="tp=2 cp=2" --tfm-verify-distributions | FileCheck %s

// CHECK-LABEL: func.func private @body
// CHECK: tfm.concat %{{.*}} {axis = 2 : i64} : (tensor<1x8x1xf32, [[D:#tfm.dist<.*cp = S1.*>]]>, tensor<1x8x1xf32, [[D]]>) -> tensor<1x8x2xf32, [[D]]>
// CHECK: tfm.concat %{{.*}} {axis = 2 : i64} : (tensor<1x8x2xf32, [[D]]>, tensor<1x8x1xf32, [[D]]>) -> tensor<1x8x3xf32, [[D]]>
func.func private @body(%ids: tensor<1x16xi64>, %w: tensor<8x1xf32>) -> tensor<1x16x3xf32> attributes {tfm.body = "forward"} {
  %x = tfm.embedding %ids, %w : (tensor<1x16xi64>, tensor<8x1xf32>) -> tensor<1x16x1xf32>
  %0 = arith.negf %x : tensor<1x16x1xf32>
  %1 = tfm.concat %x, %0 {axis = 2 : i64} : (tensor<1x16x1xf32>, tensor<1x16x1xf32>) -> tensor<1x16x2xf32>
  %2 = tfm.concat %1, %x {axis = 2 : i64} : (tensor<1x16x2xf32>, tensor<1x16x1xf32>) -> tensor<1x16x3xf32>
  return %2 : tensor<1x16x3xf32>
}
func.func @microbatch(%ids: tensor<1x16xi64> {tfm.input = "input_ids"}, %w: tensor<8x1xf32> {tfm.parameter = "w"}) -> (tensor<1x16x3xf32> {tfm.output = "y"}) attributes {tfm.microbatch} {
  %0 = call @body(%ids, %w) : (tensor<1x16xi64>, tensor<8x1xf32>) -> tensor<1x16x3xf32>
  return %0 : tensor<1x16x3xf32>
}
