//===- Sizes.cpp - sizes of a model and of a plan -------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Sizes.h"
#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace drover {
namespace {

class SizeResolver {
public:
  SizeResolver(ModuleOp module, const ModelFacts &facts, const std::map<std::string, int64_t> &dims)
      : module(module), facts(facts) {
    if (auto names = module->getAttrOfType<ArrayAttr>(tfm::TfmDialect::kSymbolsAttr))
      for (StringAttr name : names.getAsRange<StringAttr>())
        symbols.push_back(name.getValue());
    values.resize(symbols.size(), -1);
    for (auto [index, name] : llvm::enumerate(symbols))
      if (auto dim = dims.find(name.str()); dim != dims.end())
        values[index] = dim->second;
  }

  LogicalResult checkDims(const std::map<std::string, int64_t> &dims) {
    for (const auto &[name, value] : dims)
      if (!llvm::is_contained(symbols, name))
        return module.emitError("has no symbolic size '")
               << name << "' for --dim; it has: " << (symbols.empty() ? "none" : llvm::join(symbols, ", "));
    return success();
  }

  /// One dimension of the token input against the option for it. `value` is 0 where the option is absent.
  LogicalResult bind(const ModelFacts::Size &size, StringRef option, int64_t &value, int64_t fallback) {
    int64_t fixed = size.size >= 0 ? size.size : size.symbol >= 0 ? values[size.symbol] : -1;
    if (fixed == 0)
      return module.emitError(size.size == 0 ? Twine("the model") : "--dim=" + symbols[size.symbol] + "=0")
             << " makes the input '" << facts.tokens << "' empty: accepted are sizes of 1 and more";
    if (fixed > 0) {
      if (value != 0 && value != fixed)
        return module.emitError("the model fixes the size of '")
               << facts.tokens << "' that " << option << " sets to " << value << " at " << fixed << ": accepted is "
               << option << "=" << fixed;
      value = fixed;
      return success();
    }
    if (value == 0)
      value = fallback;
    if (value == 0)
      return module.emitError("the model does not fix the length of '")
             << facts.tokens << "': " << option << "=LENGTH is required";
    if (size.symbol >= 0)
      values[size.symbol] = value;
    return success();
  }

  FailureOr<std::vector<std::string>> finish() {
    std::vector<std::string> sizes;
    for (auto [name, value] : llvm::zip(symbols, values)) {
      if (value < 0)
        return module.emitError("the symbolic size '")
               << name << "' has no value: give one by --dim=" << name << "=VALUE";
      sizes.push_back((name + "=" + Twine(value)).str());
    }
    return sizes;
  }

private:
  ModuleOp module;
  const ModelFacts &facts;
  SmallVector<StringRef> symbols;
  SmallVector<int64_t> values;
};

} // namespace

FailureOr<std::vector<std::string>> resolveSizes(ModuleOp module, const ModelFacts &facts,
                                                 const std::map<std::string, int64_t> &dims, bool train,
                                                 schedule::Plan &plan) {
  SizeResolver resolver(module, facts, dims);
  if (failed(resolver.checkDims(dims)))
    return failure();
  if (facts.tokens.empty() && train)
    return module.emitError("expects an input of token ids, [batch, sequence], that an embedding reads");
  if (!facts.tokens.empty())
    if (failed(resolver.bind(facts.batch, "--microbatch", plan.microbatch, 1)) ||
        failed(resolver.bind(facts.sequence, "--seq-len", plan.sequenceLength, 0)))
      return failure();
  plan.microbatch = std::max<int64_t>(1, plan.microbatch);
  if (plan.globalBatches.empty())
    plan.globalBatches = {plan.microbatch * plan.dp * (train ? plan.pp : 1)};
  if (!train && plan.globalBatches != std::vector<int64_t>{plan.microbatch * plan.dp})
    return module.emitError("the forward task runs one microbatch: accepted is --global-batch=")
           << plan.microbatch * plan.dp;
  if (std::optional<schedule::Error> error = schedule::checkPlan(plan))
    return module.emitError(error->message);
  return resolver.finish();
}

} // namespace drover
