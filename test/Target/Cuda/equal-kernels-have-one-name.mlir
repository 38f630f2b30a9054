// RUN: %drover-opt %s --cuda-name-kernels | FileCheck %s

// What a kernel was made for does not tell it from another: of two with one content one stays, and the name of the two that is
// first in the order of letters.
// CHECK: gpu.module @[[$COPY:cast_[0-9a-f]+]] {
// CHECK-NEXT: llvm.func @[[$COPY]](
// CHECK-NOT: drover.kernel_name
// CHECK: gpu.module @[[$ZERO:zero_[0-9a-f]+]] {
// CHECK-NOT: gpu.module
gpu.module @a_kernel_0 {
  llvm.func @a_kernel_0(%x: !llvm.ptr<1>) attributes {drover.kernel_name = "swiglu", drover.shared_bytes = 0 : i64, nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %one = llvm.mlir.constant(1 : i32) : i32
    llvm.store %one, %x : i32, !llvm.ptr<1>
    llvm.return
  }
}
gpu.module @a_kernel_1 {
  llvm.func @a_kernel_1(%x: !llvm.ptr<1>) attributes {drover.kernel_name = "zero", drover.shared_bytes = 0 : i64, nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    llvm.store %zero, %x : i32, !llvm.ptr<1>
    llvm.return
  }
}
gpu.module @b_kernel_0 {
  llvm.func @b_kernel_0(%x: !llvm.ptr<1>) attributes {drover.kernel_name = "cast", drover.shared_bytes = 0 : i64, nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %one = llvm.mlir.constant(1 : i32) : i32
    llvm.store %one, %x : i32, !llvm.ptr<1>
    llvm.return
  }
}
// CHECK-LABEL: func.func @a(
// CHECK: rt.gpu_launch %{{.*}} @[[$COPY]]::@[[$COPY]] blocks
// CHECK: rt.gpu_launch %{{.*}} @[[$ZERO]]::@[[$ZERO]] blocks
func.func @a(%call: !rt.call, %x: memref<1xi32>) {
  %blocks = arith.constant 1 : index
  rt.gpu_launch %call @a_kernel_0::@a_kernel_0 blocks %blocks (%x) : memref<1xi32>
  rt.gpu_launch %call @a_kernel_1::@a_kernel_1 blocks %blocks (%x) : memref<1xi32>
  return
}
// CHECK-LABEL: func.func @b(
// CHECK: rt.gpu_launch %{{.*}} @[[$COPY]]::@[[$COPY]] blocks
func.func @b(%call: !rt.call, %x: memref<1xi32>) {
  %blocks = arith.constant 1 : index
  rt.gpu_launch %call @b_kernel_0::@b_kernel_0 blocks %blocks (%x) : memref<1xi32>
  return
}
