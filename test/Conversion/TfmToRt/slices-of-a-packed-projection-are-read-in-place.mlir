// RUN: %drover-opt %s --convert-tfm-to-rt | FileCheck %s

// CHECK-LABEL: func.func private @body(
// CHECK-DAG: memref<2x4x8xf32, strided<[96, 24, 1]>>
// CHECK-DAG: memref<2x4x8xf32, strided<[96, 24, 1], offset: 8>>
// CHECK-DAG: memref<2x4x8xf32, strided<[96, 24, 1], offset: 16>>
// CHECK: rt.attention
// CHECK-NOT: rt.launch
func.func private @body(%p: tensor<2x4x24xf32>) -> (tensor<2x4x8xf32>, tensor<2x2x4xf32>) attributes {tfm.body = "forward"} {
  %q = tfm.slice %p {offsets = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : tensor<2x4x24xf32> -> tensor<2x4x8xf32>
  %k = tfm.slice %p {offsets = array<i64: 0, 0, 8>, strides = array<i64: 1, 1, 1>} : tensor<2x4x24xf32> -> tensor<2x4x8xf32>
  %v = tfm.slice %p {offsets = array<i64: 0, 0, 16>, strides = array<i64: 1, 1, 1>} : tensor<2x4x24xf32> -> tensor<2x4x8xf32>
  %o, %l = tfm.attention %q, %k, %v causal top_left {num_heads = 2 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x2x4xf32>)
  return %o, %l : tensor<2x4x8xf32>, tensor<2x2x4xf32>
}
