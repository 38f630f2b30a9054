//===- ClusterText.h - a small cluster file for tests -----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_CLUSTER_YAML_CLUSTERTEXT_H
#define DROVER_UNITTESTS_CLUSTER_YAML_CLUSTERTEXT_H

#include <cassert>
#include <string>

namespace drover::cluster {

/// Every key that a cluster file can have, but for those of constants with a default and of hosts.
inline std::string clusterText() {
  return R"(name: small
published_as:
  - 'Small-GPU (1x)'
gpus: 32
device:
  name: Small 10 GB
  kind: small
  peak: {f32: 10 TFLOP/s, bf16: 100 TFLOP/s, f16: 100 TFLOP/s}
  memory: {total: 10 GiB, usable: 9 GiB, context: 1 GiB, bandwidth: 1 TB/s, achieved: 0.9}
  sms: 64
  power: 300 W
  matmul:
    bf16: {fraction: 0.8, half_k: 100, tile_m: 128, tile_n: 256}
    f32: {fraction: 0.9, half_k: 50, tile_m: 64, tile_n: 64}
  attention:
    - {kernel: flash2, forward: 0.5, backward: 0.7, half_sequence: 400, odd_head_penalty: 1.3, head_size_multiple: 64}
    - {kernel: unfused, forward: 0.2, backward: 0.9}
  launch: 4 us
  spread: 0.01
levels:
  - name: server
    members: 4
    bandwidth: 300 GB/s
    achieved: 0.8
    latency: 600 ns
    in_network: 0.7
  - name: cluster
    members: 8
    bandwidth: 200 Gb/s
    achieved: 0.9
    latency: 3 us
    oversubscription: 2
    flows: 4
storage: {sustained_write: 1 GB/s, peak_write: 2 GB/s}
failures:
  observed: {gpus: 32, time: 10 d}
  detection: 1 min
  restart: 5 min
  causes:
    - {name: faulty GPU, count: 3}
    - {name: firmware, count: 1, planned: true}
)";
}

/// The same with the first `from` replaced.
inline std::string clusterTextWith(const std::string &from, const std::string &to) {
  std::string text = clusterText();
  size_t at = text.find(from);
  assert(at != std::string::npos && "the text has no such part");
  return text.replace(at, from.size(), to);
}

} // namespace drover::cluster

#endif // DROVER_UNITTESTS_CLUSTER_YAML_CLUSTERTEXT_H
