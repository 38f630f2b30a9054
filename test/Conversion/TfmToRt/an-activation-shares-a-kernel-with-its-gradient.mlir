// RUN: %drover-opt %s --convert-tfm-to-rt | FileCheck %s

// The activation is wanted late, by the weight gradient: by then the kernel of its gradient can run with it.
// CHECK-LABEL: func.func private @body(
// CHECK: rt.matmul
// CHECK: rt.launch
// CHECK: rt.matmul {{.*}} accumulate
// CHECK-NOT: rt.launch
// CHECK: return
func.func private @body(%g: tensor<2x4x8xf32>, %dy: tensor<2x4x6xf32>, %w: tensor<6x8xf32>, %acc: tensor<6x8xf32>) -> (tensor<2x4x8xf32>, tensor<6x8xf32> {tfm.inplace = 3 : i64}) attributes {tfm.body = "backward"} {
  %0 = tfm.linear %dy, %w in_out : (tensor<2x4x6xf32>, tensor<6x8xf32>) -> tensor<2x4x8xf32>
  %1 = tfm.silu %g : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %2 = tfm.linear_weight_grad %1, %dy : (tensor<2x4x8xf32>, tensor<2x4x6xf32>) -> tensor<6x8xf32>
  %3 = tfm.accumulate %acc, %2 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %4 = tfm.silu_grad %g, %0 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %4, %3 : tensor<2x4x8xf32>, tensor<6x8xf32>
}
