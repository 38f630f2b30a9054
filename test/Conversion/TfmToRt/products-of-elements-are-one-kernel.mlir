// Partitioning multiplies what is still to be summed over dp element by element, as matrices of one element each: a kernel
// over rows, not a batch of library calls, and one with what follows.
// RUN: %drover-opt %s --convert-tfm-to-rt | FileCheck %s
// RUN: %drover-opt %s --convert-tfm-to-rt=target=cuda | FileCheck %s

// CHECK-LABEL: func.func private @body(
// CHECK-NOT: rt.matmul
// CHECK: rt.{{(gpu_)?}}launch
// CHECK-NOT: rt.{{(gpu_)?}}launch
// CHECK: return
func.func private @body(%g: tensor<6x8xf32>, %s: tensor<6x8xf32>, %acc: tensor<6x8xf32>) -> (tensor<6x8xf32> {tfm.inplace = 2 : i64}) attributes {tfm.body = "backward"} {
  %0 = tfm.reshape %g : tensor<6x8xf32> -> tensor<6x8x1x1xf32>
  %1 = tfm.reshape %s : tensor<6x8xf32> -> tensor<6x8x1x1xf32>
  %2 = tfm.matmul %0, %1 : (tensor<6x8x1x1xf32>, tensor<6x8x1x1xf32>) -> tensor<6x8x1x1xf32>
  %3 = tfm.reshape %2 : tensor<6x8x1x1xf32> -> tensor<6x8xf32>
  %4 = tfm.accumulate %acc, %3 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %4 : tensor<6x8xf32>
}
