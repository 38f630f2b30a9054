#ifndef DROVER_DIALECT_TFM_IR_TFMOPS
#define DROVER_DIALECT_TFM_IR_TFMOPS

include "drover/Dialect/Tfm/IR/TfmDialect.td"
include "drover/Dialect/Tfm/IR/TfmAttrs.td"
include "drover/Dialect/Tfm/IR/TfmInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"

// How an op takes part in the partition: most only say their factors.
def Tfm_Factors : DeclareOpInterfaceMethods<PartitionOpInterface, ["getFactors"]>;
// Ops whose local form differs from the model's by more than its types.
def Tfm_Localize : DeclareOpInterfaceMethods<PartitionOpInterface, ["getFactors", "localize"]>;
// Ops that change the parts of a dimension.
def Tfm_OwnRule : DeclareOpInterfaceMethods<PartitionOpInterface, ["getFactors", "inferDistributions", "localize"]>;

class Tfm_PartitionTrait<list<Trait> traits> {
  // The trait of an op that brings none of the two above.
  list<Trait> added = !if(!foldl(0, traits, found, entry, !or(found, !eq(!cast<string>(entry), "Tfm_Localize"),
                                                              !eq(!cast<string>(entry), "Tfm_OwnRule"))),
                          [], [Tfm_Factors]);
}

// Every op is pure and infers its result shapes. Ops that carry gradients add DifferentiableOpInterface.
class Tfm_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tfm_Dialect, mnemonic,
         !listconcat([Pure,
                      DeclareOpInterfaceMethods<ShapeInferenceOpInterface>,
                      DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>], traits,
                     Tfm_PartitionTrait<traits>.added)> {
  let hasVerifier = 1;
}

class Tfm_DifferentiableOp<string mnemonic, list<Trait> traits = []>
    : Tfm_Op<mnemonic, !listconcat([DeclareOpInterfaceMethods<DifferentiableOpInterface>], traits)>;

def Tfm_Recompute : DeclareOpInterfaceMethods<RecomputeOpInterface>;

def Tfm_Float : AnyTypeOf<[F32, BF16, F16, F64]>;
def Tfm_FloatTensor : RankedTensorOf<[Tfm_Float]>;
def Tfm_F32Tensor : RankedTensorOf<[F32]>;
def Tfm_IdTensor : RankedTensorOf<[I32, I64]>;
def Tfm_MaskTensor : RankedTensorOf<[I1, F32, BF16, F16, F64]>;
def Tfm_KeyMaskTensor : RankedTensorOf<[I1, I8, I32, I64]>;
def Tfm_AnyTensor : RankedTensorOf<[AnyType]>;
def Tfm_IndexVector : 1DTensorOf<[I64]>;
// A rank's first row or column of a dimension.
def Tfm_Offset : 0DTensorOf<[I64]>;

include "drover/Dialect/Tfm/IR/TfmLayerOps.td"
include "drover/Dialect/Tfm/IR/TfmAttentionOps.td"
include "drover/Dialect/Tfm/IR/TfmLossOps.td"
include "drover/Dialect/Tfm/IR/TfmRankOps.td"
include "drover/Dialect/Tfm/IR/TfmStructuralOps.td"

#endif // DROVER_DIALECT_TFM_IR_TFMOPS
