//===- math.cpp - approximations and libdevice ------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The functions that kernels call by name. The GPU's approximations are within a few units in the last place of what
// is returned here (PTX ISA, "approx"); .ftz forms flush subnormal numbers to zero on the way in and out.
#include <cmath>
#include <cstdint>
#include <cstring>

static float flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

extern "C" {
float drover_emu_ex2(float x) { return std::exp2(x); }
float drover_emu_ex2_ftz(float x) { return flush(std::exp2(flush(x))); }
float drover_emu_lg2(float x) { return std::log2(x); }
float drover_emu_lg2_ftz(float x) { return std::log2(flush(x)); }
float drover_emu_rcp(float x) { return 1.0f / x; }
float drover_emu_rcp_ftz(float x) { return flush(1.0f / flush(x)); }
float drover_emu_rsqrt(float x) { return 1.0f / std::sqrt(x); }
float drover_emu_rsqrt_ftz(float x) { return flush(1.0f / std::sqrt(flush(x))); }
float drover_emu_sqrt(float x) { return std::sqrt(x); }
float drover_emu_sqrt_ftz(float x) { return flush(std::sqrt(flush(x))); }
float drover_emu_sin(float x) { return std::sin(x); }
float drover_emu_cos(float x) { return std::cos(x); }
float drover_emu_tanh(float x) { return std::tanh(x); }

// libdevice, as MLIR's conversions name it.
#define UNARY(name, function)                                                                                          \
  float __nv_##name##f(float x) { return function(x); }                                                                \
  double __nv_##name(double x) { return function(x); }
#define BINARY(name, function)                                                                                         \
  float __nv_##name##f(float x, float y) { return function(x, y); }                                                    \
  double __nv_##name(double x, double y) { return function(x, y); }
UNARY(acos, std::acos)
UNARY(acosh, std::acosh)
UNARY(asin, std::asin)
UNARY(asinh, std::asinh)
UNARY(atan, std::atan)
UNARY(atanh, std::atanh)
UNARY(cbrt, std::cbrt)
UNARY(ceil, std::ceil)
UNARY(cos, std::cos)
UNARY(cosh, std::cosh)
UNARY(erf, std::erf)
UNARY(erfc, std::erfc)
UNARY(exp, std::exp)
UNARY(exp2, std::exp2)
UNARY(expm1, std::expm1)
UNARY(fabs, std::fabs)
UNARY(floor, std::floor)
UNARY(log, std::log)
UNARY(log10, std::log10)
UNARY(log1p, std::log1p)
UNARY(log2, std::log2)
UNARY(rint, std::nearbyint)
UNARY(round, std::round)
UNARY(sin, std::sin)
UNARY(sinh, std::sinh)
UNARY(sqrt, std::sqrt)
UNARY(tan, std::tan)
UNARY(tanh, std::tanh)
UNARY(trunc, std::trunc)
BINARY(atan2, std::atan2)
BINARY(copysign, std::copysign)
BINARY(fmax, std::fmax)
BINARY(fmin, std::fmin)
BINARY(fmod, std::fmod)
BINARY(pow, std::pow)
#undef UNARY
#undef BINARY
float __nv_rsqrtf(float x) { return 1.0f / std::sqrt(x); }
double __nv_rsqrt(double x) { return 1.0 / std::sqrt(x); }
float __nv_fmaf(float x, float y, float z) { return std::fma(x, y, z); }
double __nv_fma(double x, double y, double z) { return std::fma(x, y, z); }
float __nv_fast_expf(float x) { return std::exp(x); }
float __nv_fast_logf(float x) { return std::log(x); }
float __nv_fast_log2f(float x) { return std::log2(x); }
float __nv_fast_log10f(float x) { return std::log10(x); }
float __nv_fast_powf(float x, float y) { return std::pow(x, y); }
float __nv_fast_sinf(float x) { return std::sin(x); }
float __nv_fast_cosf(float x) { return std::cos(x); }
float __nv_fast_tanf(float x) { return std::tan(x); }

// What LLVM calls to round to bf16 where the CPU cannot; libgcc has it from version 13 on.
__attribute__((weak)) __bf16 __truncsfbf2(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bool nan = (bits & 0x7fffffff) > 0x7f800000;
  uint16_t half = nan ? (bits >> 16 | 0x40) : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  __bf16 result;
  std::memcpy(&result, &half, sizeof result);
  return result;
}
} // extern "C"
