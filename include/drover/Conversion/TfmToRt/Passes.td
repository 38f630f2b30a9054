#ifndef DROVER_CONVERSION_TFMTORT_PASSES
#define DROVER_CONVERSION_TFMTORT_PASSES

include "mlir/Pass/PassBase.td"

def ConvertTfmToRt : Pass<"convert-tfm-to-rt", "mlir::ModuleOp"> {
  let summary = "bodies on tensors to kernels and library calls on memrefs";
  let description = [{
    Each function with `tfm.body` becomes a function on flat memrefs (operands, results that are not in
    place, workspace, call) whose block launches kernels and calls the runtime (docs/host-lowering.md). For the
    host a kernel is a function over a range of indices; for cuda one in a gpu.module of its own (docs/cuda.md).
    `@microbatch` is erased: the step program calls the bodies from here on.
    Expects: straight-line `tfm`, `arith` and `math` on static tensors; rank 1 and dynamic in flat bodies.
    Guarantees: no tensor is left in a body; results do not depend on the number of threads.
    Does not check: that ids and labels lie within the sizes they index.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"host\"", "what bodies are compiled for: host or cuda">,
    Option<"lanes", "lanes", "unsigned", "16", "elements of a vector in kernels">,
    Option<"tpOverlap", "tp-overlap", "std::string", "\"none\"",
           "what runs beside a collective of tensor parallelism: none, or bulk: a matmul that does not depend on it">,
    Option<"attention", "attention", "std::string", "\"generated\"",
           "attention of the cuda target: generated (mma.sync); wgmma where there are such kernels: bf16, heads of 64 and 128, at least 64 queries and keys; cudnn where nothing speaks against it">
  ];
  let statistics = [
    Statistic<"numBodies", "bodies", "bodies converted">,
    Statistic<"numKernels", "kernels", "kernel launches emitted">
  ];
  let dependentDialects = ["::drover::rt::RtDialect", "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
                           "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // DROVER_CONVERSION_TFMTORT_PASSES
