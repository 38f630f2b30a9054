// RUN: %drover-opt %s --convert-rt-to-llvm | FileCheck %s

// Equal descriptors are one constant; kernels get their operands by pointers.
// CHECK: func.func private @drover_rt_matmul(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr)
// CHECK: llvm.mlir.global internal constant @[[DESC:drover_descriptor_1]]({{.*}}) {{.*}}alignment = 8
// CHECK-NOT: @drover_descriptor_2
// CHECK: func.func private @drover_rt_parallel_for(!llvm.ptr, !llvm.ptr, i64, i64, !llvm.ptr)
// CHECK: func.func private @kernel(%{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr) attributes {llvm.linkage = #llvm.linkage<internal>
func.func private @kernel(%begin: index, %end: index, %x: memref<32xf32>) attributes {rt.kernel} {
  return
}
// CHECK: func.func @body(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)
func.func private @body(%a: memref<32xf32>, %b: memref<48xf32>, %c: memref<24xf32>, %ws: memref<0xi8>, %call: !rt.call) attributes {rt.body} {
  %n = arith.constant 4 : index
  %a2 = memref.reinterpret_cast %a to offset: [0], sizes: [4, 8], strides: [8, 1] : memref<32xf32> to memref<4x8xf32>
  %b2 = memref.reinterpret_cast %b to offset: [0], sizes: [6, 8], strides: [8, 1] : memref<48xf32> to memref<6x8xf32>
  %c2 = memref.reinterpret_cast %c to offset: [0], sizes: [4, 6], strides: [6, 1] : memref<24xf32> to memref<4x6xf32>
  // CHECK: call @drover_rt_parallel_for
  rt.launch %call @kernel count %n grain 2 (%a) : memref<32xf32>
  // CHECK: llvm.mlir.addressof @[[DESC]]
  // CHECK: call @drover_rt_matmul
  rt.matmul %call %a2, %b2 into %c2 add {trans_rhs} : memref<4x8xf32>, memref<6x8xf32>, memref<4x6xf32>
  // CHECK: call @drover_rt_matmul
  rt.matmul %call %a2, %b2 into %c2 add {trans_rhs} : memref<4x8xf32>, memref<6x8xf32>, memref<4x6xf32>
  return
}
