// RUN: %drover-opt %s --allow-unregistered-dialect --canonicalize | FileCheck %s

// In a graph region, as a module's is, ops may use themselves and each other: the folders end.
// CHECK: %[[A:.*]] = tfm.reshape %[[A]]
%0 = tfm.reshape %0 : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK: %[[B:.*]] = tfm.transpose %[[B]]
%1 = tfm.transpose %1 {permutation = array<i64: 1, 0>} : tensor<3x3xf32> -> tensor<3x3xf32>
// CHECK: %[[C:.*]] = tfm.broadcast %[[C]]
%2 = tfm.broadcast %2 : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK: tfm.reshape
%3 = tfm.reshape %4 : tensor<2x3xf32> -> tensor<3x2xf32>
%4 = tfm.reshape %3 : tensor<3x2xf32> -> tensor<2x3xf32>
// CHECK: tfm.transpose
%5 = tfm.transpose %6 {permutation = array<i64: 1, 0>} : tensor<3x3xf32> -> tensor<3x3xf32>
%6 = tfm.transpose %7 {permutation = array<i64: 1, 0>} : tensor<3x3xf32> -> tensor<3x3xf32>
%7 = tfm.transpose %5 {permutation = array<i64: 1, 0>} : tensor<3x3xf32> -> tensor<3x3xf32>
// CHECK: tfm.attention {{.*}} key_mask
%8 = tfm.broadcast %9 : tensor<1x4xi64> -> tensor<1x4xi64>
%9 = tfm.broadcast %8 : tensor<1x4xi64> -> tensor<1x4xi64>
%q = "test.q"() : () -> tensor<1x4x8xf32>
%10:2 = tfm.attention %q, %q, %q key_mask %9 {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 1.0 : f64} : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4xi64>) -> (tensor<1x4x8xf32>, tensor<1x1x4xf32>)
// CHECK: %[[S:.*]] = tfm.slice %[[S]]
%11 = tfm.slice %11 {offsets = array<i64: 0>, strides = array<i64: 1>} : tensor<2xf32> -> tensor<2xf32>
// CHECK: %[[P:.*]] = tfm.pad %[[P]]
%12 = tfm.pad %12 {offsets = array<i64: 0>, strides = array<i64: 1>} : tensor<2xf32> -> tensor<2xf32>
// CHECK: %[[J:.*]] = tfm.concat %[[J]]
%13 = tfm.concat %13 {axis = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
// CHECK: %[[R:.*]] = tfm.reduce %[[R]]
%14 = tfm.reduce %14 {axes = array<i64>, kind = 0 : i32} : tensor<2xf32> -> tensor<2xf32>
"test.use"(%0, %1, %2, %3, %5, %10#0, %11, %12, %13, %14) : (tensor<2x3xf32>, tensor<3x3xf32>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<3x3xf32>, tensor<1x4x8xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> ()
