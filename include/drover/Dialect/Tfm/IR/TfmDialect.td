#ifndef DROVER_DIALECT_TFM_IR_TFMDIALECT
#define DROVER_DIALECT_TFM_IR_TFMDIALECT

include "mlir/IR/OpBase.td"

def Tfm_Dialect : Dialect {
  let name = "tfm";
  let cppNamespace = "::drover::tfm";
  let summary = "the model: transformers on global tensors";
  let description = [{
    A transformer as a person would write it: one function, parameters as named arguments, a dozen
    operations a layer. Element-wise work is upstream `arith` and `math` on tensors; the structural
    operations (`tfm.reshape`, `tfm.iota`, ..) carry what an importer could not raise.
    Sizes may be symbolic: see docs/tfm.md.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let extraClassDeclaration = [{
    void registerAttributes();
    /// Module attribute: array of strings, the names of the symbolic sizes (s0, s1, ..).
    static constexpr ::llvm::StringLiteral kSymbolsAttr = "tfm.symbols";
    /// Argument attribute: affine map `()[s0, ..] -> (d0, ..)`, the sizes of a dynamic argument.
    static constexpr ::llvm::StringLiteral kShapeAttr = "tfm.shape";
    /// Argument attribute: the name of a model input.
    static constexpr ::llvm::StringLiteral kInputAttr = "tfm.input";
    /// Argument attribute: the model's own name of a parameter.
    static constexpr ::llvm::StringLiteral kParameterAttr = "tfm.parameter";
    /// Argument attribute: where a parameter's values are (#tfm.source).
    static constexpr ::llvm::StringLiteral kSourceAttr = "tfm.source";
    /// Argument attribute: other names under which a checkpoint may hold a tied parameter (array of strings).
    static constexpr ::llvm::StringLiteral kAliasesAttr = "tfm.aliases";
    /// Module attribute: standard deviation of random initial weights (f64; 0.02 where absent).
    static constexpr ::llvm::StringLiteral kInitializerRangeAttr = "tfm.initializer_range";
    /// Result attribute: the name of a model output.
    static constexpr ::llvm::StringLiteral kOutputAttr = "tfm.output";

    /// Module attribute: sizes of the axes of the grid of ranks, {tp = 4, cp = 2, ..} (docs/distributions.md).
    static constexpr ::llvm::StringLiteral kGridAttr = "tfm.grid";

    // The microbatch program, docs/body-abi.md.
    /// Function attribute: the phase of a body, one of those below.
    static constexpr ::llvm::StringLiteral kBodyAttr = "tfm.body";
    static constexpr ::llvm::StringLiteral kForwardPhase = "forward";
    static constexpr ::llvm::StringLiteral kBackwardPhase = "backward";
    static constexpr ::llvm::StringLiteral kWeightGradientPhase = "weight_gradient";
    static constexpr ::llvm::StringLiteral kUpdatePhase = "update";
    static constexpr ::llvm::StringLiteral kNormPhase = "norm";
    /// Function attribute (unit): the function whose block is the calls of one microbatch.
    static constexpr ::llvm::StringLiteral kMicrobatchAttr = "tfm.microbatch";
    /// Argument attribute (unit): 1 / number of labels of the global batch that count.
    static constexpr ::llvm::StringLiteral kSeedAttr = "tfm.seed";
    /// Argument and result attribute: the parameter whose gradient accumulator this is.
    static constexpr ::llvm::StringLiteral kAccumulatorAttr = "tfm.accumulator";
    /// Result attribute: index of the argument in whose memory the result lives.
    static constexpr ::llvm::StringLiteral kInplaceAttr = "tfm.inplace";
    // Several ranks, docs/distributions.md.
    /// Attribute of a collective (unit): the dimension is in CP's two chunks.
    static constexpr ::llvm::StringLiteral kTwoChunkAttr = "tfm.two_chunk";
    /// Attribute of a collective: the typed reduction that it discharges, unique in the module.
    static constexpr ::llvm::StringLiteral kReductionAttr = "tfm.reduction";
    /// Argument and result attribute of what had an encoding before `tfm-erase-distributions`.
    static constexpr ::llvm::StringLiteral kDistributionAttr = "tfm.distribution";
    /// Argument attribute: the model's shape of a parameter.
    static constexpr ::llvm::StringLiteral kGlobalShapeAttr = "tfm.global_shape";
    /// Argument attribute: the dimension of an input of which a rank holds CP's two chunks.
    static constexpr ::llvm::StringLiteral kCutDimAttr = "tfm.cut_dim";
    /// Attribute of a call: the layer it computes, counted from 0.
    static constexpr ::llvm::StringLiteral kLayerAttr = "tfm.layer";
  }];
}

#endif // DROVER_DIALECT_TFM_IR_TFMDIALECT
