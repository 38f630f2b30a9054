//===- CublasLtApi.h - what is used of cuBLASLt -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Declared here, so that the runtime builds where CUDA is not installed; a test holds it against cublasLt.h where that
// is. Matrices are column-major.
#ifndef DROVER_RT_LIB_DEVICE_CUBLASLTAPI_H
#define DROVER_RT_LIB_DEVICE_CUBLASLTAPI_H

#include <cstddef>
#include <cstdint>

namespace drover::rt::cublaslt {

using Handle = void *;

enum Status : int { Success = 0, NotInitialized = 1, AllocFailed = 3, InvalidValue = 7, NotSupported = 15 };
enum DataType : int { Float32 = 0, Bfloat16 = 14 };
enum ComputeType : int { ComputeFloat32 = 68 };
enum Operation : int { None = 0, Transpose = 1 };
enum MatmulAttribute : int { TransposeA = 3, TransposeB = 4, SmCountTarget = 15 };
enum LayoutAttribute : int { BatchCount = 5, BatchStride = 6 };
enum PreferenceAttribute : int {
  MaxWorkspaceBytes = 1,
  ReductionSchemes = 3,
  AlignmentA = 5,
  AlignmentB = 6,
  AlignmentC = 7,
  AlignmentD = 8,
};
/// Partial sums in the compute type, added in order.
constexpr uint32_t reduceInComputeType = 2;

/// May be kept, and used again with the same version on the same kind of device.
struct Algorithm {
  uint64_t data[8];
};

struct HeuristicResult {
  Algorithm algorithm;
  size_t workspaceBytes;
  int status;
  float waves;
  int reserved[4];
};

/// X(result, member, symbol, parameters) for each function.
#define DROVER_CUBLASLT_FUNCTIONS(X)                                                                                   \
  X(int, create, cublasLtCreate, (::drover::rt::cublaslt::Handle *))                                                   \
  X(int, destroy, cublasLtDestroy, (::drover::rt::cublaslt::Handle))                                                   \
  X(size_t, getVersion, cublasLtGetVersion, ())                                                                        \
  X(const char *, getStatusName, cublasLtGetStatusName, (int))                                                         \
  X(int, matmulDescCreate, cublasLtMatmulDescCreate, (::drover::rt::cublaslt::Handle *, int, int))                     \
  X(int, matmulDescDestroy, cublasLtMatmulDescDestroy, (::drover::rt::cublaslt::Handle))                               \
  X(int, matmulDescSet, cublasLtMatmulDescSetAttribute, (::drover::rt::cublaslt::Handle, int, const void *, size_t))   \
  X(int, layoutCreate, cublasLtMatrixLayoutCreate,                                                                     \
    (::drover::rt::cublaslt::Handle *, int, uint64_t, uint64_t, int64_t))                                              \
  X(int, layoutDestroy, cublasLtMatrixLayoutDestroy, (::drover::rt::cublaslt::Handle))                                 \
  X(int, layoutSet, cublasLtMatrixLayoutSetAttribute, (::drover::rt::cublaslt::Handle, int, const void *, size_t))     \
  X(int, preferenceCreate, cublasLtMatmulPreferenceCreate, (::drover::rt::cublaslt::Handle *))                         \
  X(int, preferenceDestroy, cublasLtMatmulPreferenceDestroy, (::drover::rt::cublaslt::Handle))                         \
  X(int, preferenceSet, cublasLtMatmulPreferenceSetAttribute,                                                          \
    (::drover::rt::cublaslt::Handle, int, const void *, size_t))                                                       \
  X(int, getHeuristic, cublasLtMatmulAlgoGetHeuristic,                                                                 \
    (::drover::rt::cublaslt::Handle, ::drover::rt::cublaslt::Handle, ::drover::rt::cublaslt::Handle,                   \
     ::drover::rt::cublaslt::Handle, ::drover::rt::cublaslt::Handle, ::drover::rt::cublaslt::Handle,                   \
     ::drover::rt::cublaslt::Handle, int, ::drover::rt::cublaslt::HeuristicResult *, int *))                           \
  X(int, matmul, cublasLtMatmul,                                                                                       \
    (::drover::rt::cublaslt::Handle, ::drover::rt::cublaslt::Handle, const void *, const void *,                       \
     ::drover::rt::cublaslt::Handle, const void *, ::drover::rt::cublaslt::Handle, const void *, const void *,         \
     ::drover::rt::cublaslt::Handle, void *, ::drover::rt::cublaslt::Handle,                                           \
     const ::drover::rt::cublaslt::Algorithm *, void *, size_t, ::drover::rt::cublaslt::Handle))

} // namespace drover::rt::cublaslt

#endif // DROVER_RT_LIB_DEVICE_CUBLASLTAPI_H
