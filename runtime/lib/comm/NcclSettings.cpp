//===- NcclSettings.cpp - how NCCL is set up for a program ----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "comm/NcclSettings.h"
#include "drover/rt/json_reader.h"
#include <algorithm>
#include <climits>
#include <fstream>
#include <iterator>

namespace drover::rt {

// Names by NCCL's numbers; an empty one is not the tuner's to choose.
static const std::vector<std::string> collectiveNames = {"broadcast", "", "all_gather", "reduce_scatter", "all_reduce"};
static const std::vector<std::string> algorithmNames = {"tree", "ring", "", "", "nvls", "nvls_tree", "pat"};
static const std::vector<std::string> protocolNames = {"ll", "ll128", "simple"};
static const std::vector<std::string> fieldNames = {
    "min_ctas", "max_ctas", "cga_cluster_size", "cta_policy", "channels_per_net_peer", "traffic_class", "windows"};

static int readName(const JsonReader &json, const std::vector<std::string> &names) {
  std::string name = json.text(), accepted;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty() && names[i] == name)
      return int(i);
    if (!names[i].empty())
      accepted += concat(accepted.empty() ? "" : ", ", names[i]);
  }
  json.failed(concat("one of ", accepted, ", not '", name, "'"));
}

static NcclRule readRule(const JsonReader &json) {
  NcclRule rule;
  rule.collective = readName(json.at("collective"), collectiveNames);
  if (!json.at("up_to_bytes").raw().is_null())
    rule.upToBytes = uint64_t(json.at("up_to_bytes").integer());
  rule.algorithm = readName(json.at("algorithm"), algorithmNames);
  rule.protocol = readName(json.at("protocol"), protocolNames);
  rule.channels = int(json.at("channels").integer(1, 64));
  rule.chunkBytes = uint64_t(json.integerOr("chunk_bytes", 0));
  return rule;
}

/// Of one collective, ascending, the last one without an end: every size has its rule.
static void checkRules(const JsonReader &json, const std::vector<NcclRule> &rules) {
  for (size_t i = 0; i < rules.size(); ++i) {
    bool last = i + 1 == rules.size() || rules[i + 1].collective != rules[i].collective;
    if (last == rules[i].upToBytes.has_value())
      json.elements()[i]
          .at("up_to_bytes")
          .failed(last ? "null in the last rule of a collective" : "a number of bytes before the last rule");
    if (!last && rules[i + 1].upToBytes && *rules[i + 1].upToBytes <= *rules[i].upToBytes)
      json.elements()[i + 1]
          .at("up_to_bytes")
          .failed(concat("more than ", *rules[i].upToBytes, ", which stands before it"));
    for (size_t j = 0; last && j < i; ++j)
      if (rules[j].collective == rules[i].collective && rules[j + 1].collective != rules[j].collective)
        json.elements()[i].at("collective").failed("the rules of a collective behind each other");
  }
}

static NcclDimension readDimension(const JsonReader &json) {
  NcclDimension dimension;
  dimension.name = json.at("name").text();
  dimension.ids = json.at("ids").integers();
  dimension.members = json.at("members").integer(1, INT_MAX);
  for (const auto &[level, units] : json.at("units").members())
    dimension.units[level] = units.integer(1, INT_MAX);
  for (const auto &[name, field] : json.at("settings").members()) {
    if (std::find(fieldNames.begin(), fieldNames.end(), name) == fieldNames.end())
      field.failed("no such setting");
    dimension.fields[name] = field.at("value").integer(0, INT_MAX);
  }
  for (const JsonReader &rule : json.at("tuner").elements())
    dimension.rules.push_back(readRule(rule));
  checkRules(json.at("tuner"), dimension.rules);
  return dimension;
}

const NcclDimension *NcclSettings::find(int64_t id) const {
  for (const NcclDimension &dimension : dimensions)
    if (std::find(dimension.ids.begin(), dimension.ids.end(), id) != dimension.ids.end())
      return &dimension;
  return nullptr;
}

int64_t NcclSettings::serversOf(const NcclDimension &dimension) const {
  auto found = levels.empty() ? dimension.units.end() : dimension.units.find(levels.front());
  return found == dimension.units.end() ? 0 : found->second;
}

NcclSettings parseNcclSettings(const std::string &text, const std::string &source) {
  nlohmann::json file = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (file.is_discarded())
    fail(source, ": not JSON");
  JsonReader json(file, source);
  json.at("format").integer(1, 1);
  NcclSettings settings;
  if (!json.at("cluster").raw().is_null())
    settings.cluster = json.at("cluster").text();
  settings.note = json.textOr("note", "");
  for (const JsonReader &level : json.at("levels").elements())
    settings.levels.push_back(level.at("name").text());
  for (const JsonReader &variable : json.at("environment").elements())
    settings.environment.push_back(
        {variable.at("name").text(), variable.at("value").text(), variable.textOr("reason", "")});
  for (const JsonReader &dimension : json.at("communicators").elements())
    settings.dimensions.push_back(readDimension(dimension));
  return settings;
}

std::string readText(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file)
    fail(path, ": cannot be read");
  return text;
}

NcclSettings readNcclSettings(const std::string &path) { return parseNcclSettings(readText(path), path); }

} // namespace drover::rt
