//===- CudaDeclarations.cpp - what the runtime declares is cuda.h's -------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Nothing runs here: it compiles where the toolkit's header is installed and agrees.
#include "device/CudaApi.h"
#if __has_include(<cuda.h>)
#include "../SameAbi.h"
#include <cuda.h>
// The header's declarations of the same functions.
namespace {
namespace own = drover::rt::cuda;
using drover::rt::test::sameAbi;
#define DROVER_COMPARE(member, symbol, parameters)                                                                     \
  static_assert(sameAbi<decltype(&symbol), int(*) parameters>(), #symbol);
DROVER_CUDA_FUNCTIONS(DROVER_COMPARE)
#undef DROVER_COMPARE

static_assert(sizeof(own::Copy2D) == sizeof(CUDA_MEMCPY2D));
static_assert(offsetof(own::Copy2D, source) == offsetof(CUDA_MEMCPY2D, srcDevice));
static_assert(offsetof(own::Copy2D, sourcePitch) == offsetof(CUDA_MEMCPY2D, srcPitch));
static_assert(offsetof(own::Copy2D, destinationType) == offsetof(CUDA_MEMCPY2D, dstMemoryType));
static_assert(offsetof(own::Copy2D, destination) == offsetof(CUDA_MEMCPY2D, dstDevice));
static_assert(offsetof(own::Copy2D, destinationPitch) == offsetof(CUDA_MEMCPY2D, dstPitch));
static_assert(offsetof(own::Copy2D, widthBytes) == offsetof(CUDA_MEMCPY2D, WidthInBytes));
static_assert(offsetof(own::Copy2D, height) == offsetof(CUDA_MEMCPY2D, Height));
static_assert(int(own::UnifiedMemory) == CU_MEMORYTYPE_UNIFIED);
static_assert(int(own::NotReady) == CUDA_ERROR_NOT_READY);
static_assert(int(own::NotFound) == CUDA_ERROR_NOT_FOUND);
static_assert(int(own::OutOfMemory) == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(int(own::NoBinaryForGpu) == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(int(own::InvalidImage) == CUDA_ERROR_INVALID_IMAGE);
static_assert(int(own::InvalidContext) == CUDA_ERROR_INVALID_CONTEXT);
static_assert(int(own::InvalidHandle) == CUDA_ERROR_INVALID_HANDLE);
static_assert(int(own::MultiprocessorCount) == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(int(own::ComputeCapabilityMajor) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(int(own::ComputeCapabilityMinor) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(int(own::MaxSharedMemoryPerBlockOptin) == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(int(own::StaticSharedBytes) == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
static_assert(int(own::MaxDynamicSharedBytes) == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(int(own::JitErrorLogBuffer) == CU_JIT_ERROR_LOG_BUFFER);
static_assert(int(own::JitErrorLogBufferBytes) == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
static_assert(int(own::StreamCaptureUnsupported) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
static_assert(int(own::StreamCaptureInvalidated) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
static_assert(int(own::CapturedEvent) == CUDA_ERROR_CAPTURED_EVENT);
static_assert(int(own::CaptureThreadLocal) == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(own::streamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(own::eventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(own::hostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
} // namespace
#endif
