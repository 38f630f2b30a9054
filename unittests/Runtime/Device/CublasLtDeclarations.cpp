//===- CublasLtDeclarations.cpp - what the runtime declares is cublasLt.h's ===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Nothing runs here: it compiles where the toolkit's header is installed and agrees.
#include "device/CublasLtApi.h"
#if __has_include(<cublasLt.h>) && __has_include(<cuda_runtime_api.h>)
#include "../SameAbi.h"
#include <cublasLt.h>
namespace {
namespace own = drover::rt::cublaslt;
using drover::rt::test::sameAbi;
#define DROVER_COMPARE(result, member, symbol, parameters)                                                             \
  static_assert(sameAbi<decltype(&symbol), result(*) parameters>(), #symbol);
DROVER_CUBLASLT_FUNCTIONS(DROVER_COMPARE)
#undef DROVER_COMPARE

static_assert(sizeof(own::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(own::HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(own::HeuristicResult, workspaceBytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(int(own::Float32) == CUDA_R_32F && int(own::Bfloat16) == CUDA_R_16BF);
static_assert(int(own::ComputeFloat32) == CUBLAS_COMPUTE_32F);
static_assert(int(own::None) == CUBLAS_OP_N && int(own::Transpose) == CUBLAS_OP_T);
static_assert(int(own::TransposeA) == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(int(own::TransposeB) == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(int(own::SmCountTarget) == CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET);
static_assert(int(own::BatchCount) == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(int(own::BatchStride) == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(int(own::MaxWorkspaceBytes) == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(int(own::ReductionSchemes) == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(int(own::AlignmentA) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(int(own::AlignmentD) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(own::reduceInComputeType == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(int(own::Success) == CUBLAS_STATUS_SUCCESS && int(own::InvalidValue) == CUBLAS_STATUS_INVALID_VALUE);
static_assert(int(own::NotSupported) == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(int(own::NotInitialized) == CUBLAS_STATUS_NOT_INITIALIZED);
} // namespace
#endif
