// RUN: %drover-opt %s --convert-tfm-to-rt | FileCheck %s

// One kernel: the sum is stored and read back from the cache for the second pass over the row.
// CHECK-LABEL: func.func private @body_kernel_0
// CHECK: scf.for
// CHECK: vector.store
// CHECK: math.sqrt
// CHECK: vector.store
// CHECK-LABEL: func.func private @body(
// CHECK-SAME: drover.workspace_bytes = 0 : i64
// CHECK: rt.launch %{{.*}} @body_kernel_0 count %c21
// CHECK-NOT: rt.launch
func.func private @body(%x: tensor<3x7x32xf32>, %r: tensor<3x7x32xf32>, %w: tensor<32xf32>) -> (tensor<3x7x32xf32>, tensor<3x7x32xf32>) attributes {tfm.body = "forward"} {
  %h = arith.addf %x, %r : tensor<3x7x32xf32>
  %y = tfm.rms_norm %h, %w {eps = 1.0e-6 : f64} : (tensor<3x7x32xf32>, tensor<32xf32>) -> tensor<3x7x32xf32>
  return %h, %y : tensor<3x7x32xf32>, tensor<3x7x32xf32>
}
