//===- TfmAttrs.cpp - attributes of the model dialect -----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace drover::tfm;

FailureOr<APFloat> drover::tfm::detail::parseDouble(AsmParser &parser) {
  double value;
  if (parser.parseFloat(value))
    return failure();
  return APFloat(value);
}

FailureOr<bool> drover::tfm::detail::parseBool(AsmParser &parser) {
  if (succeeded(parser.parseOptionalKeyword("true")))
    return true;
  if (succeeded(parser.parseKeyword("false", "or true")))
    return false;
  return failure();
}

#include "drover/Dialect/Tfm/IR/TfmEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "drover/Dialect/Tfm/IR/TfmAttrs.cpp.inc"

void TfmDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "drover/Dialect/Tfm/IR/TfmAttrs.cpp.inc"
      >();
}

LogicalResult RopeScalingAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef kind, APFloat factorValue,
                                      APFloat lowValue, APFloat highValue, int64_t original) {
  double factor = factorValue.convertToDouble(), low = lowValue.convertToDouble(), high = highValue.convertToDouble();
  if (kind != "linear" && kind != "llama3")
    return emitError() << "rope_scaling expects kind \"linear\" or \"llama3\", not \"" << kind << '"';
  if (!(factor > 0) || !std::isfinite(factor))
    return emitError() << "rope_scaling expects a positive factor, not " << factor;
  if (kind == "llama3" && (!(low > 0) || !(high > low) || !std::isfinite(high) || original <= 0))
    return emitError() << "rope_scaling expects 0 < low < high and a positive original length, not low " << low
                       << ", high " << high << ", original " << original;
  return success();
}
