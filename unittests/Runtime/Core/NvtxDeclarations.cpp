//===- NvtxDeclarations.cpp - what the runtime declares is NVTX's ---------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Nothing runs here: it compiles where the toolkit's headers are installed and agree.
#include "trace/NvtxApi.h"
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
namespace {
namespace own = drover::rt::nvtx;

static_assert(own::version == NVTX_VERSION);
static_assert(sizeof(own::Attributes) == sizeof(nvtxEventAttributes_t));
static_assert(offsetof(own::Attributes, category) == offsetof(nvtxEventAttributes_t, category));
static_assert(offsetof(own::Attributes, payload) == offsetof(nvtxEventAttributes_t, payload));
static_assert(offsetof(own::Attributes, messageType) == offsetof(nvtxEventAttributes_t, messageType));
static_assert(offsetof(own::Attributes, message) == offsetof(nvtxEventAttributes_t, message));
static_assert(own::Attributes().messageType == NVTX_MESSAGE_TYPE_ASCII);
static_assert(int(own::CallbacksTable) == NVTX_ETID_CALLBACKS);
static_assert(int(own::VersionTable) == NVTX_ETID_VERSIONINFO);
static_assert(sizeof(own::Callbacks) == sizeof(NvtxExportTableCallbacks));
static_assert(offsetof(own::Callbacks, moduleFunctions) == offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
static_assert(sizeof(own::VersionInfo) == sizeof(NvtxExportTableVersionInfo));
static_assert(offsetof(own::VersionInfo, setInjectionVersion) ==
              offsetof(NvtxExportTableVersionInfo, SetInjectionNvtxVersion));
static_assert(int(own::Core) == NVTX_CB_MODULE_CORE && int(own::Core2) == NVTX_CB_MODULE_CORE2);
static_assert(sizeof(own::numFunctions) / sizeof(unsigned) == NVTX_CB_MODULE_SIZE);
static_assert(own::numFunctions[NVTX_CB_MODULE_CORE] == NVTX_CBID_CORE_SIZE);
static_assert(own::numFunctions[NVTX_CB_MODULE_CUDA] == NVTX_CBID_CUDA_SIZE);
static_assert(own::numFunctions[NVTX_CB_MODULE_OPENCL] == NVTX_CBID_OPENCL_SIZE);
static_assert(own::numFunctions[NVTX_CB_MODULE_CUDART] == NVTX_CBID_CUDART_SIZE);
static_assert(own::numFunctions[NVTX_CB_MODULE_CORE2] == NVTX_CBID_CORE2_SIZE);
static_assert(own::numFunctions[NVTX_CB_MODULE_SYNC] == NVTX_CBID_SYNC_SIZE);
static_assert(int(own::RangePushA) == NVTX_CBID_CORE_RangePushA && int(own::RangePop) == NVTX_CBID_CORE_RangePop);
static_assert(int(own::DomainRangePushEx) == NVTX_CBID_CORE2_DomainRangePushEx);
static_assert(int(own::DomainRangePop) == NVTX_CBID_CORE2_DomainRangePop);
static_assert(int(own::DomainCreateA) == NVTX_CBID_CORE2_DomainCreateA);
} // namespace
#endif
