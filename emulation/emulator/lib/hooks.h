//===- hooks.h - what instrumented kernels call -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The calls that drover-emulate-kernels puts in place of loads, stores and nvvm operations. Hand-written kernels of
// the unit tests call them too. `site` is an index into drover_emu_kernel::sites.
#ifndef DROVER_EMULATION_HOOKS_H
#define DROVER_EMULATION_HOOKS_H

#include <cstdint>

/// Kinds of accesses, and where an address is known to lie (neither: it is looked up).
enum drover_emu_access_flag : uint32_t {
  DROVER_EMU_WRITE = 1,
  DROVER_EMU_ATOMIC = 2,
  DROVER_EMU_SHARED = 4,
  DROVER_EMU_GLOBAL = 8,
};

enum drover_emu_shuffle_kind : uint32_t {
  DROVER_EMU_SHUFFLE_BFLY,
  DROVER_EMU_SHUFFLE_UP,
  DROVER_EMU_SHUFFLE_DOWN,
  DROVER_EMU_SHUFFLE_IDX,
};

enum drover_emu_vote_kind : uint32_t {
  DROVER_EMU_VOTE_ANY,
  DROVER_EMU_VOTE_ALL,
  DROVER_EMU_VOTE_UNI,
  DROVER_EMU_VOTE_BALLOT,
};

enum drover_emu_redux_kind : uint32_t {
  DROVER_EMU_REDUX_ADD,
  DROVER_EMU_REDUX_MIN,
  DROVER_EMU_REDUX_MAX,
  DROVER_EMU_REDUX_UMIN,
  DROVER_EMU_REDUX_UMAX,
  DROVER_EMU_REDUX_AND,
  DROVER_EMU_REDUX_OR,
  DROVER_EMU_REDUX_XOR,
};

enum drover_emu_wgmma_flag : uint32_t {
  DROVER_EMU_WGMMA_ADDS = 1, // to what the registers hold
  DROVER_EMU_WGMMA_A_IS_M_MAJOR = 2,
  DROVER_EMU_WGMMA_B_IS_N_MAJOR = 4,
};

enum drover_emu_register : uint32_t {
  DROVER_EMU_TID_X,
  DROVER_EMU_TID_Y,
  DROVER_EMU_TID_Z,
  DROVER_EMU_NTID_X,
  DROVER_EMU_NTID_Y,
  DROVER_EMU_NTID_Z,
  DROVER_EMU_CTAID_X,
  DROVER_EMU_CTAID_Y,
  DROVER_EMU_CTAID_Z,
  DROVER_EMU_NCTAID_X,
  DROVER_EMU_NCTAID_Y,
  DROVER_EMU_NCTAID_Z,
  DROVER_EMU_LANEID,
  DROVER_EMU_WARPID,
  DROVER_EMU_NWARPID,
  DROVER_EMU_WARPSIZE,
};

extern "C" {
uint32_t drover_emu_special_register(uint32_t which);
/// Counts floating-point operations of the thread.
void drover_emu_flops(uint32_t count);
/// The shared memory of the block.
void *drover_emu_shared();
/// Checks an access of `bytes` bytes and returns where to make it: `address`, or a scratch place after a fault.
/// `argument` is the kernel's argument that the address is computed from, or -1.
void *drover_emu_access(void *address, uint32_t bytes, uint32_t flags, uint32_t alignment, int32_t argument,
                        uint32_t site);
void drover_emu_barrier(uint32_t site);
void drover_emu_warp_barrier(uint32_t mask, uint32_t site);
/// nvvm.shfl.sync; `valid` (may be null) receives its predicate.
uint32_t drover_emu_shuffle(uint32_t mask, uint32_t value, uint32_t offset, uint32_t clamp, uint32_t kind,
                            uint8_t *valid, uint32_t site);
uint32_t drover_emu_vote(uint32_t mask, uint32_t predicate, uint32_t kind, uint32_t site);
uint32_t drover_emu_redux(uint32_t mask, uint32_t value, uint32_t kind, uint32_t site);
/// nvvm.mma.sync m16n8k16 row.col of bf16 with f32 accumulators: `a` 4, `b` 2 registers, `c` and `d` 4 values.
void drover_emu_mma_m16n8k16_bf16(float *d, const uint32_t *a, const uint32_t *b, const float *c, uint32_t site);
/// nvvm.ldmatrix of `count` 8x8 matrices of 16-bit elements; nvvm.stmatrix is its inverse.
void drover_emu_ldmatrix(uint32_t *registers, const void *row, uint32_t count, uint32_t transposed, uint32_t site);
void drover_emu_stmatrix(const uint32_t *registers, void *row, uint32_t count, uint32_t transposed, uint32_t site);
/// nvvm.cp.async.shared.global: `bytes` arrive, the first `copied` of them from global memory, the others zero.
void drover_emu_cp_async(void *shared, const void *global, uint32_t bytes, uint32_t copied, int32_t argument,
                         uint32_t site);
void drover_emu_cp_async_commit(uint32_t site);
/// Waits until at most `pending` of the thread's groups are in flight.
void drover_emu_cp_async_wait(uint32_t pending, uint32_t site);
/// nvvm.fence.proxy of shared memory to the asynchronous proxy: wgmma sees what the thread wrote, behind a barrier.
void drover_emu_proxy_fence(uint32_t site);
/// nvvm.wgmma.*. The products are of bf16 from two matrix descriptors, m64nNk16; `registers` are the thread's N / 2
/// sums, of f32: what they hold on return can only be given to another product, or to drover_emu_wgmma_settle after a
/// wait.
void drover_emu_wgmma_fence(uint32_t site);
void drover_emu_wgmma_bf16(uint32_t *registers, uint64_t a, uint64_t b, uint32_t n, uint32_t flags, uint32_t site);
void drover_emu_wgmma_commit(uint32_t site);
void drover_emu_wgmma_wait(uint32_t pending, uint32_t site);
/// Registers from here on hold the sums of products.
void drover_emu_wgmma_settle(uint32_t *registers, uint32_t count, uint32_t site);
}

#endif // DROVER_EMULATION_HOOKS_H
