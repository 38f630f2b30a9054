// RUN: %drover-opt --canonicalize %s | FileCheck %s

// A key_mask of ones goes, one with a zero stays; equal lengths align top_left; a window of all keys goes.
// CHECK-LABEL: @attention(
// CHECK: tfm.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} {num_heads
// CHECK: tfm.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} key_mask
// CHECK: tfm.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} causal top_left {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 5.000000e-01 : f64} :
// CHECK: tfm.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} causal bottom_right {{{.*}}, window = 2 : i64} :
func.func @attention(%x: tensor<1x3x4xf32>, %y: tensor<1x5x4xf32>) -> (tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>) {
  %ones = tfm.fill {value = 1 : i64} : tensor<1x3xi64>
  %some = arith.constant dense<[[1, 1, 0]]> : tensor<1x3xi64>
  %a, %l0 = tfm.attention %x, %x, %x key_mask %ones {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 0.5 : f64} : (tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3xi64>) -> (tensor<1x3x4xf32>, tensor<1x1x3xf32>)
  %b, %l1 = tfm.attention %x, %x, %x key_mask %some {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 0.5 : f64} : (tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3xi64>) -> (tensor<1x3x4xf32>, tensor<1x1x3xf32>)
  %c, %l2 = tfm.attention %x, %x, %x causal bottom_right {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 0.5 : f64, window = 3 : i64} : (tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>) -> (tensor<1x3x4xf32>, tensor<1x1x3xf32>)
  %d, %l3 = tfm.attention %x, %y, %y causal bottom_right {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 0.5 : f64, window = 2 : i64} : (tensor<1x3x4xf32>, tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> (tensor<1x3x4xf32>, tensor<1x1x3xf32>)
  return %a, %b, %c, %d : tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>
}
