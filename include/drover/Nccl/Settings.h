//===- Settings.h - NCCL's configuration for a program ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The contract is docs/nccl.md: what each value is derived from, and the file that has it.
#ifndef DROVER_NCCL_SETTINGS_H
#define DROVER_NCCL_SETTINGS_H

#include "drover/Cost/Collectives.h"
#include "drover/Schedule/StepProgram.h"

/// How NCCL is to be set up for each dimension of a plan on a cluster. No IR, no LLVM, and nothing of NCCL's.
namespace drover::nccl {

/// One field of a communicator's configuration.
struct Setting {
  std::string name; // min_ctas, max_ctas, cga_cluster_size, cta_policy, channels_per_net_peer, traffic_class, windows
  int64_t value = 0;
  std::string reason;
};

/// What the tuner asks for, for a collective of up to `upToBytes` of the whole tensor; rules ascend.
struct TunerRule {
  cost::CollectiveKind collective = cost::CollectiveKind::AllReduce;
  std::optional<int64_t> upToBytes; // absent: any size
  std::string algorithm;            // NCCL's name: ring, tree, nvls, nvls_tree
  cost::Protocol protocol = cost::Protocol::Simple;
  int64_t channels = 1;
  int64_t chunkBytes = 0; // 0: NCCL's own
  std::string reason;
};

/// The communicators of one dimension, which are set up alike.
struct Dimension {
  std::string name; // world, tp, kv, replica, cp, fsdp, dp, edges, ties
  std::vector<uint32_t> ids;
  int64_t members = 1, groups = 1;
  /// By level of the cluster: units that a group lies in, the group that has most.
  std::vector<int64_t> units;
  std::vector<Setting> settings;
  std::vector<TunerRule> rules;

  const Setting *find(const std::string &setting) const;
};

/// A variable of NCCL's for the whole process.
struct Variable {
  std::string name, value, reason;
};

struct Level {
  std::string name;
  int64_t gpus = 1; // of a unit
};

struct Settings {
  std::string cluster;       // empty: none was given
  std::string note;          // what is true of all of it
  std::vector<Level> levels; // innermost first
  std::vector<Dimension> dimensions;
  std::vector<Variable> environment;

  const Dimension *find(const std::string &name) const;
  const Variable *findVariable(const std::string &name) const;
};

/// One kind of collective that a dimension's groups have in a step.
struct Use {
  cost::CollectiveKind collective = cost::CollectiveKind::AllReduce;
  int64_t mostBytes = 0; // of the whole tensor
};

/// What a dimension's groups exchange.
struct Demand {
  std::string name;
  std::vector<uint32_t> ids;
  std::vector<std::vector<int32_t>> stages; // of the ids' groups: edges and ties; empty: all axes but pp decide
  int64_t members = 1;
  std::vector<Use> uses;
  int64_t messageBytes = 0; // the largest of a send or a shift; 0: none
  bool beside = false;      // runs beside compute that does not wait for it
};

/// The communicators of a program with two members or more, with what they exchange in a step.
std::vector<Demand> demandsOf(const schedule::StepProgram &step);

/// Sets up the communicators of ranks on a grid; without a cluster everything is NCCL's default. `kv` as in
/// schedule::Grid. The grid must fit on the cluster. `mostCtas`: of every communicator, on a cluster or not; 0: as
/// many as pay.
Settings deriveSettings(const cluster::Cluster *cluster, const cluster::Grid &grid, int64_t kv,
                        const std::vector<Demand> &demands, int64_t mostCtas = 0);
Settings deriveSettings(const cluster::Cluster *cluster, const schedule::StepProgram &step);

/// The file of docs/nccl.md.
std::string printSettings(const Settings &settings);

} // namespace drover::nccl

#endif // DROVER_NCCL_SETTINGS_H
