#ifndef DROVER_TARGET_CUDA_PASSES
#define DROVER_TARGET_CUDA_PASSES

include "mlir/Pass/PassBase.td"

def CudaNameKernels : Pass<"cuda-name-kernels", "mlir::ModuleOp"> {
  let summary = "name kernels of the GPU by what they do, and share equal ones";
  let description = [{
    Gives each gpu.module, and the kernel of its name in it, the name NAME_HASH of docs/cuda.md: HASH is of the
    module's text without its name and locations. Of equal kernels one stays, with the NAME of theirs that is first in the
    order of letters; launches follow.
    Expects: gpu.modules as `convert-tfm-to-rt` makes them, in the LLVM dialect.
    Guarantees: kernels of one name are equal, in any program; equal kernels of one program have one name.
  }];
  let statistics = [Statistic<"numShared", "shared", "kernels that another one stands for">];
}

#endif // DROVER_TARGET_CUDA_PASSES
