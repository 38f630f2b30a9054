//===- PlanWords.h - plan options that are words ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SCHEDULE_PLANWORDS_H
#define DROVER_SCHEDULE_PLANWORDS_H

#include "drover/Schedule/Plan.h"
#include <string>
#include <vector>

namespace drover::schedule {

/// A plan option whose value is one of a few words. The command line, a problem and the search read them here.
struct PlanWords {
  const char *key; // in a plan and a problem; the option has dashes for underscores
  std::string Plan::*value;
  std::vector<std::string> accepted;
  std::vector<std::string> parts; // a list of these, separated by commas, is accepted too

  bool accepts(const std::string &text) const;
  /// What is accepted: words with the separator between, or a phrase where there are parts.
  std::string expected(const std::string &separator) const;
};

const std::vector<PlanWords> &planWords();
/// Of a key that there is.
const PlanWords &planWordsOf(const std::string &key);

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_PLANWORDS_H
