// RUN: %drover-opt %s --convert-tfm-to-rt | FileCheck %s

// CHECK-LABEL: func.func private @body(
// CHECK: rt.matmul %{{.*}} into %{{.*}} overwrite
// CHECK: rt.matmul %{{.*}} into %{{.*}} add
// CHECK-NOT: rt.launch
func.func private @body(%a: tensor<2x4x8xf32>, %b: tensor<2x4x6xf32>, %u: tensor<8x5xf32>, %v: tensor<6x5xf32>) -> tensor<2x4x5xf32> attributes {tfm.body = "backward"} {
  %0 = tfm.linear %a, %u in_out : (tensor<2x4x8xf32>, tensor<8x5xf32>) -> tensor<2x4x5xf32>
  %1 = tfm.linear %b, %v in_out : (tensor<2x4x6xf32>, tensor<6x5xf32>) -> tensor<2x4x5xf32>
  %2 = arith.addf %0, %1 : tensor<2x4x5xf32>
  return %2 : tensor<2x4x5xf32>
}
