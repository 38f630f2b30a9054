//===- PlanWords.cpp - plan options that are words ------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/PlanWords.h"
#include <algorithm>
#include <cassert>

using namespace drover::schedule;

static bool contains(const std::vector<std::string> &words, const std::string &word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

static std::string join(const std::vector<std::string> &words, const std::string &separator) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : separator) + word;
  return text;
}

bool PlanWords::accepts(const std::string &text) const {
  if (contains(accepted, text))
    return true;
  if (parts.empty())
    return false;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    if (!contains(parts, text.substr(begin, end - begin)))
      return false;
    begin = end + 1;
  }
  return true;
}

std::string PlanWords::expected(const std::string &separator) const {
  return parts.empty() ? join(accepted, separator) : join(accepted, ", ") + ", or a list of " + join(parts, ", ");
}

const std::vector<PlanWords> &drover::schedule::planWords() {
  static const std::vector<PlanWords> words = {
      {"recompute", &Plan::recompute, {"none", "selective", "full"}, {}},
      {"rebuild", &Plan::rebuild, {"auto", "none"}, {"norms", "act", "rope", "casts"}},
      {"reduce_every", &Plan::reduceEvery, {"step", "run"}, {}},
      {"compute_dtype", &Plan::computeType, {"f32", "bf16"}, {}},
      {"mask", &Plan::mask, {"model", "documents"}, {}},
      {"optimizer", &Plan::optimizer, {"adamw", "sgd"}, {}},
      {"tp_overlap", &Plan::tpOverlap, {"none", "bulk", "ring"}, {}},
      {"attention", &Plan::attention, {"generated", "wgmma", "cudnn", "auto"}, {}}};
  return words;
}

const PlanWords &drover::schedule::planWordsOf(const std::string &key) {
  for (const PlanWords &words : planWords())
    if (words.key == key)
      return words;
  assert(false && "no such option");
  return planWords().front();
}
