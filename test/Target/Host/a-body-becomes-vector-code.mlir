// RUN: %drover-opt %s --host-lowering=host-cpu=x86-64-v3 | FileCheck %s

// Vectors are two registers of the CPU, and nothing but LLVM is left.
// CHECK: llvm.func @drover_rt_parallel_for
// CHECK: llvm.func internal @body_kernel_0(%{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr)
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> vector<16xf32>
// CHECK: llvm.store %{{.*}} : vector<16xf32>, !llvm.ptr
// CHECK: llvm.func @body(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)
// CHECK-NOT: unrealized_conversion_cast
func.func private @body(%x: tensor<8x32xf32>, %y: tensor<8x32xf32>) -> tensor<8x32xf32> attributes {tfm.body = "forward"} {
  %0 = arith.addf %x, %y : tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}
