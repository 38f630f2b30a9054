//===- PublishedRuns.h - runs that others published -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_PLANNER_PUBLISHEDRUNS_H
#define DROVER_PLANNER_PUBLISHEDRUNS_H

#include "drover/Planner/Memory.h"
#include <map>

namespace drover::planner {

/// A line of a table, by column.
using TableRow = std::map<std::string, std::string>;

/// Reads comma-separated values with a header; quoted fields may hold commas, quotes and line ends.
schedule::Result<std::vector<TableRow>> parseTable(const std::string &text);

struct PublishedRun {
  std::string id, source, gpu, precision, quality;
  cost::ModelShape shape;
  Layout layout;
  Software software;
  bool compiled = false;  // by a compiler of whole graphs
  double stepSeconds = 0; // as published, or from its tokens a second or TFLOP/s; 0: the row has none of them
  std::string noSeconds;  // why
  double peakBytes = 0;   // of the fullest rank, as published; 0: the row has none, or none that can be compared
  std::string noPeak;     // why, where it has one
};

/// A row as a model, a layout and its software, by the rules of docs/projection.md; the error says what the row lacks
/// or has that a projection does not cover.
schedule::Result<PublishedRun> readRun(const TableRow &row);

/// What the ranks of a run hold, by stage: the memory of a plan (Memory.h) with what the run's software does otherwise,
/// without the device's context, which a framework's own count leaves out too.
schedule::Result<std::vector<StageMemory>> memoryOf(const PublishedRun &run);

/// The repository or paper of a source, without commit and section: rows of one are validated together.
std::string originOf(const std::string &source);

} // namespace drover::planner

#endif // DROVER_PLANNER_PUBLISHEDRUNS_H
