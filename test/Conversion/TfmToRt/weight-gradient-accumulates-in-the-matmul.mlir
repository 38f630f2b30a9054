// RUN: %drover-opt %s --convert-tfm-to-rt | FileCheck %s

// CHECK-LABEL: func.func private @body(
// CHECK-SAME: %{{.*}}: memref<64xf32>, %{{.*}}: memref<48xf32>, %[[ACC:.*]]: memref<48xf32>, %{{.*}}: memref<0xi8>, %{{.*}}: !rt.call)
// CHECK: %[[C:.*]] = memref.reinterpret_cast %[[ACC]]
// CHECK: rt.matmul %{{.*}} into %[[C]] accumulate {trans_lhs}
// CHECK-NOT: rt.launch
func.func private @body(%x: tensor<2x4x8xf32>, %dy: tensor<2x4x6xf32>, %acc: tensor<6x8xf32>) -> (tensor<6x8xf32> {tfm.inplace = 2 : i64}) attributes {tfm.body = "backward"} {
  %0 = tfm.linear_weight_grad %x, %dy : (tensor<2x4x8xf32>, tensor<2x4x6xf32>) -> tensor<6x8xf32>
  %1 = tfm.accumulate %acc, %0 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %1 : tensor<6x8xf32>
}
