//===- BatchLoader.cpp - inputs of a microbatch ---------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/batch_loader.h"
#include "drover/rt/error.h"
#include "drover/rt/parameter_layout.h"
#include "drover/rt/text.h"
#include <algorithm>

namespace drover::rt {

void storeInteger(DType type, uint8_t *target, int64_t index, int64_t value) {
  auto put = [&](auto converted) {
    std::memcpy(target + index * int64_t(sizeof(converted)), &converted, sizeof(converted));
  };
  switch (type) {
  case DROVER_I64:
    return put(value);
  case DROVER_I32:
    return put(int32_t(value));
  case DROVER_I8:
  case DROVER_I1:
    return put(int8_t(value));
  case DROVER_F32:
    return put(float(value));
  case DROVER_F64:
    return put(double(value));
  case DROVER_BF16:
    return put(floatToBfloat(float(value)));
  case DROVER_F16:
    fail("no input of type f16");
  }
}

void fillOnes(const TensorInfo &input, uint8_t *target) {
  for (int64_t i = 0; i < input.elements(); ++i)
    storeInteger(input.dtype, target, i, 1);
}

void fillCounting(const Program &program, const Coordinates &place, const TensorInfo &input, uint8_t *target) {
  std::vector<int64_t> shape = globalShape(program.grid, input.shape, input.cuts);
  int64_t length = shape.empty() ? 1 : shape.back();
  TensorLayout(program.grid, place, shape, input.shape, input.cuts)
      .forEachRun(0, input.elements(), [&](int64_t local, int64_t global, int64_t count) {
        for (int64_t i = 0; i < count; ++i)
          storeInteger(input.dtype, target, local + i, (global + i) % length);
      });
}

void copyPart(const Program &program, const Coordinates &place, const TensorInfo &input, const NpyFile &file,
              uint8_t *target) {
  std::vector<int64_t> shape = globalShape(program.grid, input.shape, input.cuts), ofAll = shape;
  int64_t dataRanks = program.grid.size(DROVER_AXIS_DP);
  if (!shape.empty())
    ofAll[0] *= dataRanks;
  if (file.shape() != shape && file.shape() != ofAll)
    fail(file.path(), ": shape ", formatShape(file.shape()), ", input '", input.name, "' expects ", formatShape(shape),
         ofAll != shape ? " or " + formatShape(ofAll) : "");
  int64_t width = byteSize(input.dtype), elements = 1;
  for (int64_t size : shape)
    elements *= size;
  bool own = file.shape() != shape;
  std::vector<uint8_t> whole(size_t(elements * width * (own ? dataRanks : 1)));
  file.read(input.dtype, whole.data());
  const uint8_t *values = whole.data() + (own ? place[DROVER_AXIS_DP] * elements * width : 0);
  TensorLayout(program.grid, place, shape, input.shape, input.cuts)
      .forEachRun(0, input.elements(), [&](int64_t local, int64_t global, int64_t count) {
        std::memcpy(target + local * width, values + global * width, size_t(count * width));
      });
}

static bool isFilledFromData(const TensorInfo &input) {
  return input.fill == "tokens" || input.fill == "labels" || input.fill == "documents";
}

static bool isFilledByRow(const TensorInfo &input) {
  return isFilledFromData(input) || (input.fill == "arange" && input.role == "positions");
}

BatchLoader::BatchLoader(const Program &program, const TrainOptions &options, const Coordinates &place)
    : program(program), options(options), place(place), stream(TokenStream::open(options.data)),
      length(program.sequenceLength()), epochSequences(countSequences()),
      order(epochSequences, options.shuffle, options.seed) {
  checkOptions();
  int64_t part = length / program.grid.size(DROVER_AXIS_CP);
  chunkPlaces = globalIndices(program.grid, place, {{0, DROVER_AXIS_CP, {}}}, 0, part);
  checkInputNames();
  for (const TensorInfo &input : program.inputs) {
    auto given = std::find_if(options.inputs.begin(), options.inputs.end(),
                              [&](const auto &file) { return file.first == input.name; });
    bool isGiven = given != options.inputs.end(), isFile = input.fill.compare(0, 5, "file:") == 0;
    if (isGiven || isFile) {
      std::vector<uint8_t> bytes(static_cast<size_t>(input.bytes()));
      copyPart(program, place, input, NpyFile(isGiven ? given->second : input.fill.substr(5)), bytes.data());
      fixedInputs.emplace(input.name, std::move(bytes));
    } else if (isFilledByRow(input) &&
               (input.shape.empty() || input.shape.back() != (input.cuts.empty() ? length : part)))
      fail("program: input '", input.name, "' of shape ", formatShape(input.shape), " for sequences of ", length);
    else if (!isFilledByRow(input) && input.fill != "ones" && input.fill != "zeros" && input.fill != "arange")
      fail("input '", input.name, "' has no values, expected --input=", input.name, "=FILE.npy");
  }
  stream.checkVocabulary(program.vocabulary);
}

void BatchLoader::checkInputNames() const {
  std::vector<std::string> accepted, fromData;
  for (const TensorInfo &input : program.inputs)
    (isFilledFromData(input) ? fromData : accepted).push_back(input.name);
  auto has = [](const std::vector<std::string> &names, const std::string &name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const auto &[name, path] : options.inputs)
    if (!has(accepted, name))
      fail("--input=", name, "=", path, has(fromData, name) ? ": comes from --data" : ": the program has no such input",
           accepted.empty() ? "; no input takes values" : "; expected one of " + formatNames(accepted));
}

int64_t BatchLoader::countSequences() const {
  int64_t sequences = (stream.size() - 1) / length;
  if (sequences < 1)
    fail(options.data, ": ", stream.size(), " tokens, a sequence needs ", length + 1);
  return sequences;
}

void BatchLoader::checkOptions() const {
  bool hasDocuments = program.inputWithRole("documents") != nullptr;
  if (hasDocuments && !options.documentSeparator)
    fail("the program was compiled with --mask=documents, expected --document-separator=TOKEN");
  if (options.documentSeparator && !hasDocuments && !options.resetPositions && !options.maskAfterSeparator)
    fail("--document-separator=", *options.documentSeparator,
         ": has no effect, the program was not compiled with --mask=documents");
  if (options.resetPositions && !program.inputWithRole("positions"))
    fail("--reset-positions: the program has no input for positions, which one compiled with --mask=documents has");
  std::vector<int64_t> ids = options.ignoreLabels;
  if (options.documentSeparator)
    ids.push_back(*options.documentSeparator);
  for (int64_t id : ids)
    if (id >= program.vocabulary)
      fail("token id ", id, " of --ignore-label or --document-separator, expected ids from 0 to ",
           program.vocabulary - 1);
}

/// A separator belongs to the document that it ends. The label across a boundary counts unless it is masked.
void BatchLoader::read(int64_t number, Sequence &sequence) const {
  for (auto *part : {&sequence.labels, &sequence.documents, &sequence.positions})
    part->resize(size_t(length));
  sequence.tokens.resize(size_t(length) + 1);
  stream.read(order.place(number) * length, length + 1, sequence.tokens.data());
  int64_t document = 0, documentBegin = 0;
  for (int64_t i = 0; i < length; ++i) {
    bool separates = options.documentSeparator && sequence.tokens[i] == *options.documentSeparator;
    int64_t label = sequence.tokens[i + 1];
    bool ignored =
        (separates && options.maskAfterSeparator) ||
        std::find(options.ignoreLabels.begin(), options.ignoreLabels.end(), label) != options.ignoreLabels.end();
    sequence.labels[i] = ignored ? -1 : label;
    sequence.documents[i] = document;
    sequence.positions[i] = options.resetPositions ? i - documentBegin : i;
    if (separates) {
      ++document;
      documentBegin = i + 1;
    }
  }
}

int64_t BatchLoader::numberOf(int64_t consumed, int64_t microbatch, int64_t row) const {
  return DataOrder::number(consumed, microbatch, program.grid.size(DROVER_AXIS_DP), place[DROVER_AXIS_DP],
                           program.microbatchSize(), row);
}

int64_t BatchLoader::countLabels(int64_t consumed, int64_t microbatches) const {
  int64_t count = 0;
  if (place[DROVER_AXIS_TP] != 0 || place[DROVER_AXIS_PP] != 0)
    return 0;
  Sequence sequence;
  for (int64_t microbatch = 0; microbatch < microbatches; ++microbatch)
    for (int64_t row = 0; row < program.microbatchSize(); ++row) {
      read(numberOf(consumed, microbatch, row), sequence);
      count += std::count_if(chunkPlaces.begin(), chunkPlaces.end(),
                             [&](int64_t i) { return sequence.labels[size_t(i)] >= 0; });
    }
  return count;
}

void BatchLoader::fillRow(const TensorInfo &input, uint8_t *target, int64_t row, const Sequence &sequence) const {
  const std::vector<int64_t> &values = input.fill == "tokens"      ? sequence.tokens
                                       : input.fill == "labels"    ? sequence.labels
                                       : input.fill == "documents" ? sequence.documents
                                                                   : sequence.positions;
  int64_t part = input.shape.back();
  for (int64_t i = 0; i < part; ++i)
    storeInteger(input.dtype, target, row * part + i, values[size_t(input.cuts.empty() ? i : chunkPlaces[size_t(i)])]);
}

void BatchLoader::fill(uint8_t *slot, int64_t consumed, int64_t microbatch) const {
  for (const TensorInfo &input : program.inputs) {
    uint8_t *target = slot + input.offset;
    if (auto fixed = fixedInputs.find(input.name); fixed != fixedInputs.end())
      std::memcpy(target, fixed->second.data(), fixed->second.size());
    else if (input.fill == "ones")
      fillOnes(input, target);
    else if (input.fill == "zeros")
      std::memset(target, 0, size_t(input.bytes()));
    else if (!isFilledByRow(input))
      fillCounting(program, place, input, target);
  }
  Sequence sequence;
  for (int64_t row = 0; row < program.microbatchSize(); ++row) {
    read(numberOf(consumed, microbatch, row), sequence);
    for (const TensorInfo &input : program.inputs)
      if (isFilledByRow(input) && !fixedInputs.count(input.name) && row < input.elements() / input.shape.back())
        fillRow(input, slot + input.offset, row, sequence);
  }
}

} // namespace drover::rt
