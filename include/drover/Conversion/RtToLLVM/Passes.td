#ifndef DROVER_CONVERSION_RTTOLLVM_PASSES
#define DROVER_CONVERSION_RTTOLLVM_PASSES

include "mlir/Pass/PassBase.td"

def RtExpandMath : Pass<"rt-expand-math"> {
  let summary = "polynomials for the functions of kernels";
  let description = [{
    Replaces f32 exp, tanh, erf, log, sin and cos, on scalars and vectors, by straight-line arithmetic: a
    library call a lane would cost more than the kernel. Errors are below 2 units in the last place (4 for
    erf; sin and cos up to angles of 1e9); infinities and NaN are honored. With `wide` f64 log too, where there is
    no library: a GPU.
    Expects: nothing. Guarantees: none of these functions is left in f32.
  }];
  let options = [Option<"wide", "wide", "bool", "false", "log in f64 too">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

def ConvertRtToLLVM : Pass<"convert-rt-to-llvm", "mlir::ModuleOp"> {
  let summary = "bodies and kernels with the ABI of the runtime";
  let description = [{
    Gives bodies the signature of `drover_body_fn` and kernels that of `drover_kernel_fn`, and turns
    launches, library calls and checks into calls of the runtime with constant descriptors
    (runtime/include/drover/rt/abi.h). Memrefs stay, cast from and to descriptors of pointers, for
    `finalize-memref-to-llvm`.
    Expects: `rt.body` and `rt.kernel` functions without other calls. Guarantees: no `rt` op is left.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect"];
}

#endif // DROVER_CONVERSION_RTTOLLVM_PASSES
