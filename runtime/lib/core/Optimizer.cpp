//===- Optimizer.cpp - numbers of the update ------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/optimizer.h"
#include <algorithm>
#include <cmath>

namespace drover::rt {

double learningRateOf(const OptimizerSettings &settings, int64_t step) {
  if (step <= settings.warmupSteps)
    return settings.learningRate * double(step) / double(settings.warmupSteps);
  constexpr double pi = 3.14159265358979323846;
  double progress = double(step - settings.warmupSteps) / double(settings.steps - settings.warmupSteps);
  return settings.minLearningRate +
         (settings.learningRate - settings.minLearningRate) * 0.5 * (1 + std::cos(pi * progress));
}

double clipCoefficient(const OptimizerSettings &settings, double norm) {
  return settings.gradientClip > 0 ? std::min(1.0, settings.gradientClip / (norm + 1e-6)) : 1.0;
}

std::array<float, 8> hyperScalars(const OptimizerSettings &settings, double learningRate, int64_t t, double clip,
                                  bool decay) {
  return {float(learningRate),
          decay ? float(settings.weightDecay) : 0.0f,
          float(settings.beta1),
          float(settings.beta2),
          float(settings.epsilon),
          float(1 - std::pow(settings.beta1, double(t))),
          float(1 - std::pow(settings.beta2, double(t))),
          float(clip)};
}

} // namespace drover::rt
