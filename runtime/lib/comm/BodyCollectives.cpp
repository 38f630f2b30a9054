//===- BodyCollectives.cpp - collectives of compiled bodies ---------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/communicator.h"
#include "drover/rt/error.h"
#include "drover/rt/fatal.h"
#include <utility>

using namespace drover::rt;

void drover_communicators::start(const drover_collective &collective, const void *in, void *out, int slot) {
  if (!failure.empty())
    return;
  try {
    if (slot < 0 || slot >= DROVER_MAX_IN_FLIGHT || slots[slot].pending())
      fail("collective into slot ", slot, ": expected a free slot below ", DROVER_MAX_IN_FLIGHT);
    Communicator *communicator = find(collective.communicator);
    if (!communicator)
      fail("collective on communicator ", collective.communicator, ": the rank has none of this id");
    if (collective.dtype < DROVER_F32 || collective.dtype > DROVER_I1)
      fail("collective on communicator ", collective.communicator, ": unknown element type ", collective.dtype);
    TensorCut cut = {collective.outer, collective.local, collective.inner, collective.two_chunk != 0};
    DType dtype = DType(collective.dtype);
    ReduceOp op = collective.op == DROVER_MAX ? ReduceOp::Max : ReduceOp::Sum;
    switch (collective.kind) {
    case DROVER_ALL_GATHER:
      slots[slot] = communicator->allGather(in, out, dtype, cut);
      return;
    case DROVER_REDUCE_SCATTER:
      slots[slot] = communicator->reduceScatter(in, out, dtype, op, cut);
      return;
    case DROVER_ALL_REDUCE:
      slots[slot] = communicator->allReduce(in, out, cut.elements(), dtype, op);
      return;
    case DROVER_SHIFT:
      slots[slot] = communicator->shift(in, out, cut.elements(), dtype);
      return;
    default:
      fail("collective on communicator ", collective.communicator, ": unknown kind ", collective.kind);
    }
  } catch (const Error &error) {
    failure = error.what();
  }
}

void drover_communicators::wait(int slot) {
  if (!failure.empty())
    return;
  try {
    if (slot < 0 || slot >= DROVER_MAX_IN_FLIGHT || !slots[slot].pending())
      fail("wait for slot ", slot, ", which has no collective in flight");
    if (stream)
      slots[slot].waitOn(*stream);
    else
      slots[slot].wait();
  } catch (const Error &error) {
    failure = error.what();
  }
}

void drover_communicators::check() {
  for (int slot = 0; slot < DROVER_MAX_IN_FLIGHT && failure.empty(); ++slot)
    if (slots[slot].pending())
      failure = concat("a body returned with a collective in flight in slot ", slot);
  if (failure.empty())
    return;
  std::string message = std::exchange(failure, {});
  for (Request &slot : slots)
    slot = Request(); // aborts the world where one is in flight
  throw Error(message);
}

extern "C" void drover_rt_collective_start(const drover_call *call, const drover_collective *desc, const void *in,
                                           void *out, int32_t slot) {
  if (!call->communicators)
    fatal("a body has a collective on communicator %d, but the rank has no communicators", int(desc->communicator));
  call->communicators->start(*desc, in, out, slot);
}

extern "C" void drover_rt_collective_wait(const drover_call *call, int32_t slot) {
  if (!call->communicators)
    fatal("a body waits for a collective, but the rank has no communicators");
  call->communicators->wait(slot);
}
