//===- executable.h - the training and the forward executable ---*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_EXECUTABLE_H
#define DROVER_RT_EXECUTABLE_H

#include "drover/rt/options.h"
#include "drover/rt/program.h"

namespace drover::rt {

/// Trains to the last step. Throws Error.
void train(const Program &program, const TrainOptions &options);

/// Runs the forward task once. Throws Error.
void forward(const Program &program, const ForwardOptions &options);

/// main() of an executable with this program: the exit status, 0 only on success.
int runExecutable(const drover_program &embedded, int argc, const char *const *argv);

/// Threads per rank: as asked for, else the cores that this process may use over the ranks.
int threadsOf(int64_t asked, int64_t ranks);

/// Throws Error where --ranks is not what the program was compiled for.
void checkRanks(int64_t asked, int64_t compiled);

} // namespace drover::rt

#endif // DROVER_RT_EXECUTABLE_H
