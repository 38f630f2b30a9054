//===- Problem.cpp - what a search is asked -------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/Problem.h"
#include "drover/Schedule/PlanWords.h"
#include <algorithm>
#include <sstream>

using namespace drover;
using namespace drover::planner;
using schedule::Error;
using schedule::Result;

namespace {

/// Numbers of a problem and of its choices, each with its key.
struct NumberField {
  const char *key;
  int64_t Problem::*number;
};
constexpr NumberField kNumbers[] = {{"gpus", &Problem::gpus},
                                    {"seq_len", &Problem::sequence},
                                    {"global_batch", &Problem::globalBatch},
                                    {"top", &Problem::top}};
struct ListField {
  const char *key;
  std::vector<int64_t> Choices::*list;
};
constexpr ListField kLists[] = {{"tp", &Choices::tp},
                                {"cp", &Choices::cp},
                                {"pp", &Choices::pp},
                                {"dp", &Choices::dp},
                                {"chunks", &Choices::chunks},
                                {"run", &Choices::run},
                                {"microbatch", &Choices::microbatch},
                                {"zero", &Choices::zero}};
/// Plan options that are words and searched; the other ones have one value each.
struct NameField {
  const char *key;
  std::vector<std::string> Choices::*list;
};
constexpr NameField kNames[] = {{"recompute", &Choices::recompute}, {"tp_overlap", &Choices::tpOverlap}};
bool isSearched(const schedule::PlanWords &words) {
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](const NameField &field) { return std::string(field.key) == words.key; });
}
struct ModelField {
  const char *key;
  int64_t cost::ModelShape::*number;
};
constexpr ModelField kModel[] = {
    {"layers", &cost::ModelShape::layers},         {"hidden", &cost::ModelShape::hidden},
    {"heads", &cost::ModelShape::heads},           {"kv_heads", &cost::ModelShape::kvHeads},
    {"head_size", &cost::ModelShape::headSize},    {"ffn", &cost::ModelShape::ffnHidden},
    {"vocabulary", &cost::ModelShape::vocabulary}, {"position_rows", &cost::ModelShape::positionRows}};
struct ModelFlag {
  const char *key;
  bool cost::ModelShape::*flag;
};
constexpr ModelFlag kModelFlags[] = {{"gated", &cost::ModelShape::gated},
                                     {"tied", &cost::ModelShape::tied},
                                     {"layer_norm", &cost::ModelShape::layerNorm},
                                     {"biases", &cost::ModelShape::biases}};

template <typename T> std::string join(const std::vector<T> &values) {
  std::ostringstream os;
  for (size_t i = 0; i < values.size(); ++i)
    os << (i ? "," : "") << values[i];
  return os.str();
}

std::vector<std::string> splitAt(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    if (!part.empty())
      parts.push_back(part);
  return parts;
}

/// Of numbers in one range.
constexpr int64_t kLongestRange = 4096;

std::optional<int64_t> parseNumber(const std::string &text) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoll(text);
}

/// Reads the value of one key; the message says what is wrong.
class LineReader {
public:
  LineReader(Problem &problem, const std::function<Result<cluster::Cluster>(const std::string &)> &findCluster)
      : problem(problem), findCluster(findCluster) {}

  std::string read(const std::string &key, const std::string &value);

private:
  std::string readModel(const std::string &value);

  Problem &problem;
  const std::function<Result<cluster::Cluster>(const std::string &)> &findCluster;
};

std::string expectNumber(const std::string &key, const std::string &value) {
  return key + " is '" + value + "': expected a number";
}

std::string expectOnce(const std::string &key, const std::string &value, const std::string &twice) {
  return key + " is '" + value + "': has " + twice + " twice";
}

/// Numbers and ranges `a..b`, separated by commas.
std::string readList(const std::string &key, const std::string &value, std::vector<int64_t> &list) {
  list.clear();
  for (const std::string &part : splitAt(value, ',')) {
    size_t dots = part.find("..");
    std::optional<int64_t> first = parseNumber(part.substr(0, dots));
    std::optional<int64_t> last = dots == std::string::npos ? first : parseNumber(part.substr(dots + 2));
    if (!first || !last || *last < *first || *last - *first >= kLongestRange)
      return dots == std::string::npos ? expectNumber(key, part)
                                       : key + " is '" + part + "': expected a range a..b of at most " +
                                             std::to_string(kLongestRange) + " numbers";
    for (int64_t number = *first; number <= *last; ++number) {
      if (std::find(list.begin(), list.end(), number) != list.end())
        return expectOnce(key, value, std::to_string(number));
      list.push_back(number);
    }
  }
  return list.empty() ? expectNumber(key, value) : "";
}

std::string checkNames(const schedule::PlanWords &words, const std::vector<std::string> &names) {
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (!words.accepts(*name))
      return std::string(words.key) + " is '" + *name + "': expected " + words.expected(",");
    if (std::find(names.begin(), name, *name) != name)
      return expectOnce(words.key, join(names), *name);
  }
  return names.empty() ? std::string(words.key) + " is empty: expected " + words.expected(",") : "";
}

/// Reads a choice, or what is not searched; nothing for another key.
std::optional<std::string> readChoice(Problem &problem, const std::string &key, const std::string &value) {
  for (const ListField &field : kLists)
    if (key == field.key)
      return readList(key, value, problem.choices.*field.list);
  for (const NameField &field : kNames)
    if (key == field.key) {
      problem.choices.*field.list = splitAt(value, ',');
      return checkNames(schedule::planWordsOf(key), problem.choices.*field.list);
    }
  for (const schedule::PlanWords &words : schedule::planWords())
    if (key == words.key) {
      problem.rest.*words.value = value;
      return checkNames(words, {value});
    }
  if (key == "communication_sms") {
    std::optional<int64_t> sms = parseNumber(value);
    if (!sms || *sms < 0 || *sms > schedule::kMostCommunicationSms)
      return "communication sms is '" + value + "': expected 0 to " + std::to_string(schedule::kMostCommunicationSms);
    problem.rest.communicationSms = *sms;
    return "";
  }
  if (key == "layers_per_chunk") {
    Result<std::vector<int64_t>> layers = schedule::parseLayersPerChunk(value);
    if (!layers)
      return layers.error();
    problem.choices.layersPerChunk = *layers;
    return "";
  }
  if (key == "schedule") {
    problem.choices.schedules.clear();
    for (const std::string &part : splitAt(value, ',')) {
      std::optional<schedule::ScheduleKind> kind = schedule::parseScheduleKind(part);
      if (!kind)
        return "schedule is '" + part + "': expected 1f1b, interleaved, bfs or zb-h1";
      std::vector<schedule::ScheduleKind> &kinds = problem.choices.schedules;
      if (std::find(kinds.begin(), kinds.end(), *kind) != kinds.end())
        return expectOnce(key, value, part);
      kinds.push_back(*kind);
    }
    return "";
  }
  if (key == "order") {
    Result<cluster::AxisOrder> order = cluster::parseOrder(value);
    if (!order)
      return order.error();
    problem.order = *order;
    return "";
  }
  return std::nullopt;
}

std::string LineReader::readModel(const std::string &value) {
  for (const std::string &part : splitAt(value, ' ')) {
    size_t equals = part.find('=');
    std::string key = part.substr(0, equals), text = equals == std::string::npos ? "" : part.substr(equals + 1);
    bool known = false;
    for (const ModelField &field : kModel)
      if (key == field.key) {
        std::optional<int64_t> number = parseNumber(text);
        if (!number)
          return expectNumber(key, text);
        problem.model.*field.number = *number;
        known = true;
      }
    for (const ModelFlag &field : kModelFlags)
      if (key == field.key && equals == std::string::npos)
        known = problem.model.*field.flag = true;
    if (!known)
      return "unknown part '" + part + "' of model";
  }
  return "";
}

std::string LineReader::read(const std::string &key, const std::string &value) {
  if (key == "model")
    return readModel(value);
  if (key == "cluster") {
    Result<cluster::Cluster> found = findCluster(value);
    if (!found)
      return found.error();
    problem.cluster = *found;
    return "";
  }
  for (const NumberField &field : kNumbers)
    if (key == field.key) {
      std::optional<int64_t> number = parseNumber(value);
      if (!number)
        return expectNumber(key, value);
      problem.*field.number = *number;
      return "";
    }
  if (std::optional<std::string> message = readChoice(problem, key, value))
    return *message;
  return "unknown key '" + key + "'";
}

bool allows(const std::vector<int64_t> &list, int64_t value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

std::string number(int64_t value) { return std::to_string(value); }

std::optional<Error> checkSizes(const Problem &problem) {
  if (problem.gpus < 1)
    return Error{"gpus is " + number(problem.gpus) + ": expected 1 or more"};
  if (problem.gpus > problem.cluster.gpus())
    return Error{"gpus is " + number(problem.gpus) + ": the cluster '" + problem.cluster.name + "' has " +
                 number(problem.cluster.gpus())};
  if (problem.sequence < 1)
    return Error{"the sequence length is " + number(problem.sequence) + ": expected 1 or more"};
  if (problem.model.positionRows > 0 && problem.sequence > problem.model.positionRows)
    return Error{"the sequence length is " + number(problem.sequence) + ": the model's table of positions has " +
                 number(problem.model.positionRows) + " rows"};
  if (problem.globalBatch < 1)
    return Error{"the global batch is " + number(problem.globalBatch) + " sequences: expected 1 or more"};
  if (problem.top < 1)
    return Error{"top is " + number(problem.top) + ": expected 1 or more"};
  return std::nullopt;
}

/// Choices against each other and the number of GPUs.
std::optional<Error> checkChoices(const Problem &problem) {
  const Choices &choices = problem.choices;
  for (const ListField &field : kLists)
    for (int64_t value : choices.*field.list)
      if (value < (std::string(field.key) == "zero" ? 0 : 1))
        return Error{std::string(field.key) + " is " + number(value) + ": expected 1 or more"};
  for (int64_t zero : choices.zero)
    if (zero > 3)
      return Error{"zero is " + number(zero) + ": expected 0, 1, 2 or 3"};
  for (const ListField &field : {kLists[0], kLists[1], kLists[2], kLists[3]}) {
    const std::vector<int64_t> &list = choices.*field.list;
    if (!list.empty() &&
        std::none_of(list.begin(), list.end(), [&](int64_t value) { return problem.gpus % value == 0; }))
      return Error{std::string(field.key) + " is " + join(list) + ": it must divide " + number(problem.gpus) + " GPUs"};
  }
  if (choices.tp.size() == 1 && choices.cp.size() == 1 && choices.pp.size() == 1 && choices.dp.size() == 1) {
    int64_t ranks = choices.tp[0] * choices.cp[0] * choices.pp[0] * choices.dp[0];
    if (ranks != problem.gpus)
      return Error{"tp " + join(choices.tp) + ", cp " + join(choices.cp) + ", pp " + join(choices.pp) + " and dp " +
                   join(choices.dp) + " make " + number(ranks) + " ranks: expected " + number(problem.gpus) + " GPUs"};
  }
  if (!choices.layersPerChunk.empty()) {
    int64_t sum = 0, chunks = static_cast<int64_t>(choices.layersPerChunk.size());
    for (int64_t layers : choices.layersPerChunk)
      sum += layers;
    if (sum != problem.model.layers)
      return Error{"layers per chunk sum to " + number(sum) + ": the model has " + number(problem.model.layers) +
                   " layers"};
    if (choices.pp.size() == 1 && choices.chunks.size() == 1 && choices.pp[0] * choices.chunks[0] != chunks)
      return Error{"layers per chunk has " + number(chunks) + " entries: pp " + join(choices.pp) + " with " +
                   join(choices.chunks) + " chunks a rank has " + number(choices.pp[0] * choices.chunks[0])};
  }
  if (!choices.microbatch.empty() &&
      std::none_of(choices.microbatch.begin(), choices.microbatch.end(),
                   [&](int64_t microbatch) { return problem.globalBatch % microbatch == 0; }))
    return Error{"microbatch is " + join(choices.microbatch) + ": it must divide the global batch of " +
                 number(problem.globalBatch) + " sequences"};
  if (choices.dp.size() == 1 && choices.microbatch.size() == 1 &&
      problem.globalBatch % (choices.dp[0] * choices.microbatch[0]) != 0)
    return Error{"the global batch of " + number(problem.globalBatch) + " sequences is not a multiple of microbatch " +
                 join(choices.microbatch) + " times dp " + join(choices.dp)};
  bool oneChunk = !choices.schedules.empty();
  for (schedule::ScheduleKind kind : choices.schedules)
    oneChunk &= kind == schedule::ScheduleKind::OneForwardOneBackward || kind == schedule::ScheduleKind::ZeroBubbleH1;
  if (oneChunk && !allows(choices.chunks, 1))
    return Error{std::string("schedule ") + nameOf(choices.schedules.front()) + " has one chunk a rank, not " +
                 join(choices.chunks)};
  return std::nullopt;
}
} // namespace

std::string planner::printProblem(const Problem &problem) {
  std::ostringstream os;
  os << "model";
  for (const ModelField &field : kModel)
    os << " " << field.key << "=" << problem.model.*field.number;
  for (const ModelFlag &field : kModelFlags)
    if (problem.model.*field.flag)
      os << " " << field.key;
  os << "\ncluster " << problem.cluster.name << "\n";
  for (const NumberField &field : kNumbers)
    os << field.key << " " << problem.*field.number << "\n";
  for (const ListField &field : kLists)
    if (!(problem.choices.*field.list).empty())
      os << field.key << " " << join(problem.choices.*field.list) << "\n";
  if (!problem.choices.layersPerChunk.empty())
    os << "layers_per_chunk " << join(problem.choices.layersPerChunk) << "\n";
  std::vector<std::string> kinds;
  for (schedule::ScheduleKind kind : problem.choices.schedules)
    kinds.push_back(nameOf(kind));
  if (!kinds.empty())
    os << "schedule " << join(kinds) << "\n";
  for (const NameField &field : kNames)
    if (!(problem.choices.*field.list).empty())
      os << field.key << " " << join(problem.choices.*field.list) << "\n";
  const schedule::Plan defaults;
  for (const schedule::PlanWords &words : schedule::planWords())
    if (!isSearched(words) && problem.rest.*words.value != defaults.*words.value)
      os << words.key << " " << problem.rest.*words.value << "\n";
  if (problem.order)
    os << "order " << cluster::str(*problem.order) << "\n";
  return os.str();
}

Result<Problem> planner::parseProblem(const std::string &text, const std::string &name,
                                      const std::function<Result<cluster::Cluster>(const std::string &)> &findCluster) {
  Problem problem;
  LineReader reader(problem, findCluster);
  std::istringstream stream(text);
  int line = 0;
  for (std::string content; std::getline(stream, content);) {
    ++line;
    content = content.substr(0, content.find('#'));
    while (!content.empty() && content.back() == ' ')
      content.pop_back();
    if (content.empty())
      continue;
    size_t space = content.find(' ');
    std::string value = space == std::string::npos ? "" : content.substr(space + 1);
    if (std::string message = reader.read(content.substr(0, space), value); !message.empty())
      return Error{name + ":" + number(line) + ": error: " + message};
  }
  return problem;
}

std::optional<Error> planner::setChoice(Problem &problem, const std::string &key, const std::string &value) {
  std::optional<std::string> message = readChoice(problem, key, value);
  if (!message)
    return Error{"unknown choice '" + key + "'"};
  if (!message->empty())
    return Error{*message};
  return std::nullopt;
}

std::optional<Error> planner::checkProblem(const Problem &problem) {
  if (std::optional<Error> error = cost::checkShape(problem.model))
    return error;
  if (std::optional<Error> error = cluster::checkCluster(problem.cluster))
    return error;
  if (std::optional<Error> error = checkSizes(problem))
    return error;
  return checkChoices(problem);
}
