//===- SymbolicExpr.h - integer expressions over symbolic sizes -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Shape arithmetic of exporters multiplies, divides and adds sizes: batch * heads * sequence, halved
// or split again later. As polynomials with integer coefficients two such expressions are equal
// exactly when their normal forms are, products of sizes included, which affine expressions alone do
// not give. Divisions that do not come out even become atoms of their own.
//
//===----------------------------------------------------------------------===//
#ifndef DROVER_IMPORT_ONNX_SYMBOLICEXPR_H
#define DROVER_IMPORT_ONNX_SYMBOLICEXPR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace drover::onnx {

class SymbolTable;

/// A polynomial over the atoms of a SymbolTable, in normal form.
class Expr {
public:
  /// Atom numbers in ascending order, repeated for powers; empty for the constant term.
  using Monomial = std::vector<unsigned>;

  Expr() = default;
  Expr(int64_t constant) { // NOLINT: sizes are written as numbers
    if (constant)
      terms[{}] = constant;
  }
  static Expr atom(unsigned number) {
    Expr expr;
    expr.terms[{number}] = 1;
    return expr;
  }

  bool isConstant() const { return terms.empty() || (terms.size() == 1 && terms.begin()->first.empty()); }
  std::optional<int64_t> constant() const {
    if (!isConstant())
      return std::nullopt;
    return terms.empty() ? 0 : terms.begin()->second;
  }
  bool is(int64_t value) const { return constant() == value; }
  /// The number of an atom that this expression is, alone.
  std::optional<unsigned> asAtom() const;

  bool operator==(const Expr &other) const { return terms == other.terms; }
  bool operator!=(const Expr &other) const { return !(*this == other); }
  bool operator<(const Expr &other) const { return terms < other.terms; }
  Expr operator+(const Expr &other) const;
  Expr operator-(const Expr &other) const;
  Expr operator*(const Expr &other) const;
  Expr operator-() const { return Expr(0) - *this; }

  const std::map<Monomial, int64_t> &getTerms() const { return terms; }
  /// Coefficients that no longer fit in 63 bits make an expression invalid; it stays so.
  bool isValid() const { return !overflow; }

private:
  void add(const Monomial &monomial, int64_t coefficient);

  std::map<Monomial, int64_t> terms;
  bool overflow = false;
};

/// The sign of an expression when every symbol is a size.
enum class Sign { Unknown, Negative, Zero, Positive, NonNegative, NonPositive };

/// The atoms: named sizes, and quotients and remainders that are not polynomials.
class SymbolTable {
public:
  enum class Kind { Symbol, FloorDiv, Mod };
  struct Atom {
    Kind kind;
    std::string name;
    Expr lhs, rhs;
    /// A fixed value, or an equal expression found later.
    std::optional<Expr> binding;
  };

  /// The symbol `name`, made on first use. Every size is at least 1, but for one whose name has "past" in it: the length
  /// of a cache, which exporters name so and which may be 0.
  Expr symbol(llvm::StringRef name);
  /// Floor division and the remainder that belongs to it; exact where polynomial division is.
  Expr floorDiv(const Expr &lhs, const Expr &rhs);
  Expr mod(const Expr &lhs, const Expr &rhs);
  Expr ceilDiv(const Expr &lhs, const Expr &rhs);
  /// The polynomial quotient where the remainder is zero.
  static std::optional<Expr> exactDiv(const Expr &lhs, const Expr &rhs);

  Sign sign(const Expr &expr) const;
  /// Less-than and equality where they hold, or fail to, at every size.
  std::optional<bool> less(const Expr &lhs, const Expr &rhs) const;
  std::optional<bool> equal(const Expr &lhs, const Expr &rhs) const;

  /// Makes `atom` (a symbol without a binding that `value` does not contain) stand for `value`.
  bool bind(unsigned atom, const Expr &value);
  /// Replaces bound symbols.
  Expr resolve(const Expr &expr);

  llvm::ArrayRef<Atom> getAtoms() const { return atoms; }
  std::string str(const Expr &expr) const;

  /// Parses a dim_param: numbers, names, + - * / // and parentheses. Anything else is one name.
  Expr parse(llvm::StringRef text);

private:
  unsigned intern(Kind kind, llvm::StringRef name, const Expr &lhs, const Expr &rhs);
  bool contains(const Expr &expr, unsigned atom) const;

  std::vector<Atom> atoms;
  std::map<std::tuple<Kind, std::string, Expr, Expr>, unsigned> numbers;
};

} // namespace drover::onnx

#endif // DROVER_IMPORT_ONNX_SYMBOLICEXPR_H
