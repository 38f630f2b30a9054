// RUN: %drover-opt --tfm-raise-attention --tfm-simplify-views --canonicalize --split-input-file %s | FileCheck %s

// Scores [B, heads, S, T]; the scale split as a root on query and key; kv heads repeated twice in a row; a
// guard against NaN behind the softmax.
// CHECK-LABEL: @grouped(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x5x16xf32>, %[[K:[^:]*]]: tensor<2x5x8xf32>, %[[V:[^:]*]]: tensor<2x5x8xf32>
// CHECK-NEXT: %[[O:.*]], %{{.*}} = tfm.attention %[[Q]], %[[K]], %[[V]] {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 5.000000e-01 : f64}
// CHECK-NEXT: return %[[O]]
func.func @grouped(%q: tensor<2x5x16xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x8xf32>) -> tensor<2x5x16xf32> {
  %root = arith.constant dense<0.707106769> : tensor<2x4x5x4xf32>
  %rootT = arith.constant dense<0.707106769> : tensor<2x4x4x5xf32>
  %zero = arith.constant dense<0.0> : tensor<2x4x5x5xf32>
  %q4 = tfm.reshape %q : tensor<2x5x16xf32> -> tensor<2x5x4x4xf32>
  %qt = tfm.transpose %q4 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x4x4xf32> -> tensor<2x4x5x4xf32>
  %k4 = tfm.reshape %k : tensor<2x5x8xf32> -> tensor<2x5x2x4xf32>
  %kt = tfm.transpose %k4 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x2x4xf32> -> tensor<2x2x5x4xf32>
  %k5 = tfm.reshape %kt : tensor<2x2x5x4xf32> -> tensor<2x2x1x5x4xf32>
  %kb = tfm.broadcast %k5 : tensor<2x2x1x5x4xf32> -> tensor<2x2x2x5x4xf32>
  %kr = tfm.reshape %kb : tensor<2x2x2x5x4xf32> -> tensor<2x4x5x4xf32>
  %kT = tfm.transpose %kr {permutation = array<i64: 0, 1, 3, 2>} : tensor<2x4x5x4xf32> -> tensor<2x4x4x5xf32>
  %v4 = tfm.reshape %v : tensor<2x5x8xf32> -> tensor<2x5x2x4xf32>
  %vt = tfm.transpose %v4 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x2x4xf32> -> tensor<2x2x5x4xf32>
  %v5 = tfm.reshape %vt : tensor<2x2x5x4xf32> -> tensor<2x2x1x5x4xf32>
  %vb = tfm.broadcast %v5 : tensor<2x2x1x5x4xf32> -> tensor<2x2x2x5x4xf32>
  %vr = tfm.reshape %vb : tensor<2x2x2x5x4xf32> -> tensor<2x4x5x4xf32>
  %qs = arith.mulf %qt, %root : tensor<2x4x5x4xf32>
  %ks = arith.mulf %kT, %rootT : tensor<2x4x4x5xf32>
  %s = tfm.matmul %qs, %ks : (tensor<2x4x5x4xf32>, tensor<2x4x4x5xf32>) -> tensor<2x4x5x5xf32>
  %p = tfm.softmax %s {axis = 3 : i64} : tensor<2x4x5x5xf32> -> tensor<2x4x5x5xf32>
  %nan = arith.cmpf uno, %p, %p : tensor<2x4x5x5xf32>
  %g = arith.select %nan, %zero, %p : tensor<2x4x5x5xi1>, tensor<2x4x5x5xf32>
  %o = tfm.matmul %g, %vr : (tensor<2x4x5x5xf32>, tensor<2x4x5x4xf32>) -> tensor<2x4x5x4xf32>
  %ot = tfm.transpose %o {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x4x5x4xf32> -> tensor<2x5x4x4xf32>
  %r = tfm.reshape %ot : tensor<2x5x4x4xf32> -> tensor<2x5x16xf32>
  return %r : tensor<2x5x16xf32>
}

// -----

// Heads that are tiled (0, 1, 0, 1) are not grouped ones (0, 0, 1, 1).
// CHECK-LABEL: @tiled(
// CHECK: tfm.broadcast
// CHECK: tfm.attention {{.*}} {num_heads = 4 : i64, num_kv_heads = 4 : i64,
func.func @tiled(%q: tensor<2x5x16xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x8xf32>) -> tensor<2x5x16xf32> {
  %q4 = tfm.reshape %q : tensor<2x5x16xf32> -> tensor<2x5x4x4xf32>
  %qt = tfm.transpose %q4 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x4x4xf32> -> tensor<2x4x5x4xf32>
  %k4 = tfm.reshape %k : tensor<2x5x8xf32> -> tensor<2x5x2x4xf32>
  %kt = tfm.transpose %k4 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x2x4xf32> -> tensor<2x2x5x4xf32>
  %k5 = tfm.reshape %kt : tensor<2x2x5x4xf32> -> tensor<2x1x2x5x4xf32>
  %kb = tfm.broadcast %k5 : tensor<2x1x2x5x4xf32> -> tensor<2x2x2x5x4xf32>
  %kr = tfm.reshape %kb : tensor<2x2x2x5x4xf32> -> tensor<2x4x5x4xf32>
  %v4 = tfm.reshape %v : tensor<2x5x8xf32> -> tensor<2x5x2x4xf32>
  %vt = tfm.transpose %v4 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x2x4xf32> -> tensor<2x2x5x4xf32>
  %v5 = tfm.reshape %vt : tensor<2x2x5x4xf32> -> tensor<2x1x2x5x4xf32>
  %vb = tfm.broadcast %v5 : tensor<2x1x2x5x4xf32> -> tensor<2x2x2x5x4xf32>
  %vr = tfm.reshape %vb : tensor<2x2x2x5x4xf32> -> tensor<2x4x5x4xf32>
  %s = tfm.matmul %qt, %kr {transpose_rhs} : (tensor<2x4x5x4xf32>, tensor<2x4x5x4xf32>) -> tensor<2x4x5x5xf32>
  %p = tfm.softmax %s {axis = 3 : i64} : tensor<2x4x5x5xf32> -> tensor<2x4x5x5xf32>
  %o = tfm.matmul %p, %vr : (tensor<2x4x5x5xf32>, tensor<2x4x5x4xf32>) -> tensor<2x4x5x4xf32>
  %ot = tfm.transpose %o {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x4x5x4xf32> -> tensor<2x5x4x4xf32>
  %r = tfm.reshape %ot : tensor<2x5x4x4xf32> -> tensor<2x5x16xf32>
  return %r : tensor<2x5x16xf32>
}

// -----

// Batch and heads merged for the products and apart for the mask; a softcap between scale and mask. The mask
// loses its repetition over the heads.
// CHECK-LABEL: @merged_softcap(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x5x8xf32>, %[[K:[^:]*]]: tensor<2x5x8xf32>, %[[V:[^:]*]]: tensor<2x5x8xf32>, %[[M:[^:]*]]: tensor<2x1x5x5xf32>
// CHECK-NEXT: tfm.attention %[[Q]], %[[K]], %[[V]] mask %[[M]] {num_heads = 2 : i64, num_kv_heads = 2 : i64, scale = 2.500000e-01 : f64, softcap = 3.000000e+01 : f64}
func.func @merged_softcap(%q: tensor<2x5x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x8xf32>, %m: tensor<2x1x5x5xf32>) -> tensor<2x5x8xf32> {
  %quarter = arith.constant dense<0.25> : tensor<4x5x5xf32>
  %cap = arith.constant dense<30.0> : tensor<2x2x5x5xf32>
  %q4 = tfm.reshape %q : tensor<2x5x8xf32> -> tensor<2x5x2x4xf32>
  %qt = tfm.transpose %q4 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x2x4xf32> -> tensor<2x2x5x4xf32>
  %q3 = tfm.reshape %qt : tensor<2x2x5x4xf32> -> tensor<4x5x4xf32>
  %k4 = tfm.reshape %k : tensor<2x5x8xf32> -> tensor<2x5x2x4xf32>
  %kt = tfm.transpose %k4 {permutation = array<i64: 0, 2, 3, 1>} : tensor<2x5x2x4xf32> -> tensor<2x2x4x5xf32>
  %k3 = tfm.reshape %kt : tensor<2x2x4x5xf32> -> tensor<4x4x5xf32>
  %v4 = tfm.reshape %v : tensor<2x5x8xf32> -> tensor<2x5x2x4xf32>
  %vt = tfm.transpose %v4 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x2x4xf32> -> tensor<2x2x5x4xf32>
  %v3 = tfm.reshape %vt : tensor<2x2x5x4xf32> -> tensor<4x5x4xf32>
  %s = tfm.matmul %q3, %k3 : (tensor<4x5x4xf32>, tensor<4x4x5xf32>) -> tensor<4x5x5xf32>
  %s1 = arith.mulf %s, %quarter : tensor<4x5x5xf32>
  %s2 = tfm.reshape %s1 : tensor<4x5x5xf32> -> tensor<2x2x5x5xf32>
  %s3 = arith.divf %s2, %cap : tensor<2x2x5x5xf32>
  %s4 = math.tanh %s3 : tensor<2x2x5x5xf32>
  %s5 = arith.mulf %s4, %cap : tensor<2x2x5x5xf32>
  %mb = tfm.broadcast %m : tensor<2x1x5x5xf32> -> tensor<2x2x5x5xf32>
  %s6 = arith.addf %mb, %s5 : tensor<2x2x5x5xf32>
  %s7 = tfm.reshape %s6 : tensor<2x2x5x5xf32> -> tensor<4x5x5xf32>
  %p = tfm.softmax %s7 {axis = 2 : i64} : tensor<4x5x5xf32> -> tensor<4x5x5xf32>
  %o = tfm.matmul %p, %v3 : (tensor<4x5x5xf32>, tensor<4x5x4xf32>) -> tensor<4x5x4xf32>
  %o4 = tfm.reshape %o : tensor<4x5x4xf32> -> tensor<2x2x5x4xf32>
  %ot = tfm.transpose %o4 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x2x5x4xf32> -> tensor<2x5x2x4xf32>
  %r = tfm.reshape %ot : tensor<2x5x2x4xf32> -> tensor<2x5x8xf32>
  return %r : tensor<2x5x8xf32>
}

// -----

// Probabilities that something else reads too, and a mask inside the softcap, stay structural.
// CHECK-LABEL: @stays(
// CHECK-NOT: tfm.attention
// CHECK: return
func.func @stays(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>, %m: tensor<1x2x5x5xf32>) -> (tensor<1x2x5x4xf32>, tensor<1x2x5x5xf32>, tensor<1x2x5x4xf32>) {
  %s = tfm.matmul %q, %k {transpose_rhs} : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x5x5xf32>
  %p = tfm.softmax %s {axis = 3 : i64} : tensor<1x2x5x5xf32> -> tensor<1x2x5x5xf32>
  %o = tfm.matmul %p, %v : (tensor<1x2x5x5xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32>
  %s1 = arith.addf %s, %m : tensor<1x2x5x5xf32>
  %s2 = math.tanh %s1 : tensor<1x2x5x5xf32>
  %p2 = tfm.softmax %s2 {axis = 3 : i64} : tensor<1x2x5x5xf32> -> tensor<1x2x5x5xf32>
  %o2 = tfm.matmul %p2, %v : (tensor<1x2x5x5xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32>
  return %o, %p, %o2 : tensor<1x2x5x4xf32>, tensor<1x2x5x5xf32>, tensor<1x2x5x4xf32>
}

// -----

// The function body of ONNX's Attention guards rows whose keys are all masked by the maximum of the mask's row; tfm.attention does
// the same, so that nothing of it is left.
// CHECK-LABEL: @masked_row_guard(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x5x8xf32>, %[[K:[^:]*]]: tensor<2x6x8xf32>, %[[V:[^:]*]]: tensor<2x6x8xf32>, %[[M:[^:]*]]: tensor<5x6xf32>
// CHECK-NOT: tfm.reduce
// CHECK: tfm.attention %[[Q]], %[[K]], %[[V]] mask %{{.*}} {num_heads = 2 : i64, num_kv_heads = 2 : i64
// CHECK-NOT: arith.select
func.func @masked_row_guard(%q: tensor<2x5x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %m: tensor<5x6xf32>)
    -> tensor<2x5x8xf32> {
  %zero = arith.constant dense<0.0> : tensor<2x2x5x6xf32>
  %inf = arith.constant dense<0xFF800000> : tensor<5x1xf32>
  %q4 = tfm.reshape %q : tensor<2x5x8xf32> -> tensor<2x5x2x4xf32>
  %qt = tfm.transpose %q4 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x2x4xf32> -> tensor<2x2x5x4xf32>
  %k4 = tfm.reshape %k : tensor<2x6x8xf32> -> tensor<2x6x2x4xf32>
  %kt = tfm.transpose %k4 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x6x2x4xf32> -> tensor<2x2x6x4xf32>
  %v4 = tfm.reshape %v : tensor<2x6x8xf32> -> tensor<2x6x2x4xf32>
  %vt = tfm.transpose %v4 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x6x2x4xf32> -> tensor<2x2x6x4xf32>
  %s = tfm.matmul %qt, %kt {transpose_rhs} : (tensor<2x2x5x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x5x6xf32>
  %mb = tfm.broadcast %m : tensor<5x6xf32> -> tensor<2x2x5x6xf32>
  %sm = arith.addf %s, %mb : tensor<2x2x5x6xf32>
  %p = tfm.softmax %sm {axis = 3 : i64} : tensor<2x2x5x6xf32> -> tensor<2x2x5x6xf32>
  %max = tfm.reduce %m {axes = array<i64: 1>, keep, kind = 1 : i32} : tensor<5x6xf32> -> tensor<5x1xf32>
  %all = arith.cmpf oeq, %max, %inf : tensor<5x1xf32>
  %allb = tfm.broadcast %all : tensor<5x1xi1> -> tensor<2x2x5x6xi1>
  %g = arith.select %allb, %zero, %p : tensor<2x2x5x6xi1>, tensor<2x2x5x6xf32>
  %o = tfm.matmul %g, %vt : (tensor<2x2x5x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x5x4xf32>
  %ot = tfm.transpose %o {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x2x5x4xf32> -> tensor<2x5x2x4xf32>
  %r = tfm.reshape %ot : tensor<2x5x2x4xf32> -> tensor<2x5x8xf32>
  return %r : tensor<2x5x8xf32>
}
