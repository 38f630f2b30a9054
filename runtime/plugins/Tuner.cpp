//===- Tuner.cpp - NCCL's tuner plugin, by the compiler's table -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Every member of a communicator must come to the same decisions: they follow from the table, which all ranks share,
// and from what is equal on all members alone. Without a table, or where it has nothing, NCCL decides.
#include "PluginSettings.h"
#include "nccl_plugins.h"
#include <atomic>
#include <new>

using namespace drover::rt;

namespace {
std::atomic<int64_t> creating{-1};

/// Of one communicator; rules null: NCCL decides.
struct Context {
  const std::vector<NcclRule> *rules = nullptr;
};

template <typename... Arguments>
void log(drover_nccl_logger logger, int level, const char *format, Arguments... arguments) {
  if (logger)
    logger(level, DROVER_NCCL_SUBSYSTEM_TUNING, __FILE__, __LINE__, format, arguments...);
}

bool fits(const NcclSettings &settings, const NcclDimension &dimension, size_t ranks, size_t nodes) {
  int64_t servers = settings.serversOf(dimension);
  return dimension.members == int64_t(ranks) && (servers == 0 || servers == int64_t(nodes));
}

/// The dimension of a communicator: as the process has said, else the one of that shape. Two of one shape are told
/// apart by nothing that all members know, unless they have the same rules anyway.
const NcclDimension *findDimension(const NcclSettings &settings, size_t ranks, size_t nodes,
                                   drover_nccl_logger logger) {
  if (int64_t id = creating.load(); id >= 0) {
    const NcclDimension *dimension = settings.find(id);
    if (dimension && fits(settings, *dimension, ranks, nodes))
      return dimension;
    log(logger, DROVER_NCCL_LOG_WARN,
        "drover: communicator %lld of %zu ranks on %zu nodes is not the settings': NCCL decides",
        static_cast<long long>(id), ranks, nodes);
    return nullptr;
  }
  const NcclDimension *found = nullptr;
  for (const NcclDimension &dimension : settings.dimensions) {
    if (!fits(settings, dimension, ranks, nodes))
      continue;
    if (found && !(found->rules == dimension.rules)) {
      log(logger, DROVER_NCCL_LOG_INFO, "drover: %s and %s both have %zu ranks on %zu nodes: NCCL decides",
          found->name.c_str(), dimension.name.c_str(), ranks, nodes);
      return nullptr;
    }
    found = &dimension;
  }
  return found;
}

int start(void **context, size_t ranks, size_t nodes, drover_nccl_logger logger) {
  static std::atomic<bool> complained{false};
  auto own = new (std::nothrow) Context;
  if (!own)
    return 2; // ncclSystemError
  *context = own;
  const PluginSettings &known = pluginSettings();
  if (!known.settings) {
    if (!complained.exchange(true))
      log(logger, DROVER_NCCL_LOG_WARN, "drover: %s; NCCL decides", known.problem.c_str());
    return 0;
  }
  if (const NcclDimension *dimension = findDimension(*known.settings, ranks, nodes, logger)) {
    own->rules = &dimension->rules;
    log(logger, DROVER_NCCL_LOG_INFO, "drover: %s, %zu ranks on %zu nodes: %zu rules", dimension->name.c_str(), ranks,
        nodes, dimension->rules.size());
  }
  return 0;
}

int startV4(size_t ranks, size_t nodes, drover_nccl_logger logger, void **context) {
  return start(context, ranks, nodes, logger);
}

int startV5(void **context, uint64_t, size_t ranks, size_t nodes, drover_nccl_logger logger, drover_nccl_domain_v5 *,
            void *) {
  return start(context, ranks, nodes, logger);
}

const NcclRule *findRule(void *context, int collective, size_t bytes) {
  const auto *own = static_cast<const Context *>(context);
  if (!own || !own->rules)
    return nullptr;
  for (const NcclRule &rule : *own->rules)
    if (rule.collective == collective && (!rule.upToBytes || bytes <= *rule.upToBytes))
      return &rule;
  return nullptr;
}

/// The wanted pair costs nothing. One that NCCL can't use here keeps its -1, and then NCCL decides, on all members.
int choose(void *context, int collective, size_t bytes, int, float **costs, int algorithms, int protocols, int,
           int *channels) {
  const NcclRule *rule = findRule(context, collective, bytes);
  if (!rule || rule->algorithm >= algorithms || rule->protocol >= protocols)
    return 0;
  float &cost = reinterpret_cast<float *>(costs)[rule->algorithm * protocols + rule->protocol];
  if (cost < 0)
    return 0;
  cost = 0;
  *channels = rule->channels;
  return 0;
}

int chunk(void *context, int collective, size_t bytes, int algorithm, int protocol, int, size_t *size) {
  const NcclRule *rule = findRule(context, collective, bytes);
  if (rule && rule->chunkBytes && rule->algorithm == algorithm && rule->protocol == protocol)
    *size = rule->chunkBytes;
  return 0;
}

int finish(void *context) {
  delete static_cast<Context *>(context);
  return 0;
}
} // namespace

extern "C" {
__attribute__((visibility("default"))) void drover_nccl_creating(int64_t communicator) { creating = communicator; }

#define DROVER_PLUGIN extern __attribute__((visibility("default")))
DROVER_PLUGIN const drover_nccl_tuner_v4 ncclTunerPlugin_v4;
DROVER_PLUGIN const drover_nccl_tuner_v5 ncclTunerPlugin_v5;
DROVER_PLUGIN const drover_nccl_tuner_v6 ncclTunerPlugin_v6;
const drover_nccl_tuner_v4 ncclTunerPlugin_v4 = {"drover", startV4, choose, finish};
const drover_nccl_tuner_v5 ncclTunerPlugin_v5 = {"drover", startV5, choose, finish};
const drover_nccl_tuner_v6 ncclTunerPlugin_v6 = {"drover", startV5, choose, finish, chunk};
}
