// RUN: %drover-opt %s --convert-rt-to-llvm | FileCheck %s

// CHECK-DAG: func.func private @drover_rt_collective_start(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i32)
// CHECK-DAG: func.func private @drover_rt_collective_wait(!llvm.ptr, i32)
// CHECK-DAG: llvm.mlir.global internal constant @[[DESC:drover_descriptor_1]]
// CHECK: func.func @body
func.func private @body(%x: memref<8xbf16>, %y: memref<16xbf16>, %n: memref<1xi64>, %ws: memref<0xi8>, %call: !rt.call) attributes {rt.body} {
  // CHECK: %[[D:.*]] = llvm.mlir.addressof @[[DESC]]
  // CHECK: call @drover_rt_collective_start(%{{.*}}, %[[D]], %{{.*}}, %{{.*}}, %{{.*}})
  rt.collective_start %call all_gather kv slot 3 %x into %y {inner = 2 : i64, local = 4 : i64, outer = 1 : i64, ranks = 2 : i64, two_chunk} : memref<8xbf16>, memref<16xbf16>
  // The third coordinate's address is 4 * DROVER_AXIS_KV behind the pointer at its place in drover_call.
  // CHECK: %[[COORDINATES:.*]] = llvm.load %{{.*}} : !llvm.ptr -> !llvm.ptr
  // CHECK: %[[PLACE:.*]] = llvm.getelementptr %[[COORDINATES]][4] : (!llvm.ptr) -> !llvm.ptr, i32
  // CHECK: %[[KV:.*]] = llvm.load %[[PLACE]] : !llvm.ptr -> i32
  // CHECK: arith.extsi %[[KV]] : i32 to i64
  %kv = rt.coordinate %call kv
  %zero = arith.constant 0 : index
  memref.store %kv, %n[%zero] : memref<1xi64>
  // CHECK: call @drover_rt_collective_wait
  rt.collective_wait %call slot 3
  return
}
