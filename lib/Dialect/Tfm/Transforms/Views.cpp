//===- Views.cpp - chains of reshape, transpose and broadcast -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Matchers.h"

using namespace mlir;
using namespace drover::tfm;

static bool identityView(Value root, View &view) {
  std::optional<Sizes> sizes = symbolicSizes(root);
  if (!sizes)
    return false;
  view = View{root, {}, 0, 1.0};
  for (auto [dim, size] : llvm::enumerate(*sizes)) {
    view.dims.emplace_back();
    if (!size.isOne())
      view.dims.back().push_back({static_cast<int>(dim), Size(1), size});
  }
  return true;
}

/// Applies one op of the chain.
static bool apply(View &view, Operation *op) {
  ++view.numOps;
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    view.transpose(transpose.getPermutation());
    return true;
  }
  if (Value input; std::optional<double> factor = matchScaled(op->getResult(0), input)) {
    view.scale *= *factor;
    return true;
  }
  std::optional<Sizes> sizes = symbolicSizes(op->getResult(0));
  if (!sizes)
    return false;
  return isa<ReshapeOp>(op) ? view.reshape(*sizes) : view.broadcast(*sizes);
}

View View::trace(Value value, bool broadcasts, bool scales) {
  SmallVector<Operation *> chain; // from the value up
  Value top = value;
  while (Operation *op = top.getDefiningOp()) {
    Value input;
    if (isa<ReshapeOp, TransposeOp>(op) || (broadcasts && isa<BroadcastOp>(op)))
      input = op->getOperand(0);
    else if (!scales || !matchScaled(top, input))
      break;
    chain.push_back(op);
    top = input;
  }
  // A reshape that mixes dimensions beyond description starts a new root below it.
  for (size_t first = chain.size();; --first) {
    View view;
    Value root = first == chain.size() ? top : chain[first]->getResult(0);
    bool ok = identityView(root, view);
    for (size_t i = first; ok && i > 0; --i)
      if (!apply(view, chain[i - 1])) {
        ok = false;
        first = i;
      }
    if (ok) {
      view.simplify();
      return view;
    }
    if (first == 0) // sizes that are not known: opaque
      return View{value, {}, 0, 1.0};
  }
}

bool View::hasRepeated() const {
  return llvm::any_of(
      dims, [](const auto &dim) { return llvm::any_of(dim, [](const Factor &f) { return f.isRepeated(); }); });
}

std::optional<unsigned> View::wholeRootDim(unsigned dim) const {
  if (dims[dim].size() != 1 || dims[dim].front().isRepeated() || !dims[dim].front().stride.isOne())
    return std::nullopt;
  const Factor &factor = dims[dim].front();
  std::optional<Sizes> sizes = symbolicSizes(root);
  if (!sizes || (*sizes)[factor.dim] != factor.size)
    return std::nullopt;
  return factor.dim;
}

bool View::isIdentity() const {
  std::optional<Sizes> own = symbolicSizes(root);
  if (!own || own->size() != dims.size())
    return false;
  for (auto [index, dim] : llvm::enumerate(dims)) {
    if (dim.empty() ? !(*own)[index].isOne() : wholeRootDim(index) != std::optional<unsigned>(index))
      return false;
  }
  return true;
}

Sizes View::sizes() const {
  Sizes result;
  for (const auto &dim : dims) {
    Size size;
    for (const Factor &factor : dim)
      size = size * factor.size;
    result.push_back(size);
  }
  return result;
}

void View::simplify() {
  for (auto &dim : dims)
    for (size_t i = 0; i + 1 < dim.size();) {
      if (!dim[i].continuesInto(dim[i + 1])) {
        ++i;
        continue;
      }
      dim[i + 1].size = dim[i].size * dim[i + 1].size;
      dim.erase(dim.begin() + i);
    }
}

bool View::reshape(ArrayRef<Size> sizes) {
  SmallVector<Factor> rest; // innermost first
  for (const auto &dim : llvm::reverse(dims))
    rest.append(dim.rbegin(), dim.rend());
  dims.clear();
  for (const Size &size : sizes) {
    auto &dim = dims.emplace_back();
    Size need = size;
    while (!need.isOne()) {
      if (rest.empty())
        return false;
      Factor factor = rest.pop_back_val();
      if (std::optional<Size> after = need.dividedBy(factor.size)) {
        need = *after;
        dim.push_back(factor);
        continue;
      }
      std::optional<Size> inner = factor.size.dividedBy(need);
      if (!inner)
        return false;
      rest.push_back({factor.dim, factor.stride, *inner});
      dim.push_back({factor.dim, factor.stride * *inner, need});
      need = Size(1);
    }
  }
  simplify();
  return rest.empty();
}

void View::transpose(ArrayRef<int64_t> permutation) {
  auto old = std::move(dims);
  dims.clear();
  for (int64_t dim : permutation)
    dims.push_back(old[dim]);
}

bool View::broadcast(ArrayRef<Size> sizes) {
  if (sizes.size() < dims.size())
    return false;
  dims.insert(dims.begin(), sizes.size() - dims.size(), {});
  for (auto [dim, size] : llvm::zip(dims, sizes))
    if (dim.empty() && !size.isOne())
      dim.push_back({-1, Size(1), size});
  return true;
}

namespace {
/// The three steps that rebuild a view: split the root, permute, merge.
struct Steps {
  Sizes split;                      // sizes of the factors in the root's order
  SmallVector<int64_t> permutation; // of the factors
  Sizes result;
  bool reshapesFirst, transposes, reshapesLast;
};
} // namespace

static Steps stepsOf(const View &view) {
  SmallVector<Factor> factors; // in the view's order; neighbours that are one across dimensions merged
  for (const auto &dim : view.dims)
    for (const Factor &factor : dim) {
      if (!factors.empty() && factors.back().continuesInto(factor))
        factors.back() = {factor.dim, factor.stride, factors.back().size * factor.size};
      else
        factors.push_back(factor);
    }
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, factors.size())); // in the root's order
  llvm::sort(order, [&](unsigned a, unsigned b) {
    const Factor &x = factors[a], &y = factors[b];
    return x.dim != y.dim ? x.dim < y.dim : a != b && x.stride.dividedBy(y.stride * y.size).has_value();
  });
  Steps steps;
  steps.permutation.resize(factors.size());
  Sizes permuted;
  for (auto [position, index] : llvm::enumerate(order)) {
    steps.split.push_back(factors[index].size);
    steps.permutation[index] = position;
  }
  for (const Factor &factor : factors)
    permuted.push_back(factor.size);
  steps.result = view.sizes();
  std::optional<Sizes> root = symbolicSizes(view.root);
  steps.transposes = !llvm::is_sorted(steps.permutation);
  steps.reshapesFirst = steps.transposes && *root != steps.split;
  steps.reshapesLast = steps.transposes ? permuted != steps.result : *root != steps.result;
  return steps;
}

unsigned View::cost() const {
  Steps steps = stepsOf(*this);
  return steps.reshapesFirst + steps.transposes + steps.reshapesLast;
}

Value View::build(OpBuilder &builder, Location loc) const {
  Steps steps = stepsOf(*this);
  Value value = root;
  if (steps.reshapesFirst)
    value = buildReshape(builder, loc, value, steps.split);
  if (steps.transposes)
    value = buildTranspose(builder, loc, value, steps.permutation);
  return steps.reshapesLast ? buildReshape(builder, loc, value, steps.result) : value;
}
