//===- BatchLoader.cpp - inputs of a microbatch ---------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/batch_loader.h"
#include "drover/rt/error.h"
#include "drover/rt/npy.h"
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

void fillCounting(const TensorInfo &input, uint8_t *target) {
  int64_t length = input.shape.empty() ? 1 : input.shape.back();
  for (int64_t i = 0; i < input.elements(); ++i)
    storeInteger(input.dtype, target, i, i % length);
}

static bool isFilledByRow(const TensorInfo &input) {
  return input.fill == "tokens" || input.fill == "labels" || input.fill == "documents" ||
         (input.fill == "arange" && input.role == "positions");
}

static std::vector<uint8_t> readFixedInput(const TensorInfo &input, const std::string &path) {
  NpyFile file(path);
  if (file.shape() != input.shape)
    fail(path, ": shape ", formatShape(file.shape()), ", input '", input.name, "' expects ", formatShape(input.shape));
  std::vector<uint8_t> bytes(static_cast<size_t>(input.bytes()));
  file.read(input.dtype, bytes.data());
  return bytes;
}

BatchLoader::BatchLoader(const Program &program, const TrainOptions &options)
    : program(program), options(options), stream(TokenStream::open(options.data)), length(program.sequenceLength()),
      epochSequences(countSequences()), order(epochSequences, options.shuffle, options.seed) {
  checkOptions();
  for (const auto &[name, path] : options.inputs)
    if (std::none_of(program.inputs.begin(), program.inputs.end(),
                     [&name = name](const TensorInfo &input) { return input.name == name; }))
      fail("--input=", name, "=", path, ": the program has no such input");
  for (const TensorInfo &input : program.inputs) {
    auto given = std::find_if(options.inputs.begin(), options.inputs.end(),
                              [&](const auto &file) { return file.first == input.name; });
    if (given != options.inputs.end())
      fixedInputs.emplace(input.name, readFixedInput(input, given->second));
    else if (input.fill.compare(0, 5, "file:") == 0)
      fixedInputs.emplace(input.name, readFixedInput(input, input.fill.substr(5)));
    else if (isFilledByRow(input) && (input.shape.empty() || input.shape.back() != length))
      fail("program: input '", input.name, "' of shape ", formatShape(input.shape), " for sequences of ", length);
    else if (!isFilledByRow(input) && input.fill != "ones" && input.fill != "zeros" && input.fill != "arange")
      fail("input '", input.name, "' has no values, expected --input=", input.name, "=FILE.npy");
  }
  stream.checkVocabulary(program.vocabulary);
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
    fail("--reset-positions: the program has no input for positions");
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

int64_t BatchLoader::countLabels(int64_t consumed, int64_t sequences) const {
  int64_t count = 0;
  Sequence sequence;
  for (int64_t i = 0; i < sequences; ++i) {
    read(consumed + i, sequence);
    count += std::count_if(sequence.labels.begin(), sequence.labels.end(), [](int64_t label) { return label >= 0; });
  }
  return count;
}

void BatchLoader::fillRow(const TensorInfo &input, uint8_t *target, int64_t row, const Sequence &sequence) const {
  const std::vector<int64_t> &values = input.fill == "tokens"      ? sequence.tokens
                                       : input.fill == "labels"    ? sequence.labels
                                       : input.fill == "documents" ? sequence.documents
                                                                   : sequence.positions;
  for (int64_t i = 0; i < length; ++i)
    storeInteger(input.dtype, target, row * length + i, values[size_t(i)]);
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
      fillCounting(input, target);
  }
  Sequence sequence;
  int64_t size = program.microbatchSize();
  for (int64_t row = 0; row < size; ++row) {
    read(DataOrder::number(consumed, microbatch, /*dataRanks=*/1, /*dataRank=*/0, size, row), sequence);
    for (const TensorInfo &input : program.inputs)
      if (isFilledByRow(input) && !fixedInputs.count(input.name) && row < input.elements() / length)
        fillRow(input, slot + input.offset, row, sequence);
  }
}

} // namespace drover::rt
