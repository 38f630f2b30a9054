// RUN: %drover-opt %s --convert-rt-to-llvm | FileCheck %s

// One unsigned comparison covers both ends; the name is constant data.
// CHECK: func.func private @drover_rt_index_error(!llvm.ptr, i64, i64, i64)
// CHECK: llvm.mlir.global internal constant @[[NAME:drover_descriptor_[0-9]+]](dense<[98, 58, 32, 103, 0]> : tensor<5xi8>)
// CHECK: func.func private @kernel
// CHECK: %[[I:.*]] = memref.load
// CHECK: %[[LOW:.*]] = llvm.mlir.constant(-8 : i64)
// CHECK: %[[ABOVE:.*]] = llvm.sub %[[I]], %[[LOW]]
// CHECK: %[[SPAN:.*]] = llvm.mlir.constant(16 : i64)
// CHECK: %[[OUT:.*]] = arith.cmpi uge, %[[ABOVE]], %[[SPAN]]
// CHECK: scf.if %[[OUT]] {
// CHECK: %[[WHAT:.*]] = llvm.mlir.addressof @[[NAME]]
// CHECK: call @drover_rt_index_error(%[[WHAT]], %[[I]], %{{.*}}, %{{.*}})
// CHECK-NEXT: }
func.func private @kernel(%begin: index, %end: index, %x: memref<32xi64>) attributes {rt.kernel} {
  %i = memref.load %x[%begin] : memref<32xi64>
  rt.check_index %i in [-8, 8) of "b: g"
  return
}
