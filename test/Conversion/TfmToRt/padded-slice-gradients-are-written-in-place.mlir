// RUN: %drover-opt %s --convert-tfm-to-rt | FileCheck %s

// The sum of the paddings is a concatenation, and its parts are computed where they belong.
// CHECK-LABEL: func.func private @body(
// CHECK: rt.matmul {{.*}} memref<8x8xf32, strided<[16, 1]>>
// CHECK: rt.matmul {{.*}} memref<8x8xf32, strided<[16, 1], offset: 8>>
// CHECK-NOT: rt.launch
func.func private @body(%a: tensor<2x4x6xf32>, %u: tensor<6x8xf32>, %v: tensor<6x8xf32>) -> tensor<2x4x16xf32> attributes {tfm.body = "backward"} {
  %0 = tfm.linear %a, %u in_out : (tensor<2x4x6xf32>, tensor<6x8xf32>) -> tensor<2x4x8xf32>
  %1 = tfm.linear %a, %v in_out : (tensor<2x4x6xf32>, tensor<6x8xf32>) -> tensor<2x4x8xf32>
  %2 = tfm.pad %0 {offsets = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : tensor<2x4x8xf32> -> tensor<2x4x16xf32>
  %3 = tfm.pad %1 {offsets = array<i64: 0, 0, 8>, strides = array<i64: 1, 1, 1>} : tensor<2x4x8xf32> -> tensor<2x4x16xf32>
  %4 = arith.addf %2, %3 : tensor<2x4x16xf32>
  return %4 : tensor<2x4x16xf32>
}
