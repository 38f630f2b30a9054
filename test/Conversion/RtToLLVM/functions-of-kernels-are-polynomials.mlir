// RUN: %drover-opt %s --rt-expand-math | FileCheck %s

// CHECK-LABEL: func.func @functions
// CHECK-NOT: math.exp
// CHECK-NOT: math.tanh
// CHECK-NOT: math.sin
// CHECK-NOT: math.cos
// CHECK-NOT: math.erf
// CHECK-NOT: math.log
func.func @functions(%x: vector<16xf32>, %y: f32) -> (vector<16xf32>, f32) {
  %0 = math.exp %x : vector<16xf32>
  %1 = math.tanh %0 : vector<16xf32>
  %2 = math.sin %1 : vector<16xf32>
  %3 = math.erf %2 : vector<16xf32>
  %4 = math.log %3 : vector<16xf32>
  %5 = math.cos %y : f32
  // CHECK: return
  return %4, %5 : vector<16xf32>, f32
}

// Other types call the library.
// CHECK-LABEL: func.func @wide
func.func @wide(%x: f64) -> f64 {
  // CHECK: math.exp
  %0 = math.exp %x : f64
  return %0 : f64
}
