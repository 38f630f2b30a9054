// RUN: %drover-opt %s --split-input-file --convert-tfm-to-rt="target=cuda attention=wgmma" | FileCheck %s

// Tiles start at multiples of the swizzle's pattern; sums are used behind a wait and an asm that ties them to it.
// CHECK-LABEL: gpu.module @bf16_kernel_0 [#nvvm.target<O = 3, chip = "sm_90a">]
// CHECK: llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK-NEXT: nvvm.barrier0
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 64, k = 16>, D[<f32>, <zero>], A[<bf16>, <one>, <row>], B[<bf16>, <one>, <col>]
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: llvm.inline_asm has_side_effects "", "=f,
// CHECK: nvvm.fence.proxy
// CHECK-NEXT: nvvm.barrier0
// CHECK: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 128, k = 16>, D[<f32>, <one>], A[<bf16>, <one>, <row>], B[<bf16>, <one>, <row>]
func.func private @bf16(%q: tensor<1x64x128xbf16>) -> tensor<1x64x128xbf16> attributes {tfm.body = "forward"} {
  %o, %l = tfm.attention %q, %q, %q {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x64x128xbf16>, tensor<1x64x128xbf16>, tensor<1x64x128xbf16>) -> (tensor<1x64x128xbf16>, tensor<1x1x64xf32>)
  return %o : tensor<1x64x128xbf16>
}

// -----

// Other head sizes, f32 and short sequences are for all architectures.
// CHECK-LABEL: gpu.module @heads_of_96_kernel_0 {
// CHECK-NOT: wgmma
func.func private @heads_of_96(%q: tensor<1x64x96xbf16>) -> tensor<1x64x96xbf16> attributes {tfm.body = "forward"} {
  %o, %l = tfm.attention %q, %q, %q {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x64x96xbf16>, tensor<1x64x96xbf16>, tensor<1x64x96xbf16>) -> (tensor<1x64x96xbf16>, tensor<1x1x64xf32>)
  return %o : tensor<1x64x96xbf16>
}

// -----

// CHECK-LABEL: gpu.module @few_keys_kernel_0 {
// CHECK-NOT: wgmma
func.func private @few_keys(%q: tensor<1x64x64xbf16>, %k: tensor<1x63x64xbf16>) -> tensor<1x64x64xbf16> attributes {tfm.body = "forward"} {
  %o, %l = tfm.attention %q, %k, %k {num_heads = 1 : i64, num_kv_heads = 1 : i64, scale = 0.1 : f64} : (tensor<1x64x64xbf16>, tensor<1x63x64xbf16>, tensor<1x63x64xbf16>) -> (tensor<1x64x64xbf16>, tensor<1x1x64xf32>)
  return %o : tensor<1x64x64xbf16>
}
