// out[row] = x[row] * rsqrt(mean(x[row]^2) + eps): one block of 128 threads a row of 250 bf16 values, sums by warp
// shuffles and then over the warps through shared memory.
gpu.module @kernels {
  llvm.mlir.global internal @sums() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<4 x f32>

  llvm.func @rms_norm(%x: !llvm.ptr<1> {llvm.noalias, llvm.readonly, llvm.dereferenceable = 2500 : i64},
                      %out: !llvm.ptr<1> {llvm.noalias, llvm.dereferenceable = 2500 : i64},
                      %eps: f32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>, drover.shared_bytes = 16 : i64} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %row = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = arith.constant 0.0 : f32
    %width = arith.constant 250 : i32
    %threads = arith.constant 128 : i32
    %start = arith.muli %row, %width : i32
    %sum = scf.for %i = %tid to %width step %threads iter_args(%acc = %zero) -> (f32) : i32 {
      %at = arith.addi %start, %i : i32
      %p = llvm.getelementptr %x[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, bf16
      %half = llvm.load %p : !llvm.ptr<1> -> bf16
      %v = arith.extf %half : bf16 to f32
      %next = math.fma %v, %v, %acc : f32
      scf.yield %next : f32
    }
    %all = arith.constant -1 : i32
    %clamp = arith.constant 31 : i32
    %one = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %total:2 = scf.while (%offset = %c16, %acc = %sum) : (i32, f32) -> (i32, f32) {
      %c0 = arith.constant 0 : i32
      %more = arith.cmpi sgt, %offset, %c0 : i32
      scf.condition(%more) %offset, %acc : i32, f32
    } do {
    ^bb0(%offset: i32, %acc: f32):
      %other = nvvm.shfl.sync bfly %all, %acc, %offset, %clamp : f32 -> f32
      %next = arith.addf %acc, %other : f32
      %half = arith.shrui %offset, %one : i32
      scf.yield %half, %next : i32, f32
    }
    %c32 = arith.constant 32 : i32
    %lane = arith.remui %tid, %c32 : i32
    %warp = arith.divui %tid, %c32 : i32
    %c0 = arith.constant 0 : i32
    %leader = arith.cmpi eq, %lane, %c0 : i32
    %shared = llvm.mlir.addressof @sums : !llvm.ptr<3>
    scf.if %leader {
      %slot = llvm.getelementptr %shared[%warp] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      llvm.store %total#1, %slot : f32, !llvm.ptr<3>
    }
    nvvm.barrier0
    %four = llvm.load %shared {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
    %squares = vector.reduction <add>, %four : vector<4xf32> into f32
    %count = arith.constant 250.0 : f32
    %mean = arith.divf %squares, %count : f32
    %shifted = arith.addf %mean, %eps : f32
    %scale = llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"(%shifted) : (f32) -> f32
    scf.for %i = %tid to %width step %threads : i32 {
      %at = arith.addi %start, %i : i32
      %p = llvm.getelementptr %x[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, bf16
      %half = llvm.load %p : !llvm.ptr<1> -> bf16
      %v = arith.extf %half : bf16 to f32
      %scaled = arith.mulf %v, %scale : f32
      %rounded = arith.truncf %scaled : f32 to bf16
      %q = llvm.getelementptr %out[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, bf16
      llvm.store %rounded, %q : bf16, !llvm.ptr<1>
    }
    llvm.return
  }
}
