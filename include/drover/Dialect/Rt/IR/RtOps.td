#ifndef DROVER_DIALECT_RT_IR_RTOPS
#define DROVER_DIALECT_RT_IR_RTOPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Rt_Dialect : Dialect {
  let name = "rt";
  let cppNamespace = "::drover::rt";
  let summary = "compiled bodies: buffers, kernels over index ranges, library calls";
  let description = [{
    A body after `convert-tfm-to-rt`: one function on memrefs whose block is a list of kernel launches and
    library calls, in order. The operations are the functions of the runtime's C ABI
    (runtime/include/drover/rt/abi.h), one to one; layouts are in the memref types. docs/host-lowering.md.
  }];
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerTypes();
    /// Function attribute (unit): a body, with the ABI of docs/body-abi.md once lowered.
    static constexpr ::llvm::StringLiteral kBodyAttr = "rt.body";
    /// Function attribute (unit): a kernel over [begin, end), its first two arguments.
    static constexpr ::llvm::StringLiteral kKernelAttr = "rt.kernel";
    /// Attribute of a kernel of the GPU: what its name starts with (docs/cuda.md).
    static constexpr ::llvm::StringLiteral kKernelNameAttr = "drover.kernel_name";
    /// Function attributes of a lowered body (docs/body-abi.md).
    static constexpr ::llvm::StringLiteral kWorkspaceAttr = "drover.workspace_bytes";
    static constexpr ::llvm::StringLiteral kFlopsAttr = "drover.flops";
    static constexpr ::llvm::StringLiteral kBytesAttr = "drover.bytes";
    /// Function attribute: the collectives of a body in the order in which they start, as `describeCollective` has them;
    /// absent where there are none.
    static constexpr ::llvm::StringLiteral kCollectivesAttr = "drover.collectives";
  }];
}

def Rt_CallType : TypeDef<Rt_Dialect, "Call"> {
  let mnemonic = "call";
  let summary = "the context of one body call (drover_call)";
}

def Rt_Store : I32EnumAttr<"Store", "how a result meets what its memory holds", [
    I32EnumAttrCase<"Overwrite", 0, "overwrite">,
    I32EnumAttrCase<"Add", 1, "add">,
    // Add where the call says that the accumulators hold earlier microbatches, else Overwrite
    I32EnumAttrCase<"Accumulate", 2, "accumulate">
  ]> {
  let cppNamespace = "::drover::rt";
}

def Rt_Causal : I32EnumAttr<"Causal", "alignment of a causal mask", [
    I32EnumAttrCase<"None", 0, "none">,
    I32EnumAttrCase<"TopLeft", 1, "top_left">,
    I32EnumAttrCase<"BottomRight", 2, "bottom_right">
  ]> {
  let cppNamespace = "::drover::rt";
}

def Rt_Axis : I32EnumAttr<"Axis", "axis of the grid of ranks", [
    I32EnumAttrCase<"Tp", 0, "tp">,
    I32EnumAttrCase<"Cp", 1, "cp">,
    I32EnumAttrCase<"Pp", 2, "pp">,
    I32EnumAttrCase<"Dp", 3, "dp">,
    I32EnumAttrCase<"Kv", 4, "kv">,
    I32EnumAttrCase<"Replica", 5, "replica">
  ]> {
  let cppNamespace = "::drover::rt";
}

// The groups over which bodies communicate (docs/step-program.md, Communicators).
def Rt_Communicator : I32EnumAttr<"Communicator", "group of ranks", [
    I32EnumAttrCase<"Tp", 1, "tp">,
    I32EnumAttrCase<"Kv", 2, "kv">,
    I32EnumAttrCase<"Replica", 3, "replica">,
    I32EnumAttrCase<"Cp", 4, "cp">
  ]> {
  let cppNamespace = "::drover::rt";
}

def Rt_CollectiveKind : I32EnumAttr<"CollectiveKind", "collective", [
    I32EnumAttrCase<"AllGather", 0, "all_gather">,
    I32EnumAttrCase<"ReduceScatter", 1, "reduce_scatter">,
    I32EnumAttrCase<"AllReduce", 2, "all_reduce">,
    // A part to the next rank of the group, and one from the rank before
    I32EnumAttrCase<"Shift", 3, "shift">
  ]> {
  let cppNamespace = "::drover::rt";
}

def Rt_Reduction : I32EnumAttr<"Reduction", "reduction", [
    I32EnumAttrCase<"Sum", 0, "sum">,
    I32EnumAttrCase<"Max", 1, "max">
  ]> {
  let cppNamespace = "::drover::rt";
}

class Rt_Op<string mnemonic, list<Trait> traits = []> : Op<Rt_Dialect, mnemonic, traits>;

// Memory is read and written through pointers that the runtime gets: conservative effects.
class Rt_RuntimeOp<string mnemonic, list<Trait> traits = []>
    : Rt_Op<mnemonic, !listconcat([MemoryEffects<[MemRead, MemWrite]>], traits)> {
  let hasVerifier = 1;
}

def Rt_FloatBuffer : StridedMemRefOf<[F32, BF16, F16, F64]>;
def Rt_IdBuffer : StridedMemRefOf<[I32, I64]>;
def Rt_IndexBuffer : MemRefRankOf<[I64], [1]>;
def Rt_Workspace : MemRefRankOf<[I8], [1]>;

def Rt_CallSizeOp : Rt_Op<"call_size", [Pure]> {
  let summary = "the number of elements of a flat body";
  let description = [{
    `drover_call.size`.

    Example:
    ```mlir
    func.func private @f(%call: !rt.call) -> index {
      %0 = rt.call_size %call
      return %0 : index
    }
    ```
  }];
  let arguments = (ins Rt_CallType:$call);
  let results = (outs Index:$size);
  let assemblyFormat = "$call attr-dict";
}

def Rt_CallAccumulatesOp : Rt_Op<"call_accumulates", [Pure]> {
  let summary = "true where the accumulators hold earlier microbatches' sums";
  let description = [{
    `drover_call.accumulate`.

    Example:
    ```mlir
    func.func private @f(%call: !rt.call) -> i1 {
      %0 = rt.call_accumulates %call
      return %0 : i1
    }
    ```
  }];
  let arguments = (ins Rt_CallType:$call);
  let results = (outs I1:$accumulates);
  let assemblyFormat = "$call attr-dict";
}

def Rt_CoordinateOp : Rt_Op<"coordinate", [Pure]> {
  let summary = "the rank's coordinate on an axis of the grid";
  let description = [{
    An element of `drover_call.coordinates`.

    Example:
    ```mlir
    func.func private @f(%call: !rt.call) -> i64 {
      %0 = rt.coordinate %call tp
      return %0 : i64
    }
    ```
  }];
  let arguments = (ins Rt_CallType:$call, Rt_Axis:$axis);
  let results = (outs I64:$coordinate);
  let assemblyFormat = "$call $axis attr-dict";
}

def Rt_CheckIndexOp : Rt_Op<"check_index", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "end the run where an index is out of range";
  let description = [{
    Calls `drover_rt_index_error` with `what` where `index` is not in [low, size). Indices come from files at run time:
    a load or store at one that is out of range would touch other memory.

    C1: `low` is at most `size`.

    Example:
    ```mlir
    func.func private @k(%begin: index, %end: index, %i: i64) attributes {rt.kernel} {
      rt.check_index %i in [-8, 8) of "layer: gather"
      return
    }
    ```
  }];
  let arguments = (ins I64:$index, I64Attr:$low, I64Attr:$size, StrAttr:$what);
  let assemblyFormat = "$index `in` `[` $low `,` $size `)` `of` $what attr-dict";
  let hasVerifier = 1;
}

def Rt_LaunchOp : Rt_Op<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                   MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "run a kernel over the indices [0, count)";
  let description = [{
    `drover_rt_parallel_for`: the pool's threads run the kernel over blocks of at least `grain` indices.
    The kernel's result must not depend on how the range is cut.

    C1: `kernel` names a function with the attribute `rt.kernel`.
    C2: its arguments are two indices and then `operands`; it has no results.
    C3: `grain` is positive.

    Example:
    ```mlir
    func.func private @k(%begin: index, %end: index, %x: memref<64xf32>) attributes {rt.kernel} {
      return
    }
    func.func private @f(%call: !rt.call, %x: memref<64xf32>) {
      %n = arith.constant 4 : index
      rt.launch %call @k count %n grain 1 (%x) : memref<64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Rt_CallType:$call, FlatSymbolRefAttr:$kernel, Index:$count, I64Attr:$grain,
                       Variadic<AnyType>:$kernel_operands);
  let assemblyFormat = [{
    $call $kernel `count` $count `grain` $grain `(` $kernel_operands `)` attr-dict (`:` type($kernel_operands)^)?
  }];
  let hasVerifier = 1;
}

def Rt_GpuLaunchOp : Rt_Op<"gpu_launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                          MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "run a kernel of the GPU on a grid of blocks";
  let description = [{
    `drover_rt_gpu_launch`: enqueues the kernel on the call's stream (docs/cuda.md). A kernel that reads indices from
    memory has `check`, which says whose indices they are, and two arguments more, which the runtime gives: a number
    and the error words, to which the first index that is out of range goes.

    C1: `kernel` names a function with `nvvm.kernel` in a gpu.module.
    C2: its arguments are a pointer for each buffer, an i64 for each number, and with `check` an i64 and a pointer.
    C3: `kernel` has `nvvm.reqntid`, the size of its blocks, and `drover.shared_bytes`.

    Example:
    ```mlir
    gpu.module @copy {
      llvm.func @copy(%x: !llvm.ptr<1>, %n: i64) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>, drover.shared_bytes = 0 : i64} {
        llvm.return
      }
    }
    func.func private @f(%call: !rt.call, %x: memref<64xf32>, %n: i64) {
      %blocks = arith.constant 4 : index
      rt.gpu_launch %call @copy::@copy blocks %blocks (%x, %n) : memref<64xf32>, i64
      return
    }
    ```
  }];
  let arguments = (ins Rt_CallType:$call, SymbolRefAttr:$kernel, Index:$blocks,
                       Variadic<AnyTypeOf<[AnyStridedMemRef, I64]>>:$kernel_operands, OptionalAttr<StrAttr>:$check);
  let assemblyFormat = [{
    $call $kernel `blocks` $blocks `(` $kernel_operands `)` (`check` $check^)? attr-dict
    (`:` type($kernel_operands)^)?
  }];
  let extraClassDeclaration = [{
    /// The kernel's function attribute: bytes of shared memory of a block, in all.
    static constexpr ::llvm::StringLiteral kSharedBytesAttr = "drover.shared_bytes";
    /// The kernel; null where it is missing.
    ::mlir::Operation *lookupKernel();
  }];
}

def Rt_MatmulOp : Rt_RuntimeOp<"matmul"> {
  let summary = "matrix product by the tuned library";
  let description = [{
    `drover_rt_matmul`: result (store) lhs * rhs, where `trans_lhs` says that lhs is stored [k, m] and
    `trans_rhs` that rhs is stored [n, k]. With rank 3 the first dimension is the batch.

    C1: the three have one rank, 2 or 3, and a unit stride in the last dimension.
    C2: the sizes agree.
    C3: lhs and rhs have one element type, f32 or bf16; the result's is f32 or bf16.

    Example:
    ```mlir
    func.func private @f(%call: !rt.call, %x: memref<16x64xf32>, %w: memref<176x64xf32>, %y: memref<16x176xf32>) {
      rt.matmul %call %x, %w into %y overwrite {trans_rhs} : memref<16x64xf32>, memref<176x64xf32>, memref<16x176xf32>
      return
    }
    ```
  }];
  let arguments = (ins Rt_CallType:$call, Rt_FloatBuffer:$lhs, Rt_FloatBuffer:$rhs, Rt_FloatBuffer:$result,
                       Rt_Store:$store, UnitAttr:$trans_lhs, UnitAttr:$trans_rhs);
  let assemblyFormat = [{
    $call $lhs `,` $rhs `into` $result $store attr-dict `:` type($lhs) `,` type($rhs) `,` type($result)
  }];
}

class Rt_AttentionBase<string mnemonic> : Rt_RuntimeOp<mnemonic, [AttrSizedOperandSegments]> {
  dag masks = (ins Optional<AnyStridedMemRef>:$mask, Optional<AnyStridedMemRef>:$key_mask,
                   Optional<Rt_IdBuffer>:$documents, Optional<Rt_IndexBuffer>:$query_index);
  dag settings = (ins I64Attr:$num_heads, I64Attr:$num_kv_heads, F64Attr:$scale, Rt_Causal:$causal,
                      OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$softcap,
                      OptionalAttr<DenseF32ArrayAttr>:$alibi_slopes);
}

def Rt_AttentionOp : Rt_AttentionBase<"attention"> {
  let summary = "scaled dot-product attention by the runtime";
  let description = [{
    `drover_rt_attention`; semantics and shapes of `tfm.attention`. Rows may be strided, so that the
    slices of a packed projection are read in place. `mask` has size 1 where it is broadcast.

    C1: query, key, value and result have rank 3, one element type (f32 or bf16), a unit stride in the
        last dimension, and a batch stride that is the length times the row stride.
    C2: log_sum_exp is contiguous f32.
    C3: query_index is contiguous.

    Example:
    ```mlir
    func.func private @f(%call: !rt.call, %q: memref<2x8x64xf32>, %k: memref<2x8x16xf32>, %o: memref<2x8x64xf32>,
                         %l: memref<2x8x8xf32>, %ws: memref<512xi8>) {
      rt.attention %call %q, %k, %k into %o, %l workspace %ws {causal = 1 : i32, num_heads = 8 : i64, num_kv_heads = 2 : i64, scale = 0.125 : f64}
        : memref<2x8x64xf32>, memref<2x8x16xf32>, memref<2x8x16xf32>, memref<2x8x64xf32>, memref<2x8x8xf32>, memref<512xi8>
      return
    }
    ```
  }];
  let arguments = !con((ins Rt_CallType:$call, Rt_FloatBuffer:$query, Rt_FloatBuffer:$key, Rt_FloatBuffer:$value),
                       masks,
                       (ins Rt_FloatBuffer:$result, Rt_FloatBuffer:$log_sum_exp, Rt_Workspace:$workspace), settings);
  let assemblyFormat = [{
    $call $query `,` $key `,` $value (`mask` $mask^ `:` type($mask))? (`key_mask` $key_mask^ `:` type($key_mask))?
    (`documents` $documents^ `:` type($documents))? (`query_index` $query_index^ `:` type($query_index))?
    `into` $result `,` $log_sum_exp `workspace` $workspace attr-dict
    `:` type($query) `,` type($key) `,` type($value) `,` type($result) `,` type($log_sum_exp) `,` type($workspace)
  }];
}

def Rt_AttentionGradOp : Rt_AttentionBase<"attention_grad"> {
  let summary = "gradients of attention by the runtime";
  let description = [{
    `drover_rt_attention_grad`; semantics and shapes of `tfm.attention_grad`.

    C1: the constraints of `rt.attention`; query_grad has the element type of query, key_grad and
        value_grad one of their own (f32 or bf16).

    Example:
    ```mlir
    func.func private @f(%call: !rt.call, %q: memref<2x8x64xf32>, %k: memref<2x8x16xf32>, %l: memref<2x8x8xf32>,
                         %ws: memref<512xi8>) {
      rt.attention_grad %call %q, %k, %k, %q, %l, %q into %q, %k, %k workspace %ws {causal = 0 : i32, num_heads = 8 : i64, num_kv_heads = 2 : i64, scale = 0.125 : f64}
        : memref<2x8x64xf32>, memref<2x8x16xf32>, memref<2x8x16xf32>, memref<2x8x64xf32>, memref<2x8x8xf32>, memref<2x8x64xf32>, memref<2x8x64xf32>, memref<2x8x16xf32>, memref<2x8x16xf32>, memref<512xi8>
      return
    }
    ```
  }];
  let arguments = !con((ins Rt_CallType:$call, Rt_FloatBuffer:$query, Rt_FloatBuffer:$key, Rt_FloatBuffer:$value,
                            Rt_FloatBuffer:$result, Rt_FloatBuffer:$log_sum_exp, Rt_FloatBuffer:$gradient),
                       masks,
                       (ins Rt_FloatBuffer:$query_grad, Rt_FloatBuffer:$key_grad, Rt_FloatBuffer:$value_grad,
                            Rt_Workspace:$workspace), settings);
  let assemblyFormat = [{
    $call $query `,` $key `,` $value `,` $result `,` $log_sum_exp `,` $gradient (`mask` $mask^ `:` type($mask))?
    (`key_mask` $key_mask^ `:` type($key_mask))? (`documents` $documents^ `:` type($documents))?
    (`query_index` $query_index^ `:` type($query_index))? `into` $query_grad `,` $key_grad `,` $value_grad `workspace` $workspace attr-dict
    `:` type($query) `,` type($key) `,` type($value) `,` type($result) `,` type($log_sum_exp) `,` type($gradient)
    `,` type($query_grad) `,` type($key_grad) `,` type($value_grad) `,` type($workspace)
  }];
}

def Rt_EmbeddingGradOp : Rt_RuntimeOp<"embedding_grad"> {
  let summary = "gradient of an embedding table by the runtime";
  let description = [{
    `drover_rt_embedding_grad`: table[v, :] (store) the sum in position order of gradient[p, :] with
    ids[p] = v. With `offset`, an element, the table is a part of a longer one: ids[p] - offset = v.

    C1: ids has rank 1, gradient and table rank 2; all are contiguous; table is f32.
    C2: the sizes agree.
    C3: offset has one element.

    Example:
    ```mlir
    func.func private @f(%call: !rt.call, %ids: memref<16xi64>, %dy: memref<16x64xf32>, %dt: memref<256x64xf32>) {
      rt.embedding_grad %call %ids, %dy into %dt accumulate : memref<16xi64>, memref<16x64xf32>, memref<256x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Rt_CallType:$call, Rt_IdBuffer:$ids, Rt_FloatBuffer:$gradient, Optional<Rt_IndexBuffer>:$offset,
                       Rt_FloatBuffer:$table, Rt_Store:$store);
  let assemblyFormat = [{
    $call $ids `,` $gradient (`offset` $offset^ `:` type($offset))? `into` $table $store attr-dict
    `:` type($ids) `,` type($gradient) `,` type($table)
  }];
}

def Rt_CollectiveStartOp : Rt_RuntimeOp<"collective_start"> {
  let summary = "start a collective of a group of ranks";
  let description = [{
    `drover_rt_collective_start`: both buffers belong to the collective until the `rt.collective_wait` of its
    slot. A buffer is [outer, dim, inner], dim being the dimension that is gathered or scattered, `local` a rank's
    part of it; with `two_chunk` the part is chunks i and 2n-1-i, each local/2 long (docs/communication.md).
    `reduction` is the id of the typed reduction that a sum or maximum discharges. `ranks` is the group's size.

    C1: `in` and `out` are contiguous and have one element type, of all_reduce and reduce_scatter f32, bf16, f64 or i64.
    C2: `slot` is at least 0 and below 16 (DROVER_MAX_IN_FLIGHT).
    C3: ranks, outer, local and inner are positive; `in` and `out` have outer * local * inner elements, times
        `ranks` the `out` of all_gather and the `in` of reduce_scatter.
    C4: `reduction` is given for all_reduce and reduce_scatter, not for all_gather, and for a shift where it moves the
        partial sums of a reduction; the op of all_gather and shift is sum.
    C5: with `two_chunk` local is even, and the kind is all_gather or reduce_scatter.

    Example:
    ```mlir
    func.func private @f(%call: !rt.call, %x: memref<2x4x64xbf16>, %y: memref<2x16x64xbf16>) {
      rt.collective_start %call all_gather tp slot 0 %x into %y {inner = 64 : i64, local = 4 : i64, outer = 2 : i64, ranks = 4 : i64}
        : memref<2x4x64xbf16>, memref<2x16x64xbf16>
      rt.collective_wait %call slot 0
      return
    }
    ```
  }];
  let arguments = (ins Rt_CallType:$call, Rt_CollectiveKind:$kind, Rt_Communicator:$communicator,
                       DefaultValuedAttr<Rt_Reduction, "::drover::rt::Reduction::Sum">:$op, I32Attr:$slot,
                       AnyStridedMemRef:$in, AnyStridedMemRef:$out,
                       I64Attr:$ranks, I64Attr:$outer, I64Attr:$local, I64Attr:$inner, UnitAttr:$two_chunk,
                       OptionalAttr<I32Attr>:$reduction);
  let assemblyFormat = [{
    $call $kind (`op` $op^)? $communicator `slot` $slot $in `into` $out attr-dict `:` type($in) `,` type($out)
  }];
}

def Rt_CollectiveWaitOp : Rt_RuntimeOp<"collective_wait"> {
  let summary = "wait for the collective of a slot";
  let description = [{
    `drover_rt_collective_wait`.

    C1: `slot` is at least 0 and below 16 (DROVER_MAX_IN_FLIGHT).

    Example:
    ```mlir
    func.func private @f(%call: !rt.call) {
      rt.collective_wait %call slot 3
      return
    }
    ```
  }];
  let arguments = (ins Rt_CallType:$call, I32Attr:$slot);
  let assemblyFormat = "$call `slot` $slot attr-dict";
}

#endif // DROVER_DIALECT_RT_IR_RTOPS
