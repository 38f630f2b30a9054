//===- Cluster.h - the machine a plan runs on -------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_CLUSTER_CLUSTER_H
#define DROVER_CLUSTER_CLUSTER_H

#include "drover/Schedule/Types.h"
#include <array>
#include <string>
#include <vector>

/// The machine: what a device achieves, how devices are joined, where checkpoints go, how often it fails. No IR, no
/// LLVM. Numbers are SI (seconds, bytes, bytes/s, FLOP/s) and come from a cluster file (docs/cluster-files.md).
namespace drover::cluster {

/// Formats that matmul units have a rate for; storage types are schedule::DType.
enum class Precision : uint8_t { F32, BF16, F16, FP8 };
constexpr int kNumPrecisions = 4;
const char *nameOf(Precision precision);
std::optional<Precision> parsePrecision(const std::string &name);

/// How much of the peak matmuls reach: `fraction` for large products; one with inner size K reaches K / (K + halfK) of
/// that; its M x N is cut in tiles, and the last wave of tiles may leave SMs idle.
struct MatmulRates {
  double fraction = 0.75;
  double halfK = 0;
  int64_t tileM = 128, tileN = 128;
};

/// One generation of attention kernels. Fractions are of the peak in the operands' format.
struct AttentionRates {
  std::string kernel;           // unfused, triton, flash2, flash3, generated, ..
  double forward = 0.3;         // long sequences, a head size the kernel is built for
  double backward = 0.7;        // rate of the backward over that of the forward
  double halfSequence = 0;      // a sequence of S reaches S / (S + halfSequence)
  double oddHeadPenalty = 1;    // time of a head size the kernel is not built for, over that of one it is
  int64_t headSizeMultiple = 1; // head sizes that it is built for
};

struct Device {
  std::string name; // as sold, with memory size
  std::string kind; // A100, H100, H100-500W, H800, H200, B200, host, ..
  /// Dense FLOP/s by Precision; 0 where the device lacks the format.
  std::array<double, kNumPrecisions> peak{};
  double memoryBytes = 0;
  double usableBytes = 0;  // what a process can allocate, its context excluded
  double contextBytes = 0; // the context and what libraries hold; part of usableBytes
  double memoryBandwidth = 0;
  double memoryFraction = 0.9; // of the bandwidth, in passes over large tensors
  int64_t sms = 1;
  double watts = 0; // 0: not known
  /// Processor cores that all ranks of a server share, where a device is a host; rates are then those of one core. 0: a
  /// rank has a device of its own.
  int64_t sharedCores = 0;
  double coreScaling = 1; // speed of a rank on all of them, over as many times that of a rank on one
  /// By Precision; a format that a file does not list has the rates of the first one listed.
  std::array<MatmulRates, kNumPrecisions> matmul;
  std::vector<AttentionRates> attention;
  double launchSeconds = 0; // between two kernels of a stream
  double spread = 0;        // standard deviation of the speed of single devices, a fraction
  double passCost = 1;      // time of a pass of compiled bodies over that of its bytes through memory
  double eagerTraffic = 1;  // of memory-bound passes in an eager framework, over that of one kernel an operator
  double ringHidden = 1;    // of a collective in pieces beside a matmul, the part that does not show
  double clockBoost =
      0; // what matmuls gain where power is moved from memory and links to SMs (nvidia-smi boost-slider)
  double contention = 0; // seconds that compute loses by a second of communication beside it

  double peakOf(Precision precision) const { return peak[static_cast<size_t>(precision)]; }
  const MatmulRates &matmulOf(Precision precision) const { return matmul[static_cast<size_t>(precision)]; }
  /// Threads of each of so many ranks on the shared cores (as executables choose them), and how much faster a rank is
  /// than on one core. 1 where no cores are shared.
  int64_t threadsOf(int64_t ranks) const;
  double speedOf(int64_t threads) const;
  /// Null where the file has no such kernel.
  const AttentionRates *findAttention(const std::string &kernel) const;
};

/// One level of the network: what joins `members` units of the level below.
/// What one kind of collective was measured to take over neighbours: latency + bytes of the whole tensor / bandwidth.
struct MeasuredCollective {
  std::string backend; // inproc, mpi
  std::string kind;    // all_gather, reduce_scatter, all_reduce, broadcast, message
  int64_t ranks = 2;
  double latency = 0, bandwidth = 0;
};

struct Level {
  std::string name;            // server, rack, pod, cluster, ..
  int64_t members = 1;         // units of the level below; of the innermost level: GPUs
  double bandwidth = 0;        // nominal bytes/s of one GPU, in one direction
  double achieved = 1;         // fraction of it that large messages reach
  double latency = 0;          // seconds of one hop of a small message
  double oversubscription = 1; // links down over links up of the units it joins; 1: full bisection
  int64_t flows = 0;    // flows per pair of GPUs that are hashed onto equal paths; 0: one path, or spread by packet
  double inNetwork = 0; // fraction of `bandwidth` when switches reduce (NVLS, SHARP); 0: they do not
  std::string backend;  // of the measured collectives, those that ranks use
  std::vector<MeasuredCollective> collectives; // in place of formulas; ascending ranks within a backend and kind

  /// Bytes/s that one GPU gets when no other shares its links.
  double effectiveBandwidth() const;
};

struct Storage {
  double sustainedWrite = 0, peakWrite = 0; // bytes/s of all
  double hostCopy = 25e9;                   // bytes/s of one GPU to its host's memory: PCIe 4 x16
};

/// Traffic classes of the fabric (the byte of an IP header that carries the DSCP) by which its switches tell flows
/// apart.
struct TrafficClasses {
  int64_t urgent = 0;  // messages and collectives that compute waits for
  int64_t bulk = 0;    // collectives that run beside compute
  int64_t control = 0; // messages of a few bytes that say that a buffer is free
};

struct FailureCause {
  std::string name;
  double perGpuHour = 0;
  bool planned = false;
};

struct Failures {
  double observedGpus = 1, observedSeconds = 3600; // of the run whose interruptions were counted
  std::vector<FailureCause> causes;
  double detectionSeconds = 0; // from the failure to the decision to restart
  double restartSeconds = 0;   // from there to the first step

  double unexpectedPerGpuHour() const { return rate(false); }
  double plannedPerGpuHour() const { return rate(true); }

private:
  double rate(bool planned) const;
};

struct Cluster {
  std::string name;
  Device device;
  std::vector<Level> levels; // innermost first, at least one
  std::optional<TrafficClasses> trafficClasses;
  std::optional<Storage> storage;
  std::optional<Failures> failures;
  /// Names that lists of published runs give this cluster.
  std::vector<std::string> publishedAs;

  int64_t nodeGpus() const { return levels.front().members; }
  /// GPUs in one unit of a level.
  int64_t gpusIn(size_t level) const;
  int64_t gpus() const { return gpusIn(levels.size() - 1); }
};

/// Levels a cluster can have: spans are arrays of this size.
constexpr size_t kMostLevels = 6;

/// What must hold of any cluster, whoever made it; `std::nullopt` when all does. A file's reader says the same with
/// places.
std::optional<schedule::Error> checkCluster(const Cluster &cluster);

} // namespace drover::cluster

#endif // DROVER_CLUSTER_CLUSTER_H
