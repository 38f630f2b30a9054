//===- QuantityTest.cpp - numbers with units ------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cluster/Quantity.h"
#include "gtest/gtest.h"

using namespace drover;
using namespace drover::cluster;

namespace {

TEST(Quantity, unitsScaleToSi) {
  EXPECT_EQ(*parseQuantity("400 Gb/s", Quantity::BytesPerSecond), 50e9);
  EXPECT_EQ(*parseQuantity("50GB/s", Quantity::BytesPerSecond), 50e9);
  EXPECT_EQ(*parseQuantity("80 GiB", Quantity::Bytes), 80 * 1073741824.);
  EXPECT_EQ(*parseQuantity("1.5e1 min", Quantity::Seconds), 900);
  EXPECT_EQ(*parseQuantity("989 TFLOP/s", Quantity::FlopsPerSecond), 989e12);
  EXPECT_EQ(*parseQuantity("-3", Quantity::Number), -3);
}

TEST(Quantity, whatIsNoQuantityIsRefused) {
  for (const char *text : {"", " ", "GB/s", "5 GB", "5  GB/s", "5 GB/s ", "0x5 GB/s", "nan", "inf GB/s", "1e999 GB/s",
                           "5 Gb/S", "--5 GB/s", "5.5.5 GB/s", "e GB/s"})
    EXPECT_FALSE(parseQuantity(text, Quantity::BytesPerSecond)) << text;
  EXPECT_EQ(parseQuantity("5 GB", Quantity::Number).error(), "'5 GB': expected a number without a unit");
}

TEST(Quantity, printingPicksTheUnit) {
  EXPECT_EQ(printQuantity(50e9, Quantity::BytesPerSecond), "50 GB/s");
  EXPECT_EQ(printQuantity(2.7e-6, Quantity::Seconds), "2.7 us");
  EXPECT_EQ(printQuantity(0, Quantity::Seconds), "0 ns");
  EXPECT_EQ(printQuantity(90, Quantity::Seconds), "90 s");
  EXPECT_EQ(printQuantity(700, Quantity::Watts), "700 W");
  EXPECT_EQ(printQuantity(0.25, Quantity::Number), "0.25");
}

} // namespace
