// out[i] = a[i] + b[i] of 1000 floats by blocks of 128 threads, four elements a thread: 250 vector accesses, a guard
// for the threads of the last block that have none.
gpu.module @kernels {
  llvm.func @vector_add(%a: !llvm.ptr<1> {llvm.noalias, llvm.readonly, llvm.align = 16 : i64, llvm.dereferenceable = 4000 : i64},
                        %b: !llvm.ptr<1> {llvm.noalias, llvm.readonly, llvm.align = 16 : i64, llvm.dereferenceable = 4000 : i64},
                        %out: !llvm.ptr<1> {llvm.noalias, llvm.align = 16 : i64, llvm.dereferenceable = 4000 : i64},
                        %count: i64) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %block = nvvm.read.ptx.sreg.ctaid.x : i32
    %threads = nvvm.read.ptx.sreg.ntid.x : i32
    %first = arith.muli %block, %threads : i32
    %index = arith.addi %first, %tid : i32
    %wide = arith.extui %index : i32 to i64
    %four = arith.constant 4 : i64
    %at = arith.muli %wide, %four : i64
    %inside = arith.cmpi slt, %at, %count : i64
    scf.if %inside {
      %pa = llvm.getelementptr %a[%at] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      %pb = llvm.getelementptr %b[%at] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      %po = llvm.getelementptr %out[%at] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      %x = llvm.load %pa {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
      %y = llvm.load %pb {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
      %sum = arith.addf %x, %y : vector<4xf32>
      llvm.store %sum, %po {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    }
    llvm.return
  }

  // The same with a guard that lets one thread too many through.
  llvm.func @vector_add_overrun(%a: !llvm.ptr<1> {llvm.readonly, llvm.dereferenceable = 4000 : i64},
                                %out: !llvm.ptr<1> {llvm.dereferenceable = 4000 : i64},
                                %count: i64) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %block = nvvm.read.ptx.sreg.ctaid.x : i32
    %threads = nvvm.read.ptx.sreg.ntid.x : i32
    %first = arith.muli %block, %threads : i32
    %index = arith.addi %first, %tid : i32
    %wide = arith.extui %index : i32 to i64
    %inside = arith.cmpi sle, %wide, %count : i64
    scf.if %inside {
      %pa = llvm.getelementptr %a[%wide] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      %po = llvm.getelementptr %out[%wide] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      %x = llvm.load %pa : !llvm.ptr<1> -> f32
      llvm.store %x, %po : f32, !llvm.ptr<1>
    }
    llvm.return
  }
}
