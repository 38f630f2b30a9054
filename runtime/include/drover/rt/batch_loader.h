//===- batch_loader.h - inputs of a microbatch ------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_BATCH_LOADER_H
#define DROVER_RT_BATCH_LOADER_H

#include "drover/rt/data_order.h"
#include "drover/rt/options.h"
#include "drover/rt/program.h"
#include "drover/rt/token_stream.h"
#include <map>

namespace drover::rt {

/// Stores an integer as any element type.
void storeInteger(DType type, uint8_t *target, int64_t index, int64_t value);

/// Fills one input with 1, or with 0, 1, 2, .. along its last dimension.
void fillOnes(const TensorInfo &input, uint8_t *target);
void fillCounting(const TensorInfo &input, uint8_t *target);

/// Turns tokens into the inputs of the training step (DESIGN section 4, Documents and Data order).
class BatchLoader {
public:
  /// Throws Error where program, options and data do not fit each other, a token beyond the vocabulary included.
  BatchLoader(const Program &program, const TrainOptions &options);

  /// Labels that count among the `sequences` that follow `consumed` ones.
  int64_t countLabels(int64_t consumed, int64_t sequences) const;
  /// Writes a microbatch's inputs, packed as the program has them.
  void fill(uint8_t *slot, int64_t consumed, int64_t microbatch) const;

  int64_t sequencesPerEpoch() const { return epochSequences; }

private:
  struct Sequence {
    std::vector<int64_t> tokens, labels, documents, positions;
  };

  void checkOptions() const;
  int64_t countSequences() const;
  void read(int64_t number, Sequence &sequence) const;
  void fillRow(const TensorInfo &input, uint8_t *target, int64_t row, const Sequence &sequence) const;

  const Program &program;
  const TrainOptions &options;
  TokenStream stream;
  int64_t length; // of a sequence
  int64_t epochSequences;
  DataOrder order;
  std::map<std::string, std::vector<uint8_t>> fixedInputs; // from files
};

} // namespace drover::rt

#endif // DROVER_RT_BATCH_LOADER_H
