//===- TfmDistributionAttrs.cpp - #tfm.dist and #tfm.segments ---*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Tfm/IR/Distribution.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace drover::tfm;

//===----------------------------------------------------------------------===//
// #tfm.segments
//===----------------------------------------------------------------------===//

/// `[257, 1, 1, 260], [..]`
static ParseResult parseSegments(AsmParser &parser, SmallVectorImpl<PaddedSegment> &segments) {
  do {
    SmallVector<int64_t, 4> numbers;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                       [&] { return parser.parseInteger(numbers.emplace_back()); }))
      return failure();
    if (numbers.size() != 4)
      return parser.emitError(loc, "expects four numbers, [groups, valid, padded, total], not ") << numbers.size();
    segments.push_back({numbers[0], numbers[1], numbers[2], numbers[3]});
  } while (succeeded(parser.parseOptionalComma()));
  return success();
}

/// Null, after an error, where the numbers contradict each other.
static SegmentsAttr makeSegments(AsmParser &parser, SMLoc loc, ArrayRef<PaddedSegment> segments) {
  auto emitError = [&]() -> InFlightDiagnostic { return parser.emitError(loc); };
  function_ref<InFlightDiagnostic()> emit = emitError;
  return SegmentsAttr::getChecked(emit, parser.getContext(), segments);
}

static void printSegments(AsmPrinter &printer, ArrayRef<PaddedSegment> segments) {
  llvm::interleaveComma(segments, printer, [&](const PaddedSegment &segment) {
    printer << '[' << segment.groups << ", " << segment.valid << ", " << segment.padded << ", " << segment.total << ']';
  });
}

Attribute SegmentsAttr::parse(AsmParser &parser, Type) {
  SmallVector<PaddedSegment> segments;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parseSegments(parser, segments) || parser.parseGreater())
    return {};
  return makeSegments(parser, loc, segments);
}

void SegmentsAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printSegments(printer, getSegments());
  printer << '>';
}

LogicalResult SegmentsAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<PaddedSegment> segments) {
  if (segments.empty())
    return emitError() << "segments expects at least one";
  int64_t all = 0;
  for (const PaddedSegment &segment : segments) {
    int64_t elements;
    if (segment.groups <= 0 || segment.valid <= 0 || segment.valid > segment.padded || segment.groups > segment.total ||
        llvm::MulOverflow(segment.padded, segment.total, elements))
      return emitError() << "segments expects 0 < valid <= padded and 0 < groups <= total, not groups "
                         << segment.groups << ", valid " << segment.valid << ", padded " << segment.padded << ", total "
                         << segment.total;
    if (llvm::AddOverflow(all, elements, all))
      return emitError() << "segments expects fewer than 2^63 elements";
  }
  return success();
}

int64_t SegmentsAttr::validSize() const {
  int64_t size = 0;
  for (const PaddedSegment &segment : getSegments())
    size += segment.validSize();
  return size;
}

int64_t SegmentsAttr::paddedSize() const {
  int64_t size = 0;
  for (const PaddedSegment &segment : getSegments())
    size += segment.paddedSize();
  return size;
}

SegmentsAttr SegmentsAttr::scaledDown(int64_t unit) const {
  if (unit <= 0)
    return {};
  SmallVector<PaddedSegment> segments(getSegments());
  for (PaddedSegment &segment : segments) {
    if (segment.valid % unit || segment.padded % unit)
      return {};
    segment.valid /= unit;
    segment.padded /= unit;
  }
  return get(getContext(), segments);
}

SegmentsAttr SegmentsAttr::scaledUp(int64_t unit) const {
  int64_t all;
  if (unit <= 0 || llvm::MulOverflow(paddedSize(), unit, all))
    return {};
  SmallVector<PaddedSegment> segments(getSegments());
  for (PaddedSegment &segment : segments) {
    segment.valid *= unit;
    segment.padded *= unit;
  }
  return get(getContext(), segments);
}

//===----------------------------------------------------------------------===//
// #tfm.dist
//===----------------------------------------------------------------------===//

/// `S1`, `S1x2`: the lexer makes one word of either.
static std::optional<AxisState> parseShard(StringRef word) {
  unsigned dim;
  if (!word.consume_front("S") || word.consumeInteger(10, dim) || dim > UINT8_MAX)
    return std::nullopt;
  bool twoChunk = word.consume_front("x2");
  return word.empty() ? std::optional(AxisState::sharded(dim, twoChunk)) : std::nullopt;
}

static ParseResult parsePartial(AsmParser &parser, AxisState &state) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word, typeWord;
  if (parser.parseKeyword(&word) || parser.parseKeyword(&typeWord))
    return failure();
  for (Reduction reduction : {Reduction::Sum, Reduction::Max})
    for (ReductionType type : {ReductionType::F32, ReductionType::BF16, ReductionType::F64, ReductionType::I64})
      if (word == name(reduction) && typeWord == name(type)) {
        state = AxisState::partial(reduction, type);
        return success();
      }
  return parser.emitError(loc, "expects sum or max and f32, bf16, f64 or i64 after P, not '")
         << word << " " << typeWord << "'";
}

static ParseResult parseState(AsmParser &parser, AxisState &state) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  if (parser.parseKeyword(&word))
    return failure();
  if (word == "V") {
    state = AxisState::varying();
    return success();
  }
  if (word == "P")
    return parsePartial(parser, state);
  std::optional<AxisState> shard = parseShard(word);
  if (!shard)
    return parser.emitError(loc, "expects S with a dimension, P or V, not '") << word << "'";
  state = *shard;
  return success();
}

/// `{2 : [..], [..]; 0 : [..]}`
static ParseResult parseLayouts(AsmParser &parser, SmallVectorImpl<DimLayout> &layouts) {
  if (parser.parseEqual() || parser.parseLBrace())
    return failure();
  do {
    unsigned dim;
    SmallVector<PaddedSegment> segments;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseInteger(dim) || parser.parseColon() || parseSegments(parser, segments))
      return failure();
    SegmentsAttr attr = makeSegments(parser, loc, segments);
    if (!attr)
      return failure();
    layouts.push_back({dim, attr});
  } while (succeeded(parser.parseOptionalKeyword("and")));
  return parser.parseRBrace();
}

Attribute DistAttr::parse(AsmParser &parser, Type) {
  SmallVector<AxisState> states(kNumAxes);
  SmallVector<DimLayout> layouts;
  SMLoc start = parser.getCurrentLocation();
  auto parseEntry = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef word;
    if (parser.parseKeyword(&word))
      return failure();
    if (word == "layout")
      return parseLayouts(parser, layouts);
    std::optional<Axis> axis = parseAxis(word);
    if (!axis)
      return parser.emitError(loc, "expects tp, kv, replica, cp, dp or layout, not '") << word << "'";
    AxisState &state = states[static_cast<unsigned>(*axis)];
    if (state != AxisState())
      return parser.emitError(loc, "expects each axis once, not '") << word << "' again";
    return failure(parser.parseEqual() || parseState(parser, state));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseEntry))
    return {};
  auto emitError = [&]() -> InFlightDiagnostic { return parser.emitError(start); };
  function_ref<InFlightDiagnostic()> emit = emitError;
  return DistAttr::getChecked(emit, parser.getContext(), ArrayRef<AxisState>(states), ArrayRef<DimLayout>(layouts));
}

static void printState(raw_ostream &os, const AxisState &state) {
  switch (state.kind) {
  case StateKind::Replicated:
    os << 'R';
    break;
  case StateKind::Sharded:
    os << 'S' << static_cast<unsigned>(state.dim) << (state.twoChunk ? "x2" : "");
    break;
  case StateKind::Partial:
    os << "P " << name(state.reduction) << ' ' << name(state.type);
    break;
  case StateKind::Varying:
    os << 'V';
    break;
  }
}

void DistAttr::print(AsmPrinter &printer) const {
  printer << '<';
  StringRef separator;
  for (Axis axis : kAxes) {
    const AxisState &state = getStates()[static_cast<unsigned>(axis)];
    if (state == AxisState())
      continue;
    printer << separator << drover::tfm::name(axis) << " = ";
    printState(printer.getStream(), state);
    separator = ", ";
  }
  if (!getLayouts().empty()) {
    printer << separator << "layout = {";
    llvm::interleave(
        getLayouts(),
        [&](const DimLayout &layout) {
          printer << layout.dim << " : ";
          printSegments(printer, cast<SegmentsAttr>(layout.segments).getSegments());
        },
        [&] { printer << " and "; });
    printer << '}';
  }
  printer << '>';
}

LogicalResult DistAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<AxisState> states,
                               ArrayRef<DimLayout> layouts) {
  if (states.size() != kNumAxes)
    return emitError() << "dist expects " << kNumAxes << " axes, not " << states.size();
  auto used = [&](Axis axis) { return states[static_cast<unsigned>(axis)] != AxisState(); };
  if (used(Axis::Tp) && (used(Axis::Kv) || used(Axis::Replica)))
    return emitError() << "dist expects tp or its factors kv and replica, not both";
  for (Axis axis : kAxes)
    if (axis != Axis::Cp && states[static_cast<unsigned>(axis)].twoChunk)
      return emitError() << "dist expects two chunks (x2) on cp only, not on " << drover::tfm::name(axis);
  for (size_t i = 1; i < layouts.size(); ++i)
    if (layouts[i].dim <= layouts[i - 1].dim)
      return emitError() << "dist expects layouts of ascending dimensions, not " << layouts[i - 1].dim << " and "
                         << layouts[i].dim;
  return success();
}

LogicalResult DistAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                       function_ref<InFlightDiagnostic()> emitError) const {
  for (Axis axis : kAxes) {
    const AxisState &state = getStates()[static_cast<unsigned>(axis)];
    if (state.isSharded() && state.dim >= shape.size())
      return emitError() << "dist shards dimension " << static_cast<unsigned>(state.dim) << " over "
                         << drover::tfm::name(axis) << ", but the tensor has rank " << shape.size();
  }
  for (const DimLayout &layout : getLayouts())
    if (layout.dim >= shape.size())
      return emitError() << "dist has a layout of dimension " << layout.dim << ", but the tensor has rank "
                         << shape.size();
  return success();
}

std::string Distribution::str(Axis axis) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  printState(stream, (*this)[axis]);
  return text;
}

std::string Distribution::str() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (Axis axis : kAxes) {
    if ((*this)[axis] == AxisState())
      continue;
    stream << (text.empty() ? "" : ", ") << name(axis) << '=';
    printState(stream, (*this)[axis]);
  }
  for (const DimLayout &layout : layouts)
    stream << (text.empty() ? "" : ", ") << "layout of " << layout.dim << ' '
           << drover::tfm::str(cast<SegmentsAttr>(layout.segments).getSegments());
  return text.empty() ? "R" : text;
}

std::string drover::tfm::str(ArrayRef<PaddedSegment> segments) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << '[';
  llvm::interleaveComma(segments, stream, [&](const PaddedSegment &segment) {
    stream << '[' << segment.groups << ", " << segment.valid << ", " << segment.padded << ", " << segment.total << ']';
  });
  stream << ']';
  return text;
}
