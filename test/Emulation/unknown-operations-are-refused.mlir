// What the emulator has no rule for is an error at its place, never a kernel that is silently wrong.
// RUN: split-file %s %t
// RUN: not drover-emulate-kernels %t/wgmma.mlir -o %t.so 2>&1 | FileCheck %s --check-prefix=WGMMA
// RUN: not drover-emulate-kernels %t/shared.mlir -o %t.so 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: not drover-emulate-kernels %t/struct.mlir -o %t.so 2>&1 | FileCheck %s --check-prefix=STRUCT
// RUN: not drover-emulate-kernels %t/call.mlir -o %t.so 2>&1 | FileCheck %s --check-prefix=CALL
// RUN: not drover-emulate-kernels %t/none.mlir -o %t.so 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not drover-emulate-kernels %t/global.mlir -o %t.so 2>&1 | FileCheck %s --check-prefix=GLOBAL

//--- wgmma.mlir
gpu.module @kernels {
  llvm.func @kernel() attributes {nvvm.kernel} {
    // WGMMA: wgmma.mlir:{{.*}}error: 'nvvm.wgmma.fence.aligned' op the emulator has no rule for this operation
    nvvm.wgmma.fence.aligned
    llvm.return
  }
}
//--- shared.mlir
gpu.module @kernels {
  llvm.mlir.global internal @one() {addr_space = 3 : i32} : !llvm.array<4 x f32>
  llvm.mlir.global internal @two() {addr_space = 3 : i32} : !llvm.array<4 x f32>
  llvm.func @kernel() attributes {nvvm.kernel} {
    %one = llvm.mlir.addressof @one : !llvm.ptr<3>
    // SHARED: error: 'llvm.mlir.addressof' op a kernel has one global of shared memory, this one also uses 'm0_one'
    %two = llvm.mlir.addressof @two : !llvm.ptr<3>
    llvm.return
  }
}
//--- struct.mlir
gpu.module @kernels {
  // STRUCT: error: 'llvm.func' op argument 0 of a kernel is a pointer, an integer or a float, not '!llvm.struct<(i32)>'
  llvm.func @kernel(%a: !llvm.struct<(i32)>) attributes {nvvm.kernel} {
    llvm.return
  }
}
//--- call.mlir
gpu.module @kernels {
  llvm.func @vprintf(!llvm.ptr) -> i32
  llvm.func @kernel(%a: !llvm.ptr) attributes {nvvm.kernel} {
    // CALL: error: 'llvm.call' op the emulator has no rule for this operation
    %r = llvm.call @vprintf(%a) : (!llvm.ptr) -> i32
    llvm.return
  }
}
//--- none.mlir
gpu.module @kernels {
  // NONE: error: expects a gpu.module with kernels (llvm.func with nvvm.kernel)
  llvm.func @helper() {
    llvm.return
  }
}
//--- global.mlir
gpu.module @kernels {
  llvm.mlir.global internal @state(0 : i32) {addr_space = 1 : i32} : i32
  llvm.func @kernel(%a: i32) attributes {nvvm.kernel} {
    %state = llvm.mlir.addressof @state : !llvm.ptr<1>
    // GLOBAL: error: 'llvm.store' op kernels may not write to globals outside shared memory
    llvm.store %a, %state : i32, !llvm.ptr<1>
    llvm.return
  }
}
