// Loads, stores and nvvm operations of a kernel become calls that know the argument, its space and the place.
// RUN: drover-emulate-kernels %s --emit=mlir -o - | FileCheck %s

// CHECK-DAG: llvm.func @drover_emu_access(!llvm.ptr, i32, i32, i32, i32, i32) -> !llvm.ptr
// CHECK-LABEL: llvm.func internal @drover_emu_thread_0(
// CHECK-NOT: nvvm.
gpu.module @kernels {
  llvm.mlir.global internal @shared() {addr_space = 3 : i32} : !llvm.array<32 x f32>
  llvm.func @reverse(%data: !llvm.ptr<1> {llvm.dereferenceable = 128 : i64, llvm.noalias}, %n: i32) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
    // CHECK: llvm.call @drover_emu_special_register
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    // CHECK: llvm.call @drover_emu_shared
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %from = llvm.getelementptr %data[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %to = llvm.getelementptr %shared[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    // A read (0) of global memory (8) of argument 0.
    // CHECK: %[[BYTES:.*]] = llvm.mlir.constant(4 : i32)
    // CHECK: %[[FLAGS:.*]] = llvm.mlir.constant(8 : i32)
    // CHECK: %[[ALIGNED:.*]] = llvm.mlir.constant(4 : i32)
    // CHECK: %[[ARGUMENT:.*]] = llvm.mlir.constant(0 : i32)
    // CHECK: llvm.call @drover_emu_access(%{{.*}}, %[[BYTES]], %[[FLAGS]], %[[ALIGNED]], %[[ARGUMENT]], %{{.*}})
    %value = llvm.load %from : !llvm.ptr<1> -> f32
    // A write (1) of shared memory (4).
    // CHECK: llvm.mlir.constant(5 : i32)
    // CHECK: llvm.call @drover_emu_access
    llvm.store %value, %to : f32, !llvm.ptr<3>
    // CHECK: llvm.call @drover_emu_barrier
    nvvm.barrier0
    llvm.return
  }
}
// CHECK: llvm.mlir.global internal constant @drover_emu_site_0("llvm.load at operations-become-calls.mlir:{{[0-9]+}}\00")
// CHECK: llvm.mlir.global external constant @drover_emu_library()
