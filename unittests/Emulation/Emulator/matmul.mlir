// c = a * b of bf16, 32 x 64 by 64 x 32, f32 out: one block of 4 warps, each with 16 rows by 16 columns. Both operands
// come by cp.async in rows of 128 (a) and 64 (b) bytes; 16-byte chunks of a row are permuted by its number, so that the
// eight rows of one ldmatrix lie in different banks.
gpu.module @kernels {
  llvm.mlir.global external @tiles() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>

  llvm.func @matmul(%a: !llvm.ptr<1> {llvm.noalias, llvm.readonly, llvm.align = 16 : i64, llvm.dereferenceable = 4096 : i64},
                    %b: !llvm.ptr<1> {llvm.noalias, llvm.readonly, llvm.align = 16 : i64, llvm.dereferenceable = 4096 : i64},
                    %c: !llvm.ptr<1> {llvm.noalias, llvm.align = 16 : i64, llvm.dereferenceable = 4096 : i64})
      attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>, drover.shared_bytes = 8192 : i64} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %c4 = arith.constant 4 : i32
    %c7 = arith.constant 7 : i32
    %c8 = arith.constant 8 : i32
    %c16 = arith.constant 16 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant 128 : i32
    %c256 = arith.constant 256 : i32
    %c4096 = arith.constant 4096 : i32
    %shared = llvm.mlir.addressof @tiles : !llvm.ptr<3>
    // 256 chunks of each operand, two a thread.
    scf.for %i = %tid to %c256 step %c128 : i32 {
      %from = arith.muli %i, %c16 : i32
      %arow = arith.divui %i, %c8 : i32
      %achunk = arith.remui %i, %c8 : i32
      %aphase = arith.andi %arow, %c7 : i32
      %aswizzled = arith.xori %achunk, %aphase : i32
      %aslot = arith.muli %arow, %c8 : i32
      %aslot2 = arith.addi %aslot, %aswizzled : i32
      %ato = arith.muli %aslot2, %c16 : i32
      %pa = llvm.getelementptr %a[%from] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      %sa = llvm.getelementptr %shared[%ato] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      nvvm.cp.async.shared.global %sa, %pa, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
      %brow = arith.divui %i, %c4 : i32
      %bchunk = arith.remui %i, %c4 : i32
      %bhalf = arith.shrui %brow, %c1 : i32
      %bphase = arith.andi %bhalf, %c3 : i32
      %bswizzled = arith.xori %bchunk, %bphase : i32
      %bslot = arith.muli %brow, %c4 : i32
      %bslot2 = arith.addi %bslot, %bswizzled : i32
      %bto0 = arith.muli %bslot2, %c16 : i32
      %bto = arith.addi %bto0, %c4096 : i32
      %pb = llvm.getelementptr %b[%from] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      %sb = llvm.getelementptr %shared[%bto] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      nvvm.cp.async.shared.global %sb, %pb, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    }
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    nvvm.barrier0
    %lane = arith.remui %tid, %c32 : i32
    %warp = arith.divui %tid, %c32 : i32
    %half = arith.divui %warp, %c2 : i32
    %other = arith.remui %warp, %c2 : i32
    %row0 = arith.muli %half, %c16 : i32
    %column0 = arith.muli %other, %c16 : i32
    %lane16 = arith.remui %lane, %c16 : i32
    %upper = arith.divui %lane, %c16 : i32
    %zero = arith.constant 0.0 : f32
    %acc:8 = scf.for %k = %c0 to %c64 step %c16
        iter_args(%d0 = %zero, %d1 = %zero, %d2 = %zero, %d3 = %zero, %e0 = %zero, %e1 = %zero, %e2 = %zero, %e3 = %zero)
        -> (f32, f32, f32, f32, f32, f32, f32, f32) : i32 {
      %arow = arith.addi %row0, %lane16 : i32
      %kchunk = arith.divui %k, %c8 : i32
      %achunk = arith.addi %kchunk, %upper : i32
      %aphase = arith.andi %arow, %c7 : i32
      %aswizzled = arith.xori %achunk, %aphase : i32
      %aslot = arith.muli %arow, %c8 : i32
      %aslot2 = arith.addi %aslot, %aswizzled : i32
      %aat = arith.muli %aslot2, %c16 : i32
      %pa = llvm.getelementptr %shared[%aat] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %fa = nvvm.ldmatrix %pa {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
      %brow = arith.addi %k, %lane16 : i32
      %cchunk = arith.divui %column0, %c8 : i32
      %bchunk = arith.addi %cchunk, %upper : i32
      %bhalf = arith.shrui %brow, %c1 : i32
      %bphase = arith.andi %bhalf, %c3 : i32
      %bswizzled = arith.xori %bchunk, %bphase : i32
      %bslot = arith.muli %brow, %c4 : i32
      %bslot2 = arith.addi %bslot, %bswizzled : i32
      %bat0 = arith.muli %bslot2, %c16 : i32
      %bat = arith.addi %bat0, %c4096 : i32
      %pb = llvm.getelementptr %shared[%bat] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %fb = nvvm.ldmatrix %pb {num = 4 : i32, layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
      %a0 = llvm.extractvalue %fa[0] : !llvm.struct<(i32, i32, i32, i32)>
      %a1 = llvm.extractvalue %fa[1] : !llvm.struct<(i32, i32, i32, i32)>
      %a2 = llvm.extractvalue %fa[2] : !llvm.struct<(i32, i32, i32, i32)>
      %a3 = llvm.extractvalue %fa[3] : !llvm.struct<(i32, i32, i32, i32)>
      %b0 = llvm.extractvalue %fb[0] : !llvm.struct<(i32, i32, i32, i32)>
      %b1 = llvm.extractvalue %fb[1] : !llvm.struct<(i32, i32, i32, i32)>
      %b2 = llvm.extractvalue %fb[2] : !llvm.struct<(i32, i32, i32, i32)>
      %b3 = llvm.extractvalue %fb[3] : !llvm.struct<(i32, i32, i32, i32)>
      %d = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0, %b1] C[%d0, %d1, %d2, %d3]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
        : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
      %e = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b2, %b3] C[%e0, %e1, %e2, %e3]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
        : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
      %n0 = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>
      %n1 = llvm.extractvalue %d[1] : !llvm.struct<(f32, f32, f32, f32)>
      %n2 = llvm.extractvalue %d[2] : !llvm.struct<(f32, f32, f32, f32)>
      %n3 = llvm.extractvalue %d[3] : !llvm.struct<(f32, f32, f32, f32)>
      %m0 = llvm.extractvalue %e[0] : !llvm.struct<(f32, f32, f32, f32)>
      %m1 = llvm.extractvalue %e[1] : !llvm.struct<(f32, f32, f32, f32)>
      %m2 = llvm.extractvalue %e[2] : !llvm.struct<(f32, f32, f32, f32)>
      %m3 = llvm.extractvalue %e[3] : !llvm.struct<(f32, f32, f32, f32)>
      scf.yield %n0, %n1, %n2, %n3, %m0, %m1, %m2, %m3 : f32, f32, f32, f32, f32, f32, f32, f32
    }
    %group = arith.divui %lane, %c4 : i32
    %member = arith.remui %lane, %c4 : i32
    %row = arith.addi %row0, %group : i32
    %pair = arith.muli %member, %c2 : i32
    %column = arith.addi %column0, %pair : i32
    %line = arith.muli %row, %c32 : i32
    %at = arith.addi %line, %column : i32
    %at8 = arith.addi %at, %c256 : i32
    %right = arith.addi %at, %c8 : i32
    %right8 = arith.addi %at8, %c8 : i32
    %v0 = vector.from_elements %acc#0, %acc#1 : vector<2xf32>
    %v1 = vector.from_elements %acc#2, %acc#3 : vector<2xf32>
    %v2 = vector.from_elements %acc#4, %acc#5 : vector<2xf32>
    %v3 = vector.from_elements %acc#6, %acc#7 : vector<2xf32>
    %q0 = llvm.getelementptr %c[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %q1 = llvm.getelementptr %c[%at8] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %q2 = llvm.getelementptr %c[%right] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %q3 = llvm.getelementptr %c[%right8] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %v0, %q0 {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
    llvm.store %v1, %q1 {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
    llvm.store %v2, %q2 {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
    llvm.store %v3, %q3 {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
    llvm.return
  }
}
