//===- optimizer.h - numbers of the update ----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// DESIGN section 4. Everything that does not depend on an element is computed here in double and rounded once.
#ifndef DROVER_RT_OPTIMIZER_H
#define DROVER_RT_OPTIMIZER_H

#include <array>
#include <cstdint>

namespace drover::rt {

struct OptimizerSettings {
  double learningRate, minLearningRate, weightDecay, beta1, beta2, epsilon, gradientClip;
  int64_t warmupSteps, steps;
};

/// Of step 1, 2, .. : linear to step `warmupSteps`, then a cosine to the minimum at step `steps`.
double learningRateOf(const OptimizerSettings &settings, int64_t step);

/// min(1, C / (norm + 1e-6)); 1 where clipping is off.
double clipCoefficient(const OptimizerSettings &settings, double norm);

/// The operand `hyper` of the update body: lr, weight decay, beta1, beta2, eps, 1 - beta1^t, 1 - beta2^t, clip.
std::array<float, 8> hyperScalars(const OptimizerSettings &settings, double learningRate, int64_t t, double clip,
                                  bool decay);

} // namespace drover::rt

#endif // DROVER_RT_OPTIMIZER_H
