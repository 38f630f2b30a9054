//===- MutantLayouts.h - layouts whose programs are mutated -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_RUNTIME_GRID_MUTANTLAYOUTS_H
#define DROVER_UNITTESTS_RUNTIME_GRID_MUTANTLAYOUTS_H

#include "GridProgram.h"

namespace drover::rt::test {

/// Two or three microbatches each, so that there are several runs, transfers and reductions of everything.
inline std::vector<GridOptions> mutantLayouts() {
  struct Layout {
    int64_t tp, cp, pp, dp, chunks, zero, batch;
    const char *reduceEvery;
    std::optional<schedule::ScheduleKind> kind = {};
  };
  std::vector<GridOptions> layouts;
  for (const Layout &layout :
       {Layout{1, 1, 2, 2, 1, 3, 8, "step"}, Layout{2, 1, 2, 1, 2, 2, 4, "step"}, Layout{1, 2, 1, 2, 2, 2, 16, "run"},
        Layout{1, 1, 4, 1, 1, 2, 4, "step"}, Layout{1, 1, 2, 2, 2, 0, 8, "step"}, Layout{2, 1, 2, 2, 1, 1, 12, "step"},
        Layout{1, 1, 2, 2, 1, 2, 12, "step", schedule::ScheduleKind::ZeroBubbleH1}}) {
    GridOptions options;
    options.plan.tp = layout.tp;
    options.plan.cp = layout.cp;
    options.plan.pp = layout.pp;
    options.plan.dp = layout.dp;
    options.plan.chunks = layout.chunks;
    options.plan.zero = layout.zero;
    options.plan.globalBatches = {layout.batch};
    options.plan.reduceEvery = layout.reduceEvery;
    options.plan.kind = layout.kind;
    layouts.push_back(options);
  }
  return layouts;
}

} // namespace drover::rt::test

#endif // DROVER_UNITTESTS_RUNTIME_GRID_MUTANTLAYOUTS_H
