//===- step_dump.h - the tensors of a step in one file ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// To find where two layouts part: names and values do not depend on the layout.
#ifndef DROVER_RT_STEP_DUMP_H
#define DROVER_RT_STEP_DUMP_H

#include "drover/rt/interpreter.h"
#include <regex>

namespace drover::rt {

/// Keeps what a rank sees of the named tensors; write() puts the parts of all ranks together.
class StepDump {
public:
  StepDump(const RankContext &rank, const std::regex &expression) : rank(rank), expression(expression) {}

  /// Brings what an operand holds to memory of the host.
  using Reader = std::function<void(const uint8_t *from, int64_t bytes, uint8_t *to)>;

  /// Collective: parameter.NAME and gradient.NAME, before the update.
  void addParameters(const char *kind, const std::vector<BucketMemory> &shards, bool frozen);
  /// The results of a body's call: PHASE.layer.N.BODY.RESULT.sequence.N, a tensor for each sequence of the step.
  void addResults(const drover_action &action, const CallInfo &call, const std::vector<void *> &operands,
                  const Reader &read);
  /// Collective; throws Error.
  void write(const std::string &path);

private:
  /// A part of a tensor: the result of a body for one sequence.
  struct Part {
    int64_t body, operand, layer, phase, sequence, bytes;
  };
  struct Tensor {
    DType dtype;
    std::vector<int64_t> shape;
    std::vector<uint8_t> data;
  };

  bool isWanted(const std::string &name) const { return std::regex_search(name, expression); }
  std::string nameOf(const Part &part) const;
  void takeParts(int64_t source, const std::vector<uint8_t> &parts);
  void takePart(int64_t source, const Part &part, const uint8_t *values);

  const RankContext &rank;
  const std::regex &expression;          // the options': ranks only read it
  std::vector<uint8_t> parts;            // of this rank: Part, values, Part, ..
  std::map<std::string, Tensor> tensors; // whole, at rank 0
};

} // namespace drover::rt

#endif // DROVER_RT_STEP_DUMP_H
