// RUN: %drover-opt %s --split-input-file --convert-tfm-to-rt=target=cuda | FileCheck %s

// A block of 256 threads a row: what it reads of the row is kept over the sum, by steps of 16 bytes.
// CHECK-LABEL: gpu.module @body_kernel_0
// CHECK: llvm.mlir.global internal @shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<32 x i8>
// CHECK: llvm.func @body_kernel_0(
// CHECK-SAME: llvm.align = 16 : i64, llvm.dereferenceable = 28672 : i64, llvm.noalias, llvm.readonly
// CHECK-SAME: llvm.dereferenceable = 28672 : i64, llvm.noalias}
// CHECK-SAME: drover.shared_bytes = 32 : i64
// CHECK-SAME: nvvm.kernel
// CHECK-SAME: nvvm.reqntid = array<i32: 256, 1, 1>
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK-NOT: llvm.load {{.*}} -> vector<8xbf16>
// CHECK: nvvm.shfl.sync bfly
// CHECK: nvvm.barrier0
// CHECK: math.sqrt
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<1>
// CHECK-LABEL: func.func private @body(
// CHECK: rt.gpu_launch %{{.*}} @body_kernel_0::@body_kernel_0 blocks %c7(%{{.*}}, %{{.*}}) : memref<14336xbf16>, memref<14336xbf16>
func.func private @body(%x: tensor<7x2048xbf16>) -> tensor<7x2048xbf16> attributes {tfm.body = "forward"} {
  %y = tfm.rms_norm %x {eps = 1.0e-6 : f64} : (tensor<7x2048xbf16>) -> tensor<7x2048xbf16>
  return %y : tensor<7x2048xbf16>
}

// -----

// An index from memory is checked; the runtime gives the last two arguments.
// CHECK-LABEL: llvm.func @gather_kernel_0(
// CHECK: llvm.cmpxchg
// CHECK: rt.gpu_launch {{.*}} check "gather: gather"
func.func private @gather(%x: tensor<9x64xf32>, %i: tensor<5xi64>) -> tensor<5x64xf32> attributes {tfm.body = "forward"} {
  %y = tfm.gather %x, %i {axis = 0 : i64} : (tensor<9x64xf32>, tensor<5xi64>) -> tensor<5x64xf32>
  return %y : tensor<5x64xf32>
}
