//===- TfmRecompute.cpp - what running an op again costs --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "OpUtils.h"
#include "mlir/Interfaces/CastInterfaces.h"

using namespace mlir;
using namespace drover::tfm;

RecomputeClass LinearOp::getRecomputeClass() { return RecomputeClass::Contraction; }
RecomputeClass MatmulOp::getRecomputeClass() { return RecomputeClass::Contraction; }
RecomputeClass AttentionOp::getRecomputeClass() { return RecomputeClass::Attention; }
RecomputeClass LinearWeightGradOp::getRecomputeClass() { return RecomputeClass::Contraction; }
RecomputeClass AttentionGradOp::getRecomputeClass() { return RecomputeClass::Attention; }
RecomputeClass LogitsMaxOp::getRecomputeClass() { return RecomputeClass::Reduction; }
RecomputeClass LogitsSumOp::getRecomputeClass() { return RecomputeClass::Reduction; }
RecomputeClass CrossEntropyOp::getRecomputeClass() { return RecomputeClass::Reduction; }
RecomputeClass RmsNormOp::getRecomputeClass() { return RecomputeClass::Norm; }
RecomputeClass LayerNormOp::getRecomputeClass() { return RecomputeClass::Norm; }
RecomputeClass GeluOp::getRecomputeClass() { return RecomputeClass::Activation; }
RecomputeClass SiluOp::getRecomputeClass() { return RecomputeClass::Activation; }
RecomputeClass SwigluOp::getRecomputeClass() { return RecomputeClass::Activation; }
RecomputeClass SoftmaxOp::getRecomputeClass() { return RecomputeClass::Activation; }
RecomputeClass RopeOp::getRecomputeClass() { return RecomputeClass::Rope; }

RecomputeClass drover::tfm::recomputeClassOf(Operation *op) {
  if (auto known = dyn_cast<RecomputeOpInterface>(op))
    return known.getRecomputeClass();
  if (isa<CastOpInterface>(op))
    return RecomputeClass::Cast;
  if (op->hasTrait<OpTrait::Elementwise>())
    return RecomputeClass::Elementwise;
  return RecomputeClass::Movement;
}
