// RUN: %drover-opt %s --split-input-file --tfm-apply-compute-dtype=dtype=bf16 | FileCheck %s

// An input keeps its type and is cast where it meets the stream; a mask may have any type.
// CHECK-LABEL: func.func @model(
// CHECK-SAME: %[[X:.*]]: tensor<1x2x8xf32> {tfm.input = "x"}, %[[MASK:.*]]: tensor<1x1x2x2xf32>
func.func @model(%x: tensor<1x2x8xf32> {tfm.input = "x"}, %mask: tensor<1x1x2x2xf32> {tfm.input = "mask"},
                 %w: tensor<8x8xf32> {tfm.parameter = "w"}) -> (tensor<1x2x8xf32> {tfm.output = "y"}) {
  // CHECK: %[[CAST:.*]] = arith.truncf %[[X]] : tensor<1x2x8xf32> to tensor<1x2x8xbf16>
  // CHECK: tfm.linear %[[CAST]], %{{.*}} -> tensor<1x2x8xbf16>
  %q = tfm.linear %x, %w : (tensor<1x2x8xf32>, tensor<8x8xf32>) -> tensor<1x2x8xf32>
  // A constant takes the type it is used with.
  // CHECK: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : tensor<1x2x8xbf16>
  // CHECK: arith.mulf %{{.*}}, %[[TWO]] : tensor<1x2x8xbf16>
  %two = arith.constant dense<2.0> : tensor<1x2x8xf32>
  %k = arith.mulf %q, %two : tensor<1x2x8xf32>
  // CHECK: %[[O:.*]], %{{.*}} = tfm.attention {{.*}} mask %[[MASK]] {{.*}} -> (tensor<1x2x8xbf16>, tensor<1x2x2xf32>)
  %o:2 = tfm.attention %q, %k, %q mask %mask {num_heads = 2 : i64, num_kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x1x2x2xf32>) -> (tensor<1x2x8xf32>, tensor<1x2x2xf32>)
  // An output is f32.
  // CHECK: arith.extf %[[O]]
  return %o#0 : tensor<1x2x8xf32>
}

// -----

// What is element-wise between the last product and the loss is f32; the model's own casts go.
// CHECK-LABEL: func.func @model(
func.func @model(%ids: tensor<1x2xi64> {tfm.input = "input_ids"}, %w: tensor<8x8xf16> {tfm.parameter = "w"})
    -> (tensor<1x2x8xf32> {tfm.output = "logits"}) {
  %x = tfm.embedding %ids, %w : (tensor<1x2xi64>, tensor<8x8xf16>) -> tensor<1x2x8xf16>
  // CHECK: %[[X:.*]] = tfm.embedding %{{.*}} -> tensor<1x2x8xbf16>
  // CHECK-NEXT: %[[N:.*]] = tfm.rms_norm %[[X]] {{.*}} -> tensor<1x2x8xbf16>
  // CHECK-NEXT: %[[Y:.*]] = tfm.linear %[[N]], %{{.*}} : (tensor<1x2x8xbf16>, tensor<8x8xbf16>) -> tensor<1x2x8xf32>
  // CHECK-NEXT: %[[T:.*]] = math.tanh %[[Y]] : tensor<1x2x8xf32>
  // CHECK-NEXT: return %[[T]]
  %wide = arith.extf %x : tensor<1x2x8xf16> to tensor<1x2x8xf32>
  %norm = tfm.rms_norm %wide {eps = 1.0e-5 : f64} : (tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  %n = arith.truncf %norm : tensor<1x2x8xf32> to tensor<1x2x8xf16>
  %y = tfm.linear %n, %w : (tensor<1x2x8xf16>, tensor<8x8xf16>) -> tensor<1x2x8xf16>
  %z = arith.extf %y : tensor<1x2x8xf16> to tensor<1x2x8xf32>
  %t = math.tanh %z : tensor<1x2x8xf32>
  return %t : tensor<1x2x8xf32>
}
