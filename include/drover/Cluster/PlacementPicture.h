//===- PlacementPicture.h - a placement as an SVG picture -------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_CLUSTER_PLACEMENTPICTURE_H
#define DROVER_CLUSTER_PLACEMENTPICTURE_H

#include "drover/Cluster/Placement.h"

namespace drover::cluster {

/// One <svg> element, to stand in an HTML page or in a file: for each level, from the outermost in, the unit that holds
/// `rank` as a box of the units below; a mark in each unit where the groups of `rank` have members, one color an axis;
/// the block that holds the rank outlined. Boxes carry their numbers as tooltips.
std::string drawPlacement(const Placement &placement, int64_t rank = 0);

} // namespace drover::cluster

#endif // DROVER_CLUSTER_PLACEMENTPICTURE_H
