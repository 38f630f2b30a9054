//===- batch_loader.h - inputs of a microbatch ------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_BATCH_LOADER_H
#define DROVER_RT_BATCH_LOADER_H

#include "drover/rt/data_order.h"
#include "drover/rt/npy.h"
#include "drover/rt/options.h"
#include "drover/rt/program.h"
#include "drover/rt/token_stream.h"
#include <map>

namespace drover::rt {

/// Stores an integer as any element type.
void storeInteger(DType type, uint8_t *target, int64_t index, int64_t value);

/// Fills one input with 1, or with 0, 1, 2, .. along its last dimension (of which a cp rank has two chunks).
void fillOnes(const TensorInfo &input, uint8_t *target);
void fillCounting(const Program &program, const Coordinates &place, const TensorInfo &input, uint8_t *target);

/// Copies a rank's part of an input from values of the whole: [sequences, ..] as every dp rank has them, or those of
/// all dp ranks, one after the other.
void copyPart(const Program &program, const Coordinates &place, const TensorInfo &input, const NpyFile &file,
              uint8_t *target);

/// Turns tokens into the inputs of the training step (DESIGN section 4, Documents and Data order).
class BatchLoader {
public:
  /// Throws Error where program, options and data do not fit each other, a token beyond the vocabulary included.
  BatchLoader(const Program &program, const TrainOptions &options, const Coordinates &place = {});

  /// Labels that count in this rank's part of the microbatches of a step; none where another rank counts the same.
  int64_t countLabels(int64_t consumed, int64_t microbatches) const;
  /// Writes a microbatch's inputs, packed as the program has them.
  void fill(uint8_t *slot, int64_t consumed, int64_t microbatch) const;

  int64_t sequencesPerEpoch() const { return epochSequences; }

private:
  struct Sequence {
    std::vector<int64_t> tokens, labels, documents, positions;
  };

  void checkOptions() const;
  void checkInputNames() const;
  int64_t countSequences() const;
  void read(int64_t number, Sequence &sequence) const;
  /// The number of a sequence of this rank's microbatch.
  int64_t numberOf(int64_t consumed, int64_t microbatch, int64_t row) const;
  void fillRow(const TensorInfo &input, uint8_t *target, int64_t row, const Sequence &sequence) const;

  const Program &program;
  const TrainOptions &options;
  Coordinates place;
  TokenStream stream;
  int64_t length; // of a sequence
  int64_t epochSequences;
  DataOrder order;
  std::vector<int64_t> chunkPlaces;                        // of this rank's elements in a sequence that is cut over cp
  std::map<std::string, std::vector<uint8_t>> fixedInputs; // from files
};

} // namespace drover::rt

#endif // DROVER_RT_BATCH_LOADER_H
