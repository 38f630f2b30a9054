//===- ToyBodies.h - flat bodies of hand-made programs ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_RUNTIME_TOYBODIES_H
#define DROVER_UNITTESTS_RUNTIME_TOYBODIES_H

#include "drover/rt/abi.h"
#include <cmath>

namespace drover::rt::test {

/// AdamW as docs/step-program.md calls it: master, moment1, moment2, gradient, hyper.
inline void adamwBody(void *const *operands, void *, const drover_call *call) {
  auto *p = static_cast<float *>(operands[0]), *m = static_cast<float *>(operands[1]),
       *v = static_cast<float *>(operands[2]);
  const auto *gradient = static_cast<const float *>(operands[3]), *hyper = static_cast<const float *>(operands[4]);
  for (int64_t i = 0; i < call->size; ++i) {
    float g = hyper[7] * gradient[i];
    p[i] *= 1 - hyper[0] * hyper[1];
    m[i] = hyper[2] * m[i] + (1 - hyper[2]) * g;
    v[i] = hyper[3] * v[i] + (1 - hyper[3]) * g * g;
    p[i] -= hyper[0] / hyper[5] * m[i] / (std::sqrt(v[i]) / std::sqrt(hyper[6]) + hyper[4]);
  }
}

/// The sum of a gradient's squares in f64.
inline void squaresBody(void *const *operands, void *, const drover_call *call) {
  double sum = 0;
  for (int64_t i = 0; i < call->size; ++i)
    sum += std::pow(double(static_cast<const float *>(operands[0])[i]), 2);
  *static_cast<double *>(operands[1]) = sum;
}

} // namespace drover::rt::test

#endif // DROVER_UNITTESTS_RUNTIME_TOYBODIES_H
