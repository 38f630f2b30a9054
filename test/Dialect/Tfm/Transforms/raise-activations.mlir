// RUN: %drover-opt --tfm-raise-activations --split-input-file %s | FileCheck %s

// x * 0.5 * (1 + erf(x / sqrt 2)).
// CHECK-LABEL: @gelu_erf(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8xf32>
// CHECK: tfm.gelu %[[X]] {kind = 0 : i32}
func.func @gelu_erf(%x: tensor<8xf32>) -> tensor<8xf32> {
  %half = arith.constant dense<0.5> : tensor<8xf32>
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %root = arith.constant dense<1.41421354> : tensor<8xf32>
  %0 = arith.divf %x, %root : tensor<8xf32>
  %1 = math.erf %0 : tensor<8xf32>
  %2 = arith.addf %1, %one : tensor<8xf32>
  %3 = arith.mulf %x, %2 : tensor<8xf32>
  %4 = arith.mulf %3, %half : tensor<8xf32>
  return %4 : tensor<8xf32>
}

// -----

// (0.5 * x) * (1 + erf(0.7071 * x)) with the products turned round.
// CHECK-LABEL: @gelu_erf_other_order(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8xf32>
// CHECK: tfm.gelu %[[X]] {kind = 0 : i32}
func.func @gelu_erf_other_order(%x: tensor<8xf32>) -> tensor<8xf32> {
  %half = arith.constant dense<0.5> : tensor<8xf32>
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %root = arith.constant dense<0.707106769> : tensor<8xf32>
  %0 = arith.mulf %root, %x : tensor<8xf32>
  %1 = math.erf %0 : tensor<8xf32>
  %2 = arith.addf %one, %1 : tensor<8xf32>
  %3 = arith.mulf %half, %x : tensor<8xf32>
  %4 = arith.mulf %2, %3 : tensor<8xf32>
  return %4 : tensor<8xf32>
}

// -----

// The tanh form with x^3 as products.
// CHECK-LABEL: @gelu_tanh(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8xf32>
// CHECK: tfm.gelu %[[X]] {kind = 1 : i32}
func.func @gelu_tanh(%x: tensor<8xf32>) -> tensor<8xf32> {
  %half = arith.constant dense<0.5> : tensor<8xf32>
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %c = arith.constant dense<4.471500e-02> : tensor<8xf32>
  %s = arith.constant dense<0.797884583> : tensor<8xf32>
  %0 = arith.mulf %x, %x : tensor<8xf32>
  %1 = arith.mulf %x, %0 : tensor<8xf32>
  %2 = arith.mulf %1, %c : tensor<8xf32>
  %3 = arith.addf %x, %2 : tensor<8xf32>
  %4 = arith.mulf %3, %s : tensor<8xf32>
  %5 = math.tanh %4 : tensor<8xf32>
  %6 = arith.addf %5, %one : tensor<8xf32>
  %7 = arith.mulf %x, %half : tensor<8xf32>
  %8 = arith.mulf %7, %6 : tensor<8xf32>
  return %8 : tensor<8xf32>
}

// -----

// The tanh form as x * s * (1 + c * x^2), of an x that is a product itself.
// CHECK-LABEL: @gelu_tanh_factored(
// CHECK: %[[X:.*]] = arith.mulf
// CHECK: tfm.gelu %[[X]] {kind = 1 : i32}
func.func @gelu_tanh_factored(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %half = arith.constant dense<0.5> : tensor<8xf32>
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %two = arith.constant dense<2.0> : tensor<8xf32>
  %c = arith.constant dense<4.471500e-02> : tensor<8xf32>
  %s = arith.constant dense<0.797884583> : tensor<8xf32>
  %x = arith.mulf %a, %b : tensor<8xf32>
  %0 = math.powf %x, %two : tensor<8xf32>
  %1 = arith.mulf %0, %c : tensor<8xf32>
  %2 = arith.addf %one, %1 : tensor<8xf32>
  %3 = arith.mulf %x, %s : tensor<8xf32>
  %4 = arith.mulf %3, %2 : tensor<8xf32>
  %5 = math.tanh %4 : tensor<8xf32>
  %6 = arith.addf %5, %one : tensor<8xf32>
  %7 = arith.mulf %6, %half : tensor<8xf32>
  %8 = arith.mulf %x, %7 : tensor<8xf32>
  return %8 : tensor<8xf32>
}

// -----

// CHECK-LABEL: @swiglu(
// CHECK-SAME: %[[G:[^:]*]]: tensor<8xf32>, %[[U:[^:]*]]: tensor<8xf32>
// CHECK: tfm.swiglu %[[G]], %[[U]]
func.func @swiglu(%g: tensor<8xf32>, %u: tensor<8xf32>) -> tensor<8xf32> {
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %0 = arith.negf %g : tensor<8xf32>
  %1 = math.exp %0 : tensor<8xf32>
  %2 = arith.addf %1, %one : tensor<8xf32>
  %3 = arith.divf %one, %2 : tensor<8xf32>
  %4 = arith.mulf %g, %3 : tensor<8xf32>
  %5 = arith.mulf %u, %4 : tensor<8xf32>
  return %5 : tensor<8xf32>
}

// -----

// A silu that something else reads too stays one.
// CHECK-LABEL: @silu_used_twice(
// CHECK: tfm.silu
// CHECK-NOT: tfm.swiglu
func.func @silu_used_twice(%g: tensor<8xf32>, %u: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %0 = arith.negf %g : tensor<8xf32>
  %1 = math.exp %0 : tensor<8xf32>
  %2 = arith.addf %1, %one : tensor<8xf32>
  %3 = arith.divf %g, %2 : tensor<8xf32>
  %4 = arith.mulf %3, %u : tensor<8xf32>
  return %3, %4 : tensor<8xf32>, tensor<8xf32>
}

// -----

// The quick form, x * sigmoid(1.702 x), and a wrong constant stay element-wise.
// CHECK-LABEL: @not_gelu(
// CHECK-NOT: tfm.
// CHECK: return
func.func @not_gelu(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %one = arith.constant dense<1.0> : tensor<8xf32>
  %half = arith.constant dense<0.5> : tensor<8xf32>
  %q = arith.constant dense<1.702> : tensor<8xf32>
  %0 = arith.mulf %x, %q : tensor<8xf32>
  %1 = arith.negf %0 : tensor<8xf32>
  %2 = math.exp %1 : tensor<8xf32>
  %3 = arith.addf %2, %one : tensor<8xf32>
  %4 = arith.divf %one, %3 : tensor<8xf32>
  %5 = arith.mulf %x, %4 : tensor<8xf32>
  %6 = math.erf %x : tensor<8xf32>
  %7 = arith.addf %6, %one : tensor<8xf32>
  %8 = arith.mulf %x, %7 : tensor<8xf32>
  %9 = arith.mulf %8, %half : tensor<8xf32>
  return %5, %9 : tensor<8xf32>, tensor<8xf32>
}
