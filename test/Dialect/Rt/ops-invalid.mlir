// RUN: %drover-opt %s --split-input-file --verify-diagnostics

// check_index C1
func.func private @kernel(%begin: index, %end: index, %i: i64) attributes {rt.kernel} {
  // expected-error @below {{'rt.check_index' op expects a range from a number up, not [5, 4)}}
  rt.check_index %i in [5, 4) of "layer: gather"
  return
}

// -----

// launch C1
func.func private @plain(%begin: index, %end: index)
func.func private @body(%call: !rt.call, %n: index) {
  // expected-error @below {{'rt.launch' op expects @plain to be a function with rt.kernel}}
  rt.launch %call @plain count %n grain 1 ()
  return
}

// -----

// launch C2
func.func private @kernel(%begin: index, %end: index, %x: memref<4xf32>) attributes {rt.kernel} { return }
func.func private @body(%call: !rt.call, %n: index, %x: memref<5xf32>) {
  // expected-error @below {{'rt.launch' op expects @kernel to have the type '(index, index, memref<5xf32>) -> ()', not '(index, index, memref<4xf32>) -> ()'}}
  rt.launch %call @kernel count %n grain 1 (%x) : memref<5xf32>
  return
}

// -----

// launch C3
func.func private @kernel(%begin: index, %end: index) attributes {rt.kernel} { return }
func.func private @body(%call: !rt.call, %n: index) {
  // expected-error @below {{'rt.launch' op expects a positive grain, not 0}}
  rt.launch %call @kernel count %n grain 0 ()
  return
}

// -----

// gpu_launch C1
gpu.module @k {
  llvm.func @k() {
    llvm.return
  }
}
func.func private @body(%call: !rt.call, %n: index) {
  // expected-error @below {{'rt.gpu_launch' op expects @k::@k to be a function with nvvm.kernel}}
  rt.gpu_launch %call @k::@k blocks %n ()
  return
}

// -----

// gpu_launch C2
gpu.module @k {
  llvm.func @k(%x: !llvm.ptr<1>, %n: i64) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>, drover.shared_bytes = 0 : i64} {
    llvm.return
  }
}
func.func private @body(%call: !rt.call, %n: index, %x: memref<4xf32>) {
  // expected-error @below {{'rt.gpu_launch' op expects @k::@k to have the arguments ('!llvm.ptr<1>', 'i64', '!llvm.ptr<1>'), not ('!llvm.ptr<1>', 'i64')}}
  rt.gpu_launch %call @k::@k blocks %n (%x) check "body: gather" : memref<4xf32>
  return
}

// -----

// gpu_launch C3
gpu.module @k {
  llvm.func @k() attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    llvm.return
  }
}
func.func private @body(%call: !rt.call, %n: index) {
  // expected-error @below {{'rt.gpu_launch' op expects @k::@k to have the attribute drover.shared_bytes}}
  rt.gpu_launch %call @k::@k blocks %n ()
  return
}

// -----

// matmul C1: ranks
func.func private @body(%call: !rt.call, %a: memref<4x8xf32>, %b: memref<2x8x6xf32>, %c: memref<4x6xf32>) {
  // expected-error @below {{'rt.matmul' op expects ranks 2 or 3 that agree, not 2, 3 and 2}}
  rt.matmul %call %a, %b into %c overwrite : memref<4x8xf32>, memref<2x8x6xf32>, memref<4x6xf32>
  return
}

// -----

// matmul C1: strides
func.func private @body(%call: !rt.call, %a: memref<4x8xf32, strided<[16, 2]>>, %b: memref<8x6xf32>, %c: memref<4x6xf32>) {
  // expected-error @below {{'rt.matmul' op expects lhs to have a unit stride in its last dimension, not 2}}
  rt.matmul %call %a, %b into %c overwrite : memref<4x8xf32, strided<[16, 2]>>, memref<8x6xf32>, memref<4x6xf32>
  return
}

// -----

// matmul C2
func.func private @body(%call: !rt.call, %a: memref<4x8xf32>, %b: memref<9x6xf32>, %c: memref<4x6xf32>) {
  // expected-error @below {{'rt.matmul' op expects sizes that agree, not 'memref<4x8xf32>' times 'memref<9x6xf32>' into 'memref<4x6xf32>'}}
  rt.matmul %call %a, %b into %c overwrite : memref<4x8xf32>, memref<9x6xf32>, memref<4x6xf32>
  return
}

// -----

// matmul C3: types
func.func private @body(%call: !rt.call, %a: memref<4x8xf64>, %b: memref<8x6xf64>, %c: memref<4x6xf64>) {
  // expected-error @below {{'rt.matmul' op expects lhs to be f32 or bf16, not 'f64'}}
  rt.matmul %call %a, %b into %c overwrite : memref<4x8xf64>, memref<8x6xf64>, memref<4x6xf64>
  return
}

// -----

// matmul C3: equal types
func.func private @body(%call: !rt.call, %a: memref<4x8xf32>, %b: memref<8x6xbf16>, %c: memref<4x6xf32>) {
  // expected-error @below {{'rt.matmul' op expects lhs and rhs to have equal element types, not 'f32' and 'bf16'}}
  rt.matmul %call %a, %b into %c overwrite : memref<4x8xf32>, memref<8x6xbf16>, memref<4x6xf32>
  return
}

// -----

// attention C1: rows of one stride
func.func private @body(%call: !rt.call, %q: memref<2x8x64xf32, strided<[1000, 64, 1]>>, %k: memref<2x8x16xf32>, %o: memref<2x8x64xf32>, %l: memref<2x8x8xf32>, %ws: memref<512xi8>) {
  // expected-error @below {{'rt.attention' op expects the batch stride of query to be 512, not 1000}}
  rt.attention %call %q, %k, %k into %o, %l workspace %ws {causal = 1 : i32, num_heads = 8 : i64, num_kv_heads = 2 : i64, scale = 0.125 : f64}
    : memref<2x8x64xf32, strided<[1000, 64, 1]>>, memref<2x8x16xf32>, memref<2x8x16xf32>, memref<2x8x64xf32>, memref<2x8x8xf32>, memref<512xi8>
  return
}

// -----

// attention C2
func.func private @body(%call: !rt.call, %q: memref<2x8x64xf32>, %k: memref<2x8x16xf32>, %l: memref<2x8x8xf64>, %ws: memref<512xi8>) {
  // expected-error @below {{'rt.attention' op expects log_sum_exp to be contiguous f32, not 'memref<2x8x8xf64>'}}
  rt.attention %call %q, %k, %k into %q, %l workspace %ws {causal = 1 : i32, num_heads = 8 : i64, num_kv_heads = 2 : i64, scale = 0.125 : f64}
    : memref<2x8x64xf32>, memref<2x8x16xf32>, memref<2x8x16xf32>, memref<2x8x64xf32>, memref<2x8x8xf64>, memref<512xi8>
  return
}

// -----

// embedding_grad C1: ranks
func.func private @body(%call: !rt.call, %ids: memref<2x8xi64>, %dy: memref<16x64xf32>, %dt: memref<256x64xf32>) {
  // expected-error @below {{'rt.embedding_grad' op expects ids of rank 1, a gradient of rank 2 and an f32 table of rank 2}}
  rt.embedding_grad %call %ids, %dy into %dt accumulate : memref<2x8xi64>, memref<16x64xf32>, memref<256x64xf32>
  return
}

// -----

// embedding_grad C1: contiguous
func.func private @body(%call: !rt.call, %ids: memref<16xi64>, %dy: memref<16x64xf32, strided<[65, 1]>>, %dt: memref<256x64xf32>) {
  // expected-error @below {{'rt.embedding_grad' op expects gradient to be contiguous}}
  rt.embedding_grad %call %ids, %dy into %dt accumulate : memref<16xi64>, memref<16x64xf32, strided<[65, 1]>>, memref<256x64xf32>
  return
}

// -----

// embedding_grad C2
func.func private @body(%call: !rt.call, %ids: memref<15xi64>, %dy: memref<16x64xf32>, %dt: memref<256x64xf32>) {
  // expected-error @below {{'rt.embedding_grad' op expects sizes that agree}}
  rt.embedding_grad %call %ids, %dy into %dt accumulate : memref<15xi64>, memref<16x64xf32>, memref<256x64xf32>
  return
}

// -----

// attention C3
func.func private @body(%call: !rt.call, %q: memref<2x8x64xf32>, %k: memref<2x8x16xf32>, %o: memref<2x8x64xf32>, %l: memref<2x8x8xf32>, %i: memref<8xi64, strided<[2]>>, %ws: memref<512xi8>) {
  // expected-error @below {{'rt.attention' op expects query_index to be contiguous, not 'memref<8xi64, strided<[2]>>'}}
  rt.attention %call %q, %k, %k query_index %i : memref<8xi64, strided<[2]>> into %o, %l workspace %ws {causal = 1 : i32, num_heads = 8 : i64, num_kv_heads = 2 : i64, scale = 0.125 : f64}
    : memref<2x8x64xf32>, memref<2x8x16xf32>, memref<2x8x16xf32>, memref<2x8x64xf32>, memref<2x8x8xf32>, memref<512xi8>
  return
}

// -----

// embedding_grad C3
func.func private @body(%call: !rt.call, %ids: memref<16xi64>, %dy: memref<16x64xf32>, %o: memref<2xi64>, %dt: memref<256x64xf32>) {
  // expected-error @below {{'rt.embedding_grad' op expects an offset of one element, not 'memref<2xi64>'}}
  rt.embedding_grad %call %ids, %dy offset %o : memref<2xi64> into %dt accumulate : memref<16xi64>, memref<16x64xf32>, memref<256x64xf32>
  return
}

// -----

// collective_start C1: contiguous
func.func private @body(%call: !rt.call, %x: memref<2x4xf32, strided<[8, 1]>>, %y: memref<16xf32>) {
  // expected-error @below {{expects in to be contiguous, not 'memref<2x4xf32, strided<[8, 1]>>'}}
  rt.collective_start %call all_gather tp slot 0 %x into %y {inner = 1 : i64, local = 8 : i64, outer = 1 : i64, ranks = 2 : i64} : memref<2x4xf32, strided<[8, 1]>>, memref<16xf32>
  return
}

// -----

// collective_start C1: static
func.func private @body(%call: !rt.call, %x: memref<8xf32>, %y: memref<?xf32>) {
  // expected-error @below {{expects out to have a static shape, not 'memref<?xf32>'}}
  rt.collective_start %call all_gather tp slot 0 %x into %y {inner = 1 : i64, local = 8 : i64, outer = 1 : i64, ranks = 2 : i64} : memref<8xf32>, memref<?xf32>
  return
}

// -----

// collective_start C1: element types
func.func private @body(%call: !rt.call, %x: memref<8xbf16>, %y: memref<16xf32>) {
  // expected-error @below {{expects buffers of one element type, not 'bf16' and 'f32'}}
  rt.collective_start %call all_gather tp slot 0 %x into %y {inner = 1 : i64, local = 8 : i64, outer = 1 : i64, ranks = 2 : i64} : memref<8xbf16>, memref<16xf32>
  return
}

// -----

// collective_start C1: types that are summed
func.func private @body(%call: !rt.call, %x: memref<8xi32>) {
  // expected-error @below {{expects a reduction of f32, bf16, f64 or i64, not 'i32'}}
  rt.collective_start %call all_reduce cp slot 0 %x into %x {inner = 8 : i64, local = 1 : i64, outer = 1 : i64, ranks = 2 : i64, reduction = 0 : i32} : memref<8xi32>, memref<8xi32>
  return
}

// -----

// collective_start C2
func.func private @body(%call: !rt.call, %x: memref<8xf32>, %y: memref<16xf32>) {
  // expected-error @below {{expects a slot from 0 to 15, not 16}}
  rt.collective_start %call all_gather tp slot 16 %x into %y {inner = 1 : i64, local = 8 : i64, outer = 1 : i64, ranks = 2 : i64} : memref<8xf32>, memref<16xf32>
  return
}

// -----

// collective_start C3: positive
func.func private @body(%call: !rt.call, %x: memref<8xf32>, %y: memref<16xf32>) {
  // expected-error @below {{expects positive sizes, not 2 ranks of 1 x 0 x 1}}
  rt.collective_start %call all_gather tp slot 0 %x into %y {inner = 1 : i64, local = 0 : i64, outer = 1 : i64, ranks = 2 : i64} : memref<8xf32>, memref<16xf32>
  return
}

// -----

// collective_start C3: sizes
func.func private @body(%call: !rt.call, %x: memref<8xf32>, %y: memref<16xf32>) {
  // expected-error @below {{expects buffers of 16 and 8 elements, not 8 and 16}}
  rt.collective_start %call reduce_scatter tp slot 0 %x into %y {inner = 1 : i64, local = 8 : i64, outer = 1 : i64, ranks = 2 : i64, reduction = 0 : i32} : memref<8xf32>, memref<16xf32>
  return
}

// -----

// collective_start C4: a reduction without its id
func.func private @body(%call: !rt.call, %x: memref<8xf32>) {
  // expected-error @below {{expects the id of the reduction}}
  rt.collective_start %call all_reduce kv slot 0 %x into %x {inner = 8 : i64, local = 1 : i64, outer = 1 : i64, ranks = 2 : i64} : memref<8xf32>, memref<8xf32>
  return
}

// -----

// collective_start C4: a shift that sums
func.func private @body(%call: !rt.call, %x: memref<8xf32>, %y: memref<8xf32>) {
  // expected-error @below {{expects no reduction}}
  rt.collective_start %call shift op max tp slot 0 %x into %y {inner = 1 : i64, local = 8 : i64, outer = 1 : i64, ranks = 2 : i64} : memref<8xf32>, memref<8xf32>
  return
}

// -----

// collective_start C5: a shift in two chunks
func.func private @body(%call: !rt.call, %x: memref<8xf32>, %y: memref<8xf32>) {
  // expected-error @below {{expects two_chunk on an even part of an all_gather or a reduce_scatter, not on 8 of shift}}
  rt.collective_start %call shift tp slot 0 %x into %y {inner = 1 : i64, local = 8 : i64, outer = 1 : i64, ranks = 2 : i64, two_chunk} : memref<8xf32>, memref<8xf32>
  return
}

// -----

// collective_start C4: a gather with one
func.func private @body(%call: !rt.call, %x: memref<8xf32>, %y: memref<16xf32>) {
  // expected-error @below {{expects no reduction}}
  rt.collective_start %call all_gather tp slot 0 %x into %y {inner = 1 : i64, local = 8 : i64, outer = 1 : i64, ranks = 2 : i64, reduction = 0 : i32} : memref<8xf32>, memref<16xf32>
  return
}

// -----

// collective_start C5
func.func private @body(%call: !rt.call, %x: memref<7xf32>, %y: memref<14xf32>) {
  // expected-error @below {{expects two_chunk on an even part of an all_gather or a reduce_scatter, not on 7 of all_gather}}
  rt.collective_start %call all_gather cp slot 0 %x into %y {inner = 1 : i64, local = 7 : i64, outer = 1 : i64, ranks = 2 : i64, two_chunk} : memref<7xf32>, memref<14xf32>
  return
}

// -----

// collective_wait C1
func.func private @body(%call: !rt.call) {
  // expected-error @below {{expects a slot from 0 to 15, not -1}}
  rt.collective_wait %call slot -1
  return
}
