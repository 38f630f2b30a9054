// RUN: %drover-opt %s | %drover-opt | FileCheck %s

// CHECK-LABEL: func.func private @kernel
func.func private @kernel(%begin: index, %end: index, %x: memref<64xf32>, %call: !rt.call) attributes {rt.kernel} {
  // CHECK: rt.call_size
  %0 = rt.call_size %call
  // CHECK: rt.call_accumulates
  %1 = rt.call_accumulates %call
  %i = arith.constant 3 : i64
  // CHECK: rt.check_index %{{.*}} in{{ ?}}[-4, 4) of "layer: gather"
  rt.check_index %i in [-4, 4) of "layer: gather"
  return
}

// CHECK-LABEL: func.func private @body
func.func private @body(%call: !rt.call, %x: memref<64xf32>, %a: memref<4x8xf32, strided<[16, 1], offset: 8>>, %b: memref<6x8xf32>,
                        %c: memref<4x6xf32>, %ids: memref<16xi64>, %dy: memref<16x64xf32>, %dt: memref<256x64xf32>) {
  %n = arith.constant 4 : index
  // CHECK: rt.launch %{{.*}} @kernel count %{{.*}} grain 1(%{{.*}}, %{{.*}}) : memref<64xf32>, !rt.call
  rt.launch %call @kernel count %n grain 1 (%x, %call) : memref<64xf32>, !rt.call
  // CHECK: rt.matmul %{{.*}} %{{.*}}, %{{.*}} into %{{.*}} add {trans_rhs}
  rt.matmul %call %a, %b into %c add {trans_rhs} : memref<4x8xf32, strided<[16, 1], offset: 8>>, memref<6x8xf32>, memref<4x6xf32>
  // CHECK: rt.embedding_grad %{{.*}} %{{.*}}, %{{.*}} into %{{.*}} accumulate
  rt.embedding_grad %call %ids, %dy into %dt accumulate : memref<16xi64>, memref<16x64xf32>, memref<256x64xf32>
  return
}

gpu.module @scale {
  llvm.func @scale(%x: !llvm.ptr<1>, %n: i64, %number: i64, %words: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>, drover.shared_bytes = 16 : i64} {
    llvm.return
  }
}

// CHECK-LABEL: func.func private @gpu
func.func private @gpu(%call: !rt.call, %x: memref<64xf32>, %n: i64) {
  %blocks = arith.constant 4 : index
  // CHECK: rt.gpu_launch %{{.*}} @scale::@scale blocks %{{.*}}(%{{.*}}, %{{.*}}) check "gpu: gather" : memref<64xf32>, i64
  rt.gpu_launch %call @scale::@scale blocks %blocks (%x, %n) check "gpu: gather" : memref<64xf32>, i64
  return
}

// CHECK-LABEL: func.func private @attention
func.func private @attention(%call: !rt.call, %q: memref<2x8x64xf32>, %k: memref<2x8x16xf32>, %l: memref<2x8x8xf32>, %ws: memref<512xi8>,
                             %m: memref<2x8xi64>) {
  // CHECK: rt.attention {{.*}} key_mask %{{.*}} : memref<2x8xi64> into
  rt.attention %call %q, %k, %k key_mask %m : memref<2x8xi64> into %q, %l workspace %ws {causal = 1 : i32, num_heads = 8 : i64, num_kv_heads = 2 : i64, scale = 0.125 : f64}
    : memref<2x8x64xf32>, memref<2x8x16xf32>, memref<2x8x16xf32>, memref<2x8x64xf32>, memref<2x8x8xf32>, memref<512xi8>
  // CHECK: rt.attention_grad
  rt.attention_grad %call %q, %k, %k, %q, %l, %q into %q, %k, %k workspace %ws {causal = 0 : i32, num_heads = 8 : i64, num_kv_heads = 2 : i64, scale = 0.125 : f64}
    : memref<2x8x64xf32>, memref<2x8x16xf32>, memref<2x8x16xf32>, memref<2x8x64xf32>, memref<2x8x8xf32>, memref<2x8x64xf32>, memref<2x8x64xf32>, memref<2x8x16xf32>, memref<2x8x16xf32>, memref<512xi8>
  return
}

// CHECK-LABEL: func.func private @rank
func.func private @rank(%call: !rt.call, %x: memref<2x4x64xbf16>, %y: memref<2x16x64xbf16>, %s: memref<9xf64>, %ids: memref<16xi64>,
                        %dy: memref<16x64xf32>, %o: memref<1xi64>, %dt: memref<256x64xf32>) -> i64 {
  // CHECK: rt.collective_start %{{.*}} all_gather tp slot 2 %{{.*}} into %{{.*}} {inner = 64 : i64, local = 4 : i64, outer = 2 : i64, ranks = 4 : i64}
  rt.collective_start %call all_gather tp slot 2 %x into %y {outer = 2 : i64, local = 4 : i64, inner = 64 : i64, ranks = 4 : i64} : memref<2x4x64xbf16>, memref<2x16x64xbf16>
  // CHECK: rt.collective_start %{{.*}} all_reduce op max replica slot 3
  rt.collective_start %call all_reduce op max replica slot 3 %s into %s {outer = 1 : i64, local = 1 : i64, inner = 9 : i64, ranks = 2 : i64, reduction = 5 : i32} : memref<9xf64>, memref<9xf64>
  // CHECK: rt.collective_wait %{{.*}} slot 3
  rt.collective_wait %call slot 3
  // CHECK: rt.embedding_grad %{{.*}} %{{.*}}, %{{.*}} offset %{{.*}} : memref<1xi64> into %{{.*}} overwrite
  rt.embedding_grad %call %ids, %dy offset %o : memref<1xi64> into %dt overwrite : memref<16xi64>, memref<16x64xf32>, memref<256x64xf32>
  // CHECK: rt.coordinate %{{.*}} replica
  %0 = rt.coordinate %call replica
  return %0 : i64
}
