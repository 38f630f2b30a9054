//===- NcclDeclarations.cpp - what the runtime declares is nccl.h's -------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Nothing runs here: it compiles where NCCL's header is installed and agrees.
#include "comm/NcclApi.h"
#if __has_include(<nccl.h>)
#include "../SameAbi.h"
#include <nccl.h>
namespace {
namespace own = drover::rt::nccl;
using drover::rt::test::sameAbi;
#define DROVER_COMPARE(result, member, symbol, parameters)                                                             \
  static_assert(sameAbi<decltype(&symbol), result(*) parameters>(), #symbol);
DROVER_NCCL_FUNCTIONS(DROVER_COMPARE)

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
DROVER_NCCL_WINDOW_FUNCTIONS(DROVER_COMPARE)
static_assert(own::windowIsSymmetric == NCCL_WIN_COLL_SYMMETRIC);
#endif
#undef DROVER_COMPARE

static_assert(sizeof(own::UniqueId) == sizeof(ncclUniqueId));
static_assert(int(own::InProgress) == ncclInProgress && int(own::RemoteError) == ncclRemoteError);
static_assert(int(own::InvalidUsage) == ncclInvalidUsage && int(own::InvalidArgument) == ncclInvalidArgument);
static_assert(int(own::Int8) == ncclInt8 && int(own::Int32) == ncclInt32 && int(own::Int64) == ncclInt64);
static_assert(int(own::Float16) == ncclFloat16 && int(own::Float32) == ncclFloat32);
static_assert(int(own::Float64) == ncclFloat64 && int(own::Bfloat16) == ncclBfloat16);
static_assert(int(own::Sum) == ncclSum && int(own::Max) == ncclMax);
static_assert(own::undefined == NCCL_CONFIG_UNDEF_INT);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0) && NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 0)
static_assert(sizeof(own::Config) == sizeof(ncclConfig_t));
static_assert(offsetof(own::Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(own::Config, maxCtas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(own::Config, netName) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(own::Config, trafficClass) == offsetof(ncclConfig_t, trafficClass));
static_assert(offsetof(own::Config, commName) == offsetof(ncclConfig_t, commName));
static_assert(offsetof(own::Config, ctaPolicy) == offsetof(ncclConfig_t, CTAPolicy));
static_assert(offsetof(own::Config, channelsPerNetPeer) == offsetof(ncclConfig_t, nChannelsPerNetPeer));
static_assert(offsetof(own::Config, nvlinkCentricSched) == offsetof(ncclConfig_t, nvlinkCentricSched));
#endif
} // namespace
#endif
