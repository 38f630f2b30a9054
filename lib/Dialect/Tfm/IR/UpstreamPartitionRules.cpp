//===- UpstreamPartitionRules.cpp - rules of arith, math, shard -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CollectiveRules.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"

using namespace mlir;
using namespace drover::tfm;

//===----------------------------------------------------------------------===//
// Element-wise operations
//===----------------------------------------------------------------------===//

namespace {
/// What partial sums and zeros do in an element-wise operation.
enum class Behaviour {
  Additive, ///< sums of partial sums are partial sums
  Linear,   ///< linear in its first operand
  Product,  ///< zero where either operand is; arith wants one encoding of all, so that none can be partial
  Zero,     ///< zero at zero
  Other
};

template <typename OpT, Behaviour behaviour>
struct Elementwise : PartitionOpInterface::ExternalModel<Elementwise<OpT, behaviour>, OpT> {
  void getFactors(Operation *op, FactorSignature &signature) const {
    elementwiseFactors(op, signature);
    signature.isAdditive = behaviour == Behaviour::Additive;
    if (behaviour == Behaviour::Linear)
      signature.linear = {0};
    if (behaviour == Behaviour::Product)
      signature.absorbing = {0, 1};
    signature.preservesZero = behaviour != Behaviour::Other;
  }
};

/// Equal elements can be made anywhere; others are every rank's.
struct Constant : PartitionOpInterface::ExternalModel<Constant, arith::ConstantOp> {
  void getFactors(Operation *op, FactorSignature &signature) const {
    elementwiseFactors(op, signature);
    auto elements = dyn_cast<DenseElementsAttr>(cast<arith::ConstantOp>(op).getValue());
    if (!elements || !elements.isSplat())
      for (unsigned factor = 0; factor < signature.numFactors; ++factor)
        signature.whole.emplace_back(factor, "a constant of different elements");
  }
  void localize(Operation *op, Operation *, LocalValues &) const {
    auto constant = cast<arith::ConstantOp>(op);
    if (auto elements = dyn_cast<DenseElementsAttr>(constant.getValue()))
      if (auto type = dyn_cast<ShapedType>(constant.getType()); type != elements.getType())
        constant.setValueAttr(elements.isSplat() ? cast<TypedAttr>(elements.resizeSplat(type))
                                                 : cast<TypedAttr>(elements.reshape(type)));
  }
};
} // namespace

template <Behaviour behaviour, typename... OpTs> static void attach(MLIRContext *context) {
  (OpTs::template attachInterface<Elementwise<OpTs, behaviour>>(*context), ...);
}

static void attachArith(MLIRContext *context, arith::ArithDialect *) {
  arith::ConstantOp::attachInterface<Constant>(*context);
  attach<Behaviour::Additive, arith::AddFOp, arith::AddIOp, arith::SubFOp, arith::SubIOp>(context);
  attach<Behaviour::Linear, arith::ExtFOp, arith::NegFOp, arith::TruncFOp>(context);
  attach<Behaviour::Product, arith::MulFOp, arith::MulIOp>(context);
  attach<Behaviour::Zero, arith::AndIOp, arith::ExtSIOp, arith::ExtUIOp, arith::FPToSIOp, arith::MaximumFOp,
         arith::MaxNumFOp, arith::MaxSIOp, arith::MinimumFOp, arith::MinNumFOp, arith::MinSIOp, arith::OrIOp,
         arith::SIToFPOp, arith::SelectOp, arith::TruncIOp, arith::UIToFPOp, arith::XOrIOp>(context);
  // A quotient of padding by padding is not zero.
  attach<Behaviour::Other, arith::CmpFOp, arith::CmpIOp, arith::DivFOp, arith::DivSIOp, arith::FloorDivSIOp,
         arith::RemFOp, arith::RemSIOp>(context);
}

static void attachMath(MLIRContext *context, math::MathDialect *) {
  attach<Behaviour::Zero, math::AbsFOp, math::AbsIOp, math::AsinOp, math::AsinhOp, math::AtanOp, math::AtanhOp,
         math::CbrtOp, math::CeilOp, math::ErfOp, math::ExpM1Op, math::FloorOp, math::Log1pOp, math::RoundEvenOp,
         math::RoundOp, math::SinOp, math::SinhOp, math::SqrtOp, math::TanOp, math::TanhOp, math::TruncOp>(context);
  attach<Behaviour::Other, math::AcosOp, math::AcoshOp, math::Atan2Op, math::ClampFOp, math::CopySignOp, math::CosOp,
         math::CoshOp, math::ErfcOp, math::Exp2Op, math::ExpOp, math::FPowIOp, math::FmaOp, math::Log10Op, math::Log2Op,
         math::LogOp, math::PowFOp, math::RsqrtOp>(context);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

namespace {
/// The axes of a collective, and the reason where they are none of the grid.
template <typename OpT> LogicalResult readAxes(OpT op, SmallVectorImpl<Axis> &axes, std::string &reason) {
  SmallVector<Axis, 4> all = gridOf(op).axes();
  for (int16_t index : op.getGridAxes()) {
    if (index < 0 || static_cast<size_t>(index) >= all.size()) {
      reason = ("names axis " + Twine(index) + " of a grid of " + Twine(all.size())).str();
      return failure();
    }
    axes.push_back(all[index]);
  }
  if (axes.empty())
    reason = "names no axis";
  return success(!axes.empty());
}

bool isTwoChunk(Operation *op) { return op->hasAttr(TfmDialect::kTwoChunkAttr); }

/// Two chunks are CP's pattern: an op on cp alone reorders, and says so.
LogicalResult checkPattern(Operation *op, ArrayRef<Axis> axes, bool isInTwoChunks, std::string &reason) {
  if (isTwoChunk(op) == isInTwoChunks)
    return success();
  reason = ("expects '" + Twine(TfmDialect::kTwoChunkAttr) + "' exactly where " + axisList(axes) + " is in two chunks")
               .str();
  return failure();
}

struct AllGather : PartitionOpInterface::ExternalModel<AllGather, shard::AllGatherOp> {
  void getFactors(Operation *op, FactorSignature &signature) const { elementwiseFactors(op, signature); }
  LogicalResult inferDistributions(Operation *op, ArrayRef<Distribution> operands, ArrayRef<Distribution>,
                                   SmallVectorImpl<Distribution> &results, std::string &reason) const {
    auto gather = cast<shard::AllGatherOp>(op);
    SmallVector<Axis> axes;
    if (failed(readAxes(gather, axes, reason)))
      return failure();
    unsigned dim = gather.getGatherAxis().getSExtValue();
    Distribution result = operands[0];
    bool twoChunk = axes == ArrayRef<Axis>(Axis::Cp) && result[Axis::Cp].twoChunk;
    if (axes.size() > 1 && llvm::is_contained(axes, Axis::Cp) && result[Axis::Cp].twoChunk) {
      reason = "gathers two chunks of cp together with another axis";
      return failure();
    }
    if (failed(gatherOver(axes, dim, result, reason)))
      return failure();
    results.push_back(result);
    return checkPattern(op, axes, twoChunk, reason);
  }
};

struct AllSlice : PartitionOpInterface::ExternalModel<AllSlice, shard::AllSliceOp> {
  void getFactors(Operation *op, FactorSignature &signature) const { elementwiseFactors(op, signature); }
  LogicalResult inferDistributions(Operation *op, ArrayRef<Distribution> operands, ArrayRef<Distribution>,
                                   SmallVectorImpl<Distribution> &results, std::string &reason) const {
    auto slice = cast<shard::AllSliceOp>(op);
    SmallVector<Axis> axes;
    if (failed(readAxes(slice, axes, reason)))
      return failure();
    unsigned dim = slice.getSliceAxis().getSExtValue();
    Distribution result = operands[0];
    if (!result.append(dim, axes, isTwoChunk(op))) {
      reason = ("slices dimension " + Twine(dim) + " over " + axisList(axes) + " of an operand on " + operands[0].str())
                   .str();
      return failure();
    }
    if (SegmentsAttr layout = result.layoutOf(dim); layout && layout.getSegments().size() > 1) {
      reason = ("slices dimension " + Twine(dim) + " across its segments " + str(layout.getSegments())).str();
      return failure();
    }
    results.push_back(result);
    return checkPattern(op, axes, axes == ArrayRef<Axis>(Axis::Cp) && isTwoChunk(op), reason);
  }
};

/// Reductions: the operand is partial on the axes, in the type that the type says, and so is the reduction.
template <typename OpT>
LogicalResult discharge(OpT op, const Distribution &operand, SmallVectorImpl<Axis> &axes, Distribution &result,
                        std::string &reason) {
  if (failed(readAxes(op, axes, reason)))
    return failure();
  result = operand;
  if (op.getReduction() != shard::ReductionKind::Max && op.getReduction() != shard::ReductionKind::Sum) {
    reason = "reduces by another operation than sum or max";
    return failure();
  }
  Type elementType = getElementTypeOrSelf(op.getInput().getType());
  Reduction reduction = op.getReduction() == shard::ReductionKind::Max ? Reduction::Max : Reduction::Sum;
  if (failed(
          reduceOver(op, axes, reduction, elementType, getElementTypeOrSelf(op.getResult().getType()), result, reason)))
    return failure();
  return success();
}

struct AllReduce : PartitionOpInterface::ExternalModel<AllReduce, shard::AllReduceOp> {
  void getFactors(Operation *op, FactorSignature &signature) const { elementwiseFactors(op, signature); }
  LogicalResult inferDistributions(Operation *op, ArrayRef<Distribution> operands, ArrayRef<Distribution>,
                                   SmallVectorImpl<Distribution> &results, std::string &reason) const {
    SmallVector<Axis> axes;
    return discharge(cast<shard::AllReduceOp>(op), operands[0], axes, results.emplace_back(), reason);
  }
};

struct ReduceScatter : PartitionOpInterface::ExternalModel<ReduceScatter, shard::ReduceScatterOp> {
  void getFactors(Operation *op, FactorSignature &signature) const { elementwiseFactors(op, signature); }
  LogicalResult inferDistributions(Operation *op, ArrayRef<Distribution> operands, ArrayRef<Distribution>,
                                   SmallVectorImpl<Distribution> &results, std::string &reason) const {
    auto scatter = cast<shard::ReduceScatterOp>(op);
    SmallVector<Axis> axes;
    Distribution &result = results.emplace_back();
    if (failed(discharge(scatter, operands[0], axes, result, reason)))
      return failure();
    unsigned dim = scatter.getScatterAxis().getSExtValue();
    if (failed(scatterOver(axes, dim, isTwoChunk(op), result, reason)))
      return failure();
    return checkPattern(op, axes, axes == ArrayRef<Axis>(Axis::Cp) && isTwoChunk(op), reason);
  }
};
} // namespace

static void attachShard(MLIRContext *context, shard::ShardDialect *) {
  shard::AllGatherOp::attachInterface<AllGather>(*context);
  shard::AllReduceOp::attachInterface<AllReduce>(*context);
  shard::AllSliceOp::attachInterface<AllSlice>(*context);
  shard::ReduceScatterOp::attachInterface<ReduceScatter>(*context);
}

void drover::tfm::registerUpstreamPartitionRules(DialectRegistry &registry) {
  registry.addExtension(attachArith);
  registry.addExtension(attachMath);
  registry.addExtension(attachShard);
}
