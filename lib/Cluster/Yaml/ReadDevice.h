//===- ReadDevice.h - the device of a cluster file --------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CLUSTER_YAML_READDEVICE_H
#define DROVER_LIB_CLUSTER_YAML_READDEVICE_H

#include "MapReader.h"
#include "drover/Cluster/Cluster.h"

namespace drover::cluster {

/// The device that a mapping describes; valid where `errors` has none.
Device readDevice(FileErrors &errors, const YamlNode &node);

} // namespace drover::cluster

#endif // DROVER_LIB_CLUSTER_YAML_READDEVICE_H
