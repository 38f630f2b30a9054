//===- Quantity.h - numbers with units --------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_CLUSTER_QUANTITY_H
#define DROVER_CLUSTER_QUANTITY_H

#include "drover/Schedule/Types.h"

namespace drover::cluster {

enum class Quantity : uint8_t { Number, Seconds, Bytes, BytesPerSecond, FlopsPerSecond, Watts };

/// Parses `50 GB/s`, `400 Gb/s`, `80 GiB`, `5 us`, `989 TFLOP/s`, `700 W`; a Number has no unit. The value is in SI
/// units; the error says what the text is and what would be accepted, without naming the field.
schedule::Result<double> parseQuantity(const std::string &text, Quantity quantity);

/// The value in the largest decimal unit that does not make it less than one: `50 GB/s`.
std::string printQuantity(double value, Quantity quantity);

} // namespace drover::cluster

#endif // DROVER_CLUSTER_QUANTITY_H
