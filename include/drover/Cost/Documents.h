//===- Documents.h - what masks by document do to attention -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_COST_DOCUMENTS_H
#define DROVER_COST_DOCUMENTS_H

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace drover::cost {

/// Lengths of a corpus' documents, in tokens. Sequences are cut from the stream of all documents, one after another, as
/// the executable's loader does.
struct DocumentLengths {
  /// A sample of the corpus; each length is as likely as any other. Empty: lognormal with the two numbers below, the
  /// usual form of text lengths (Sobkowicz et al., Lognormal distributions of user post lengths, 2013).
  std::vector<double> sample;
  double mean = 0;      // of documents; 0 without a sample: every sequence is one document
  double deviation = 0; // standard deviation over the mean; 0: all alike

  bool isGiven() const { return mean > 0 || !sample.empty(); }
};

/// What follows for attention.
struct DocumentLoad {
  double keys = 0;        // that a token attends to, in the mean over tokens
  double cpImbalance = 1; // pairs of the CP rank that has most in a microbatch over the mean rank's, mean over these
  double deviation = 0;   // of a microbatch's pairs from one to the next: standard deviation over the mean
};

/// Causal within documents, sequences of `sequence` tokens, CP's two chunks a rank, `microbatch` sequences a
/// microbatch. Read off a sample of sequences that is the same in every run; about a millisecond. Expects lengths of at
/// least 1 and, with cp > 1, a sequence that 2 * cp divides.
DocumentLoad loadOf(const DocumentLengths &lengths, int64_t sequence, int64_t cp, int64_t microbatch);

/// The loads of one corpus, each read off its sample once.
class DocumentLoads {
public:
  explicit DocumentLoads(DocumentLengths lengths) : lengths(std::move(lengths)) {}
  const DocumentLoad &of(int64_t sequence, int64_t cp, int64_t microbatch);

private:
  DocumentLengths lengths;
  std::map<std::array<int64_t, 3>, DocumentLoad> known;
};

} // namespace drover::cost

#endif // DROVER_COST_DOCUMENTS_H
