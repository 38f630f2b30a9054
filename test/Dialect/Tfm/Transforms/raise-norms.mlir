// RUN: %drover-opt --tfm-raise-norms --split-input-file %s | FileCheck %s

// Power, mean, sqrt and quotient; the weight on the left.
// CHECK-LABEL: @rms_by_quotient(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x4x8xf32>, %[[W:[^:]*]]: tensor<8xf32>
// CHECK: %[[Y:.*]] = tfm.rms_norm %[[X]], %[[W]] {eps = 9.9999999999999995E-7 : f64}
// CHECK: return %[[Y]]
func.func @rms_by_quotient(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>) -> tensor<2x4x8xf32> {
  %two = arith.constant dense<2.0> : tensor<2x4x8xf32>
  %eps = arith.constant dense<1.0e-6> : tensor<2x4x1xf32>
  %0 = math.powf %x, %two : tensor<2x4x8xf32>
  %1 = tfm.reduce %0 {axes = array<i64: 2>, keep, kind = 3 : i32} : tensor<2x4x8xf32> -> tensor<2x4x1xf32>
  %2 = arith.addf %1, %eps : tensor<2x4x1xf32>
  %3 = math.sqrt %2 : tensor<2x4x1xf32>
  %4 = tfm.broadcast %3 : tensor<2x4x1xf32> -> tensor<2x4x8xf32>
  %5 = arith.divf %x, %4 : tensor<2x4x8xf32>
  %6 = tfm.broadcast %w : tensor<8xf32> -> tensor<2x4x8xf32>
  %7 = arith.mulf %6, %5 : tensor<2x4x8xf32>
  return %7 : tensor<2x4x8xf32>
}

// -----

// The square as a product, the mean as a sum times 1/8 without kept dimensions, rsqrt, eps on the left;
// Gemma's 1 + w.
// CHECK-LABEL: @rms_by_rsqrt_plus_one(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x4x8xf32>, %[[W:[^:]*]]: tensor<8xf32>
// CHECK: %[[Y:.*]] = tfm.rms_norm %[[X]], %[[W]] {eps = 1.000000e-05 : f64, weight_offset = 1.000000e+00 : f64}
// CHECK: return %[[Y]]
func.func @rms_by_rsqrt_plus_one(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>) -> tensor<2x4x8xf32> {
  %eighth = arith.constant dense<0.125> : tensor<2x4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<2x4x1xf32>
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %0 = arith.mulf %x, %x : tensor<2x4x8xf32>
  %1 = tfm.reduce %0 {axes = array<i64: 2>, kind = 0 : i32} : tensor<2x4x8xf32> -> tensor<2x4xf32>
  %2 = arith.mulf %1, %eighth : tensor<2x4xf32>
  %3 = tfm.reshape %2 : tensor<2x4xf32> -> tensor<2x4x1xf32>
  %4 = arith.addf %eps, %3 : tensor<2x4x1xf32>
  %5 = math.rsqrt %4 : tensor<2x4x1xf32>
  %6 = tfm.broadcast %5 : tensor<2x4x1xf32> -> tensor<2x4x8xf32>
  %7 = arith.mulf %6, %x : tensor<2x4x8xf32>
  %8 = arith.addf %w, %one : tensor<8xf32>
  %9 = tfm.broadcast %8 : tensor<8xf32> -> tensor<2x4x8xf32>
  %10 = arith.mulf %7, %9 : tensor<2x4x8xf32>
  return %10 : tensor<2x4x8xf32>
}

// -----

// The reciprocal of the root as a quotient, over each head, within casts.
// CHECK-LABEL: @rms_by_reciprocal_of_heads(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x4x2x8xf16>
// CHECK: tfm.rms_norm %[[X]] {eps = 9.9999999999999995E-7 : f64} : (tensor<2x4x2x8xf16>) -> tensor<2x4x2x8xf16>
func.func @rms_by_reciprocal_of_heads(%x: tensor<2x4x2x8xf16>) -> tensor<2x4x2x8xf16> {
  %eps = arith.constant dense<1.0e-6> : tensor<2x4x2x1xf32>
  %one = arith.constant dense<1.0> : tensor<2x4x2x1xf32>
  %wide = arith.extf %x : tensor<2x4x2x8xf16> to tensor<2x4x2x8xf32>
  %0 = arith.mulf %wide, %wide : tensor<2x4x2x8xf32>
  %1 = tfm.reduce %0 {axes = array<i64: 3>, keep, kind = 3 : i32} : tensor<2x4x2x8xf32> -> tensor<2x4x2x1xf32>
  %2 = arith.addf %1, %eps : tensor<2x4x2x1xf32>
  %3 = math.sqrt %2 : tensor<2x4x2x1xf32>
  %4 = arith.divf %one, %3 : tensor<2x4x2x1xf32>
  %5 = tfm.broadcast %4 : tensor<2x4x2x1xf32> -> tensor<2x4x2x8xf32>
  %6 = arith.mulf %wide, %5 : tensor<2x4x2x8xf32>
  %7 = arith.truncf %6 : tensor<2x4x2x8xf32> to tensor<2x4x2x8xf16>
  return %7 : tensor<2x4x2x8xf16>
}

// -----

// The nine operations of layer norm below opset 17, the subtraction made twice.
// CHECK-LABEL: @layer_norm(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x4x8xf32>, %[[W:[^:]*]]: tensor<8xf32>, %[[B:[^:]*]]: tensor<8xf32>
// CHECK: %[[Y:.*]] = tfm.layer_norm %[[X]] weight %[[W]] bias %[[B]] {eps = 1.000000e-05 : f64}
// CHECK: return %[[Y]]
func.func @layer_norm(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x4x8xf32> {
  %eps = arith.constant dense<9.99999974E-6> : tensor<2x4x1xf32>
  %two = arith.constant dense<2.0> : tensor<2x4x8xf32>
  %0 = tfm.reduce %x {axes = array<i64: 2>, keep, kind = 3 : i32} : tensor<2x4x8xf32> -> tensor<2x4x1xf32>
  %1 = tfm.broadcast %0 : tensor<2x4x1xf32> -> tensor<2x4x8xf32>
  %2 = arith.subf %x, %1 : tensor<2x4x8xf32>
  %3 = math.powf %2, %two : tensor<2x4x8xf32>
  %4 = tfm.reduce %3 {axes = array<i64: 2>, keep, kind = 3 : i32} : tensor<2x4x8xf32> -> tensor<2x4x1xf32>
  %5 = arith.addf %4, %eps : tensor<2x4x1xf32>
  %6 = math.sqrt %5 : tensor<2x4x1xf32>
  %7 = tfm.broadcast %6 : tensor<2x4x1xf32> -> tensor<2x4x8xf32>
  %8 = arith.divf %2, %7 : tensor<2x4x8xf32>
  %9 = tfm.broadcast %w : tensor<8xf32> -> tensor<2x4x8xf32>
  %10 = arith.mulf %8, %9 : tensor<2x4x8xf32>
  %11 = tfm.broadcast %b : tensor<8xf32> -> tensor<2x4x8xf32>
  %12 = arith.addf %10, %11 : tensor<2x4x8xf32>
  return %12 : tensor<2x4x8xf32>
}

// -----

// The variance by moments, on flattened rows, as the function body of ONNX's LayerNormalization has it.
// CHECK-LABEL: @layer_norm_by_moments(
// CHECK-SAME: %[[X:[^:]*]]: tensor<6x8xf32>, %[[W:[^:]*]]: tensor<8xf32>, %[[B:[^:]*]]: tensor<8xf32>
// CHECK: %[[Y:.*]] = tfm.layer_norm %[[X]] weight %[[W]] bias %[[B]] {eps = 1.000000e-05 : f64}
// CHECK: return %[[Y]]
func.func @layer_norm_by_moments(%x: tensor<6x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<6x8xf32> {
  %eps = arith.constant dense<9.99999974E-6> : tensor<6x1xf32>
  %0 = tfm.reduce %x {axes = array<i64: 1>, keep, kind = 3 : i32} : tensor<6x8xf32> -> tensor<6x1xf32>
  %1 = arith.mulf %x, %x : tensor<6x8xf32>
  %2 = tfm.reduce %1 {axes = array<i64: 1>, keep, kind = 3 : i32} : tensor<6x8xf32> -> tensor<6x1xf32>
  %3 = arith.mulf %0, %0 : tensor<6x1xf32>
  %4 = arith.subf %2, %3 : tensor<6x1xf32>
  %5 = arith.addf %4, %eps : tensor<6x1xf32>
  %6 = math.sqrt %5 : tensor<6x1xf32>
  %7 = tfm.broadcast %0 : tensor<6x1xf32> -> tensor<6x8xf32>
  %8 = arith.subf %x, %7 : tensor<6x8xf32>
  %9 = tfm.broadcast %6 : tensor<6x1xf32> -> tensor<6x8xf32>
  %10 = arith.divf %8, %9 : tensor<6x8xf32>
  %11 = tfm.reshape %w : tensor<8xf32> -> tensor<1x8xf32>
  %12 = tfm.broadcast %11 : tensor<1x8xf32> -> tensor<6x8xf32>
  %13 = arith.mulf %10, %12 : tensor<6x8xf32>
  %14 = tfm.broadcast %b : tensor<8xf32> -> tensor<6x8xf32>
  %15 = arith.addf %13, %14 : tensor<6x8xf32>
  return %15 : tensor<6x8xf32>
}
