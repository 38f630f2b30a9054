//===- SymbolicExpr.cpp - integer expressions over symbolic sizes ---------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Import/Onnx/SymbolicExpr.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace drover::onnx {

/// What an operation gives whose result fits no coefficient.
static Expr invalid() { return Expr(INT64_MAX) + Expr(1); }

/// a / b rounded down, where b is not zero and the quotient fits.
static std::optional<int64_t> floorQuotient(int64_t a, int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1))
    return std::nullopt;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

//===----------------------------------------------------------------------===//
// Polynomials
//===----------------------------------------------------------------------===//

std::optional<unsigned> Expr::asAtom() const {
  if (terms.size() == 1 && terms.begin()->second == 1 && terms.begin()->first.size() == 1)
    return terms.begin()->first.front();
  return std::nullopt;
}

void Expr::add(const Monomial &monomial, int64_t coefficient) {
  if (!coefficient)
    return;
  auto [place, inserted] = terms.try_emplace(monomial, coefficient);
  if (inserted)
    return;
  if (AddOverflow(place->second, coefficient, place->second))
    overflow = true;
  if (!place->second)
    terms.erase(place);
}

Expr Expr::operator+(const Expr &other) const {
  Expr result = *this;
  result.overflow |= other.overflow;
  for (const auto &[monomial, coefficient] : other.terms)
    result.add(monomial, coefficient);
  return result;
}

Expr Expr::operator-(const Expr &other) const { return *this + other * Expr(-1); }

Expr Expr::operator*(const Expr &other) const {
  Expr result;
  result.overflow = overflow || other.overflow;
  for (const auto &[lhs, lhsCoefficient] : terms)
    for (const auto &[rhs, rhsCoefficient] : other.terms) {
      Monomial product;
      std::merge(lhs.begin(), lhs.end(), rhs.begin(), rhs.end(), std::back_inserter(product));
      int64_t coefficient;
      // Bounds on degree and length keep a malicious file from exploding the representation.
      if (MulOverflow(lhsCoefficient, rhsCoefficient, coefficient) || product.size() > 64 || result.terms.size() > 256)
        result.overflow = true;
      else
        result.add(product, coefficient);
    }
  return result;
}

//===----------------------------------------------------------------------===//
// Atoms
//===----------------------------------------------------------------------===//

unsigned SymbolTable::intern(Kind kind, StringRef name, const Expr &lhs, const Expr &rhs) {
  auto [place, isNew] = numbers.try_emplace({kind, name.str(), lhs, rhs}, atoms.size());
  if (isNew)
    atoms.push_back({kind, name.str(), lhs, rhs, std::nullopt});
  return place->second;
}

Expr SymbolTable::symbol(StringRef name) { return resolve(Expr::atom(intern(Kind::Symbol, name, {}, {}))); }

/// Multivariate long division in the lexicographic order of the map: exact where the divisor divides.
std::optional<Expr> SymbolTable::exactDiv(const Expr &lhs, const Expr &rhs) {
  if (rhs.getTerms().empty())
    return std::nullopt;
  Expr rest = lhs, quotient;
  const auto &[leading, leadingCoefficient] = *rhs.getTerms().rbegin();
  for (unsigned step = 0; !rest.getTerms().empty(); ++step) {
    const auto &[monomial, coefficient] = *rest.getTerms().rbegin();
    if (step > 64 || (coefficient == INT64_MIN && leadingCoefficient == -1) || coefficient % leadingCoefficient != 0 ||
        !std::includes(monomial.begin(), monomial.end(), leading.begin(), leading.end()))
      return std::nullopt;
    Expr term(coefficient / leadingCoefficient);
    Expr::Monomial factor;
    std::set_difference(monomial.begin(), monomial.end(), leading.begin(), leading.end(), std::back_inserter(factor));
    for (unsigned atom : factor)
      term = term * Expr::atom(atom);
    quotient = quotient + term;
    rest = rest - term * rhs;
    if (!rest.isValid())
      return std::nullopt;
  }
  return quotient;
}

Expr SymbolTable::floorDiv(const Expr &lhs, const Expr &rhs) {
  if (!lhs.isValid() || !rhs.isValid())
    return invalid();
  if (std::optional<Expr> quotient = exactDiv(lhs, rhs))
    return *quotient;
  std::optional<int64_t> a = lhs.constant(), b = rhs.constant();
  if (a && b && *b != 0) {
    std::optional<int64_t> quotient = floorQuotient(*a, *b);
    return quotient ? Expr(*quotient) : invalid();
  }
  // Terms that the divisor divides leave the quotient exactly: (4 s + 2) // 4 = s + 2 // 4.
  Expr whole, rest;
  for (const auto &[monomial, coefficient] : lhs.getTerms()) {
    Expr term(coefficient);
    for (unsigned atom : monomial)
      term = term * Expr::atom(atom);
    if (std::optional<Expr> quotient = exactDiv(term, rhs)) {
      whole = whole + *quotient;
      continue;
    }
    // And the whole multiples of the divisor in a coefficient: 5 s // 4 = s + s // 4.
    if (b && *b > 0 && !monomial.empty() && coefficient / *b != 0) {
      Expr product(1);
      for (unsigned atom : monomial)
        product = product * Expr::atom(atom);
      whole = whole + product * Expr(coefficient / *b);
      term = product * Expr(coefficient % *b);
    }
    rest = rest + term;
  }
  if (!rest.isValid())
    return invalid();
  if (rest.isConstant() && b && *b != 0) {
    std::optional<int64_t> quotient = floorQuotient(*rest.constant(), *b);
    return quotient ? whole + Expr(*quotient) : invalid();
  }
  return whole + Expr::atom(intern(Kind::FloorDiv, "", rest, rhs));
}

Expr SymbolTable::mod(const Expr &lhs, const Expr &rhs) {
  if (!lhs.isValid() || !rhs.isValid())
    return invalid();
  std::optional<int64_t> a = lhs.constant(), b = rhs.constant();
  if (a && b && *b != 0) {
    // With the sign of the divisor.
    int64_t rest = *b == -1 ? 0 : *a % *b;
    return rest != 0 && (rest < 0) != (*b < 0) ? rest + *b : rest;
  }
  if (exactDiv(lhs, rhs))
    return 0;
  return Expr::atom(intern(Kind::Mod, "", lhs, rhs));
}

Expr SymbolTable::ceilDiv(const Expr &lhs, const Expr &rhs) { return -floorDiv(-lhs, rhs); }

//===----------------------------------------------------------------------===//
// What holds at every size
//===----------------------------------------------------------------------===//

Sign SymbolTable::sign(const Expr &expr) const {
  if (!expr.isValid())
    return Sign::Unknown;
  if (expr.getTerms().empty())
    return Sign::Zero;
  // Sizes are at least 1, but a past and quotients may be 0. With x = 1 + x' for the sizes, a sum is
  // bounded below by its value at 1 when every non-constant coefficient is positive.
  auto lowerBound = [&](int64_t flip) -> std::optional<int64_t> {
    int64_t bound = 0;
    for (const auto &[monomial, coefficient] : expr.getTerms()) {
      int64_t value;
      if (MulOverflow(coefficient, flip, value) || (value < 0 && !monomial.empty()))
        return std::nullopt;
      bool mayBeZero = any_of(monomial, [&](unsigned atom) {
        return atoms[atom].kind != Kind::Symbol || StringRef(atoms[atom].name).contains("past");
      });
      if (!mayBeZero && AddOverflow(bound, value, bound))
        return std::nullopt;
    }
    return bound;
  };
  if (std::optional<int64_t> bound = lowerBound(1)) {
    if (*bound > 0)
      return Sign::Positive;
    if (*bound == 0)
      return Sign::NonNegative;
  }
  if (std::optional<int64_t> bound = lowerBound(-1)) {
    if (*bound > 0)
      return Sign::Negative;
    if (*bound == 0)
      return Sign::NonPositive;
  }
  return Sign::Unknown;
}

std::optional<bool> SymbolTable::less(const Expr &lhs, const Expr &rhs) const {
  switch (sign(rhs - lhs)) {
  case Sign::Positive:
    return true;
  case Sign::Zero:
  case Sign::Negative:
  case Sign::NonPositive:
    return false;
  default:
    return std::nullopt;
  }
}

std::optional<bool> SymbolTable::equal(const Expr &lhs, const Expr &rhs) const {
  switch (sign(rhs - lhs)) {
  case Sign::Zero:
    return true;
  case Sign::Positive:
  case Sign::Negative:
    return false;
  default:
    return std::nullopt;
  }
}

bool SymbolTable::contains(const Expr &expr, unsigned atom) const {
  return any_of(expr.getTerms(), [&](const auto &term) {
    return any_of(term.first, [&](unsigned other) {
      return other == atom || (atoms[other].kind != Kind::Symbol &&
                               (contains(atoms[other].lhs, atom) || contains(atoms[other].rhs, atom)));
    });
  });
}

bool SymbolTable::bind(unsigned atom, const Expr &value) {
  Expr resolved = resolve(value);
  if (atoms[atom].kind != Kind::Symbol || atoms[atom].binding || contains(resolved, atom))
    return false;
  atoms[atom].binding = resolved;
  return true;
}

Expr SymbolTable::resolve(const Expr &expr) {
  if (!expr.isValid())
    return expr;
  Expr result;
  for (const auto &[monomial, coefficient] : expr.getTerms()) {
    Expr term(coefficient);
    for (unsigned number : monomial) {
      // A copy: resolving may add atoms.
      Atom atom = atoms[number];
      if (atom.binding)
        term = term * resolve(*atom.binding);
      else if (atom.kind == Kind::Symbol)
        term = term * Expr::atom(number);
      else if (atom.kind == Kind::FloorDiv)
        term = term * floorDiv(resolve(atom.lhs), resolve(atom.rhs));
      else
        term = term * mod(resolve(atom.lhs), resolve(atom.rhs));
    }
    result = result + term;
  }
  return result;
}

std::string SymbolTable::str(const Expr &expr) const {
  if (expr.getTerms().empty())
    return "0";
  std::string text;
  raw_string_ostream os(text);
  for (const auto &[monomial, coefficient] : reverse(expr.getTerms())) {
    if (!text.empty())
      os << (coefficient < 0 ? " - " : " + ");
    else if (coefficient < 0)
      os << '-';
    uint64_t magnitude = coefficient < 0 ? 0 - static_cast<uint64_t>(coefficient) : coefficient;
    if (magnitude != 1 || monomial.empty())
      os << magnitude << (monomial.empty() ? "" : "*");
    interleave(
        monomial, os,
        [&](unsigned number) {
          const Atom &atom = atoms[number];
          if (atom.kind == Kind::Symbol)
            os << atom.name;
          else
            os << '(' << str(atom.lhs) << (atom.kind == Kind::FloorDiv ? ") // (" : ") % (") << str(atom.rhs) << ')';
        },
        "*");
  }
  return text;
}

//===----------------------------------------------------------------------===//
// dim_param
//===----------------------------------------------------------------------===//

namespace {
/// Recursive descent over `past_sequence_length + sequence_length`, `((s1 - 1)//8) + 1`, `2*s0`.
class DimParser {
public:
  DimParser(SymbolTable &table, StringRef text) : table(table), rest(text) {}

  std::optional<Expr> parse() {
    Expr result = sum();
    return failed || !rest.ltrim().empty() || !result.isValid() ? std::nullopt : std::optional<Expr>(result);
  }

private:
  bool take(StringRef token) {
    rest = rest.ltrim();
    return rest.consume_front(token);
  }
  Expr sum() {
    Expr result = product();
    while (!failed)
      if (take("+"))
        result = result + product();
      else if (take("-"))
        result = result - product();
      else
        break;
    return result;
  }
  Expr product() {
    Expr result = factor();
    while (!failed)
      if (take("**"))
        failed = true;
      else if (take("*"))
        result = result * factor();
      else if (take("//") || take("/")) {
        Expr divisor = factor();
        if (divisor.is(0))
          failed = true;
        else
          result = table.floorDiv(result, divisor);
      } else
        break;
    return result;
  }
  Expr factor() {
    if (++depth > 64) {
      failed = true;
      return {};
    }
    Expr result;
    if (take("(")) {
      result = sum();
      failed |= !take(")");
    } else if (take("-")) {
      result = -factor();
    } else {
      rest = rest.ltrim();
      StringRef word = rest.take_while([](char c) { return isAlnum(c) || c == '_' || c == '.'; });
      rest = rest.drop_front(word.size());
      int64_t number;
      if (word.empty() || (isDigit(word.front()) && word.getAsInteger(10, number)))
        failed = true;
      else
        result = isDigit(word.front()) ? Expr(number) : table.symbol(word);
    }
    --depth;
    return result;
  }

  SymbolTable &table;
  StringRef rest;
  unsigned depth = 0;
  bool failed = false;
};
} // namespace

Expr SymbolTable::parse(StringRef text) {
  text = text.trim();
  size_t known = atoms.size();
  if (std::optional<Expr> expr = DimParser(*this, text).parse())
    return *expr;
  atoms.resize(known, {Kind::Symbol, "", {}, {}, std::nullopt});
  return symbol(text);
}

} // namespace drover::onnx
