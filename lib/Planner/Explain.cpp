//===- Explain.cpp - one layout against another ---------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/Explain.h"
#include "PlaceAxes.h"
#include "Text.h"
#include <algorithm>

using namespace drover;
using namespace drover::planner;
using schedule::Error;
using schedule::Result;

std::vector<Comparison::Option> Comparison::differences() const {
  std::vector<Option> result;
  std::vector<std::pair<std::string, std::string>> ofBest = optionsOf(best.layout), ofOther = optionsOf(other.layout);
  for (size_t i = 0; i < ofBest.size(); ++i)
    if (ofBest[i].second != ofOther[i].second)
      result.push_back({ofBest[i].first, ofBest[i].second, ofOther[i].second});
  return result;
}

std::optional<Error> planner::setChoices(Problem &problem, const std::string &text) {
  std::vector<std::pair<std::string, std::string>> choices;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    if (size_t equals = part.find('='); equals != std::string::npos) {
      choices.emplace_back(part.substr(0, equals), part.substr(equals + 1));
      std::replace(choices.back().first.begin(), choices.back().first.end(), '-', '_');
    } else if (!choices.empty()) {
      choices.back().second += "," + part; // a value goes on: order=tp,dp,pp,cp
    } else {
      return Error{"'" + part + "' is no choice: expected KEY=VALUE, separated by commas"};
    }
  }
  bool fixesDp = false;
  for (const auto &[key, value] : choices) {
    if (std::optional<Error> error = setChoice(problem, key, value))
      return error;
    fixesDp |= key == "dp";
  }
  // What is said last holds: the data-parallel size follows the rest.
  if (!fixesDp)
    problem.choices.dp.clear();
  return std::nullopt;
}

Result<Comparison> planner::compareWith(const Problem &problem, const RankedPlan &best, Problem other) {
  other.top = 1;
  if (std::optional<Error> error = checkProblem(other))
    return *error;
  Result<Solution> solution = solveOnly(other);
  if (!solution)
    return Error{solution.error()};
  if (!solution->plans.empty())
    return Comparison{best, std::move(solution->plans.front())};
  if (!solution->nearest)
    return Error{"no layout has these choices"};
  Result<RankedPlan> nearest = evaluate(problem, *solution->nearest);
  if (!nearest)
    return Error{nearest.error()};
  return Comparison{best, std::move(*nearest)};
}
