//===- Markup.h - text within XML and HTML ----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_CLUSTER_MARKUP_H
#define DROVER_CLUSTER_MARKUP_H

#include <string>

namespace drover::cluster {

/// The text with what markup would read written as entities, and without control characters, which XML has not.
std::string escapeMarkup(const std::string &text);

} // namespace drover::cluster

#endif // DROVER_CLUSTER_MARKUP_H
