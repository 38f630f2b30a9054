#ifndef DROVER_DIALECT_TFM_IR_TFMINTERFACES
#define DROVER_DIALECT_TFM_IR_TFMINTERFACES

include "mlir/IR/OpBase.td"

def ShapeInferenceOpInterface : OpInterface<"ShapeInferenceOpInterface"> {
  let cppNamespace = "::drover::tfm";
  let description = [{
    Result shapes from operand shapes and attributes. Dynamic sizes are `ShapedType::kDynamic`.
    The verifier of an op holds its result types against this; `tfm-specialize` refines types by it.
  }];
  let methods = [
    InterfaceMethod<[{
        Appends one shape per result. `symbols` are the values of s0, s1, .. (kDynamic where unknown),
        for ops whose result sizes are an affine map. Emits an error on the op when operand shapes
        contradict each other.
      }],
      "::llvm::LogicalResult", "inferResultShapes",
      (ins "::llvm::ArrayRef<int64_t>":$symbols,
           "::llvm::SmallVectorImpl<::llvm::SmallVector<int64_t>> &":$shapes)>
  ];
}

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::drover::tfm";
  let description = [{
    Reverse-mode rule of one op. Upstream ops (arith, math) implement it by external models.
  }];
  let methods = [
    InterfaceMethod<[{
        The rule: gives the operands their gradients through `rule`. Called where shapes are static and
        at least one gradient of a result is there and one of an operand wanted. Forward operands and
        results may be used: the caller decides whether they are stashed or rebuilt.
      }],
      "::llvm::LogicalResult", "applyGradientRule", (ins "::drover::tfm::GradientBuilder &":$rule)>
  ];
  let extraClassDeclaration = [{
    /// Builds the gradients of the operands at the builder's insertion point.
    /// `resultGradients` has one value per result, null where that result's gradient is zero.
    /// `operandTypes` has one type per operand: the type that gradient must have (the operand's own
    /// element type, or f32 where several uses are summed, DESIGN "sums its gradients in fp32");
    /// null where no gradient is wanted. Fills `operandGradients`, one per operand, null where the
    /// gradient is zero or not wanted.
    ::llvm::LogicalResult buildGradients(::mlir::OpBuilder &builder, ::mlir::ValueRange resultGradients,
                                         ::mlir::TypeRange operandTypes,
                                         ::llvm::SmallVectorImpl<::mlir::Value> &operandGradients);
  }];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::drover::tfm";
  let description = [{
    What one execution of the op costs. Shapes must be static.
  }];
  let methods = [
    InterfaceMethod<[{
        Model floating-point operations; a multiply-add counts two, attention is counted causal where
        its mask is (`docs/tfm.md`, section cost). Element-wise work counts zero.
      }], "uint64_t", "getFlops", (ins)>,
    InterfaceMethod<[{
        Bytes that must move at least: operands read once, results written once.
      }], "uint64_t", "getBytes", (ins), /*methodBody=*/[{}], /*defaultImplementation=*/[{
        return ::drover::tfm::detail::minimumBytes($_op);
      }]>
  ];
}

def RecomputeOpInterface : OpInterface<"RecomputeOpInterface"> {
  let cppNamespace = "::drover::tfm";
  let description = [{
    What it means to run an op again in the backward. Ops that do not implement it are data movement,
    casts or element-wise: see `recomputeClassOf`.
  }];
  let methods = [
    InterfaceMethod<"The kind of work that a second run repeats.",
      "::drover::tfm::RecomputeClass", "getRecomputeClass", (ins)>
  ];
}

def PartitionOpInterface : OpInterface<"PartitionOpInterface"> {
  let cppNamespace = "::drover::tfm";
  let description = [{
    The transfer rule of an op (docs/distributions.md): which distributions of operands it allows, and
    what its results' are then. Most ops say their factors only. Upstream ops implement it by external
    models.
  }];
  let methods = [
    InterfaceMethod<[{
        Which dimensions of operands and results belong together. Asked of ops on model shapes and on
        local ones alike.
      }], "void", "getFactors", (ins "::drover::tfm::FactorSignature &":$signature)>,
    InterfaceMethod<[{
        The results' distributions from the operands'. `hints` are those that the results have now, for
        dimensions that the op creates. Fails with the reason why the op is not allowed on them.
      }],
      "::llvm::LogicalResult", "inferDistributions",
      (ins "::llvm::ArrayRef<::drover::tfm::Distribution>":$operands,
           "::llvm::ArrayRef<::drover::tfm::Distribution>":$hints,
           "::llvm::SmallVectorImpl<::drover::tfm::Distribution> &":$results, "::std::string &":$reason),
      /*methodBody=*/[{}], /*defaultImplementation=*/[{
        return ::drover::tfm::detail::inferByFactors($_op, operands, hints, results, reason);
      }]>,
    InterfaceMethod<[{
        Makes this op, a copy of `global` whose operands and results have local types, compute the local
        part: numbers of heads, offsets of a slice, the rank's first row of a table.
      }],
      "void", "localize", (ins "::mlir::Operation *":$global, "::drover::tfm::LocalValues &":$values),
      /*methodBody=*/[{}], /*defaultImplementation=*/[{ return; }]>
  ];
}

#endif // DROVER_DIALECT_TFM_IR_TFMINTERFACES
