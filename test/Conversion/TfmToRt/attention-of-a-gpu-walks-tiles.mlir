// RUN: %drover-opt %s --split-input-file --convert-tfm-to-rt=target=cuda | FileCheck %s

// bf16 on tensor cores: a tile of keys and values is copied while the one before it is computed.
// CHECK-LABEL: gpu.module @bf16_kernel_0
// CHECK: llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.while
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: nvvm.barrier0
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK: nvvm.ldmatrix
// CHECK: nvvm.mma.sync
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK: nvvm.mma.sync
// CHECK-LABEL: func.func private @bf16(
// A tile of 64 queries of each of 4 heads is a block.
// CHECK: rt.gpu_launch {{.*}} blocks %c8(
func.func private @bf16(%q: tensor<1x100x512xbf16>, %k: tensor<1x100x256xbf16>, %v: tensor<1x100x256xbf16>) -> tensor<1x100x512xbf16> attributes {tfm.body = "forward"} {
  %o, %l = tfm.attention %q, %k, %v causal top_left {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.1 : f64} : (tensor<1x100x512xbf16>, tensor<1x100x256xbf16>, tensor<1x100x256xbf16>) -> (tensor<1x100x512xbf16>, tensor<1x4x100xf32>)
  return %o : tensor<1x100x512xbf16>
}

// -----

// The backward is two kernels, and their workspace is one sum a query and head.
// CHECK-LABEL: gpu.module @f32_kernel_0
// CHECK-NOT: nvvm.mma.sync
// CHECK: math.fma
// CHECK-LABEL: gpu.module @f32_kernel_1
// CHECK-NOT: nvvm.mma.sync
// CHECK-NOT: llvm.atomicrmw
// CHECK: func.func private @f32({{.*}} attributes {{.*}}drover.workspace_bytes = 320 : i64
// CHECK: rt.gpu_launch %{{.*}} @f32_kernel_0::@f32_kernel_0
// CHECK: rt.gpu_launch %{{.*}} @f32_kernel_1::@f32_kernel_1
func.func private @f32(%q: tensor<1x20x64xf32>, %o: tensor<1x20x64xf32>, %l: tensor<1x4x20xf32>) -> (tensor<1x20x64xf32>, tensor<1x20x64xf32>, tensor<1x20x64xf32>) attributes {tfm.body = "backward"} {
  %dq, %dk, %dv = tfm.attention_grad %q, %q, %q, %o, %l, %o {num_heads = 4 : i64, num_kv_heads = 4 : i64, scale = 0.25 : f64} : (tensor<1x20x64xf32>, tensor<1x20x64xf32>, tensor<1x20x64xf32>, tensor<1x20x64xf32>, tensor<1x4x20xf32>, tensor<1x20x64xf32>) -> (tensor<1x20x64xf32>, tensor<1x20x64xf32>, tensor<1x20x64xf32>)
  return %dq, %dk, %dv : tensor<1x20x64xf32>, tensor<1x20x64xf32>, tensor<1x20x64xf32>
}

// -----

// Of heads longer than 128 two warps have the same rows: 8 warps a block.
// CHECK-LABEL: gpu.module @long_kernel_0
// CHECK: nvvm.reqntid = array<i32: 256, 1, 1>
func.func private @long(%q: tensor<1x20x256xbf16>) -> tensor<1x20x256xbf16> attributes {tfm.body = "forward"} {
  %o, %l = tfm.attention %q, %q, %q {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x20x256xbf16>, tensor<1x20x256xbf16>, tensor<1x20x256xbf16>) -> (tensor<1x20x256xbf16>, tensor<1x1x20xf32>)
  return %o : tensor<1x20x256xbf16>
}
