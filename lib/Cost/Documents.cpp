//===- Documents.cpp - what masks by document do to attention -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cost/Documents.h"
#include <algorithm>
#include <cassert>
#include <cmath>
#include <random>

using namespace drover::cost;

namespace {

/// Draws lengths; the same ones in every run and with every standard library.
class LengthSource {
public:
  explicit LengthSource(const DocumentLengths &lengths) : lengths(lengths) {
    if (lengths.sample.empty()) {
      double square = lengths.deviation * lengths.deviation;
      sigma = std::sqrt(std::log1p(square));
      mu = std::log(lengths.mean) - sigma * sigma / 2;
    }
  }

  int64_t next() {
    double length;
    if (!lengths.sample.empty()) {
      auto at = static_cast<size_t>(uniform() * static_cast<double>(lengths.sample.size()));
      length = lengths.sample[at];
    } else {
      // Box and Muller, A Note on the Generation of Random Normal Deviates, 1958.
      constexpr double kTwoPi = 6.283185307179586;
      double radius = std::sqrt(-2 * std::log(1 - uniform()));
      length = std::exp(mu + sigma * radius * std::cos(kTwoPi * uniform()));
    }
    return std::max<int64_t>(1, std::llround(length));
  }

private:
  /// In [0, 1).
  double uniform() { return static_cast<double>(engine() >> 11) * 0x1p-53; }

  const DocumentLengths &lengths;
  double mu = 0, sigma = 0;
  std::mt19937_64 engine{1};
};

/// Pairs of tokens [begin, end) of a document's part, where the first attends to itself alone.
double pairsOf(int64_t begin, int64_t end) {
  auto count = static_cast<double>(end - begin);
  return count * (static_cast<double>(begin + end) + 1) / 2;
}

/// Adds the pairs of a document's part, tokens [at, at + length) of a sequence, to the chunks that hold them.
void addDocument(std::vector<double> &chunks, int64_t chunkSize, int64_t at, int64_t length) {
  for (int64_t begin = 0; begin < length;) {
    int64_t chunk = (at + begin) / chunkSize;
    int64_t end = std::min(length, (chunk + 1) * chunkSize - at);
    chunks[static_cast<size_t>(chunk)] += pairsOf(begin, end);
    begin = end;
  }
}

} // namespace

DocumentLoad drover::cost::loadOf(const DocumentLengths &lengths, int64_t sequence, int64_t cp, int64_t microbatch) {
  assert(sequence > 0 && cp > 0 && microbatch > 0 && (cp == 1 || sequence % (2 * cp) == 0));
  DocumentLoad load;
  load.keys = (static_cast<double>(sequence) + 1) / 2;
  if (!lengths.isGiven())
    return load;
  // Enough for a few permille on the means of long-tailed corpora.
  constexpr int64_t kMicrobatches = 512, kDocuments = 1 << 18;
  LengthSource source(lengths);
  int64_t left = source.next(), drawn = 1, microbatches = 0;
  // A stream starts within a document no more likely than it ends in one: as after very many.
  left = std::max<int64_t>(1, left / 2);
  double sum = 0, squares = 0, most = 0;
  std::vector<double> chunks(static_cast<size_t>(2 * cp));
  // A sequence's own length bounds its chunks where CP is 1 and it may be odd.
  int64_t chunkSize = (sequence + 2 * cp - 1) / (2 * cp);
  for (; microbatches < 2 || (microbatches < kMicrobatches && drawn < kDocuments); ++microbatches) {
    std::fill(chunks.begin(), chunks.end(), 0);
    for (int64_t row = 0; row < microbatch; ++row)
      for (int64_t at = 0; at < sequence;) {
        int64_t part = std::min(left, sequence - at);
        addDocument(chunks, chunkSize, at, part);
        at += part;
        // What a sequence cuts off goes on in the next one, where it attends to nothing before.
        if ((left -= part) == 0) {
          left = source.next();
          ++drawn;
        }
      }
    double all = 0, largest = 0;
    for (int64_t rank = 0; rank < cp; ++rank) {
      double pairs = chunks[static_cast<size_t>(rank)] + chunks[static_cast<size_t>(2 * cp - 1 - rank)];
      all += pairs;
      largest = std::max(largest, pairs);
    }
    sum += all;
    squares += all * all;
    most += largest * static_cast<double>(cp);
  }
  auto count = static_cast<double>(microbatches);
  double mean = sum / count;
  load.keys = mean / static_cast<double>(sequence * microbatch);
  load.cpImbalance = most / sum;
  load.deviation = std::sqrt(std::max(0.0, squares / count - mean * mean)) / mean;
  return load;
}

const DocumentLoad &DocumentLoads::of(int64_t sequence, int64_t cp, int64_t microbatch) {
  auto [entry, isNew] = known.try_emplace({sequence, cp, microbatch});
  if (isNew)
    entry->second = loadOf(lengths, sequence, cp, microbatch);
  return entry->second;
}
