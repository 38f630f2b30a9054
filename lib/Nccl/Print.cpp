//===- Print.cpp - NCCL's settings as a file ------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Nccl/Settings.h"
#include <nlohmann/json.hpp>

using namespace drover;
using namespace drover::nccl;
using Json = nlohmann::ordered_json;

static Json printRule(const TunerRule &rule) {
  return {{"collective", cost::nameOf(rule.collective)},
          {"up_to_bytes", rule.upToBytes ? Json(*rule.upToBytes) : Json()},
          {"algorithm", rule.algorithm},
          {"protocol", cost::nameOf(rule.protocol)},
          {"channels", rule.channels},
          {"chunk_bytes", rule.chunkBytes},
          {"reason", rule.reason}};
}

static Json printDimension(const Settings &settings, const Dimension &dimension) {
  Json units = Json::object(), fields = Json::object(), rules = Json::array();
  for (size_t level = 0; level < dimension.units.size(); ++level)
    units[settings.levels[level].name] = dimension.units[level];
  for (const Setting &setting : dimension.settings)
    fields[setting.name] = {{"value", setting.value}, {"reason", setting.reason}};
  for (const TunerRule &rule : dimension.rules)
    rules.push_back(printRule(rule));
  return {{"name", dimension.name},
          {"ids", dimension.ids},
          {"members", dimension.members},
          {"groups", dimension.groups},
          {"units", units},
          {"settings", fields},
          {"tuner", rules}};
}

std::string nccl::printSettings(const Settings &settings) {
  Json levels = Json::array(), communicators = Json::array(), environment = Json::array();
  for (const Level &level : settings.levels)
    levels.push_back({{"name", level.name}, {"gpus", level.gpus}});
  for (const Dimension &dimension : settings.dimensions)
    communicators.push_back(printDimension(settings, dimension));
  for (const Variable &variable : settings.environment)
    environment.push_back({{"name", variable.name}, {"value", variable.value}, {"reason", variable.reason}});
  Json file = {{"format", 1},
               {"cluster", settings.cluster.empty() ? Json() : Json(settings.cluster)},
               {"note", settings.note},
               {"levels", levels},
               {"environment", environment},
               {"communicators", communicators}};
  return file.dump(1) + "\n";
}
