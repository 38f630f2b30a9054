/*===- emu.h - kernels of a GPU, run by this CPU -----------------*- C -*-===//
 * Part of drover, under the Apache License v2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 *===----------------------------------------------------------------------===//
 * What a library of kernels (drover-emulate-kernels) exports, and how the stand-in driver and tests run and check one.
 */
#ifndef DROVER_EMULATION_EMU_H
#define DROVER_EMULATION_EMU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DROVER_EMU_LIBRARY_VERSION 1

typedef struct drover_emu_dim {
  uint32_t x, y, z;
} drover_emu_dim;

enum drover_emu_argument_flag {
  DROVER_EMU_POINTER = 1,
  DROVER_EMU_READONLY = 2, /* llvm.readonly */
  DROVER_EMU_NOALIAS = 4,  /* llvm.noalias */
};

/* One argument of a kernel. */
typedef struct drover_emu_argument {
  uint32_t bytes;  /* of the argument itself */
  uint32_t flags;  /* enum drover_emu_argument_flag */
  uint64_t extent; /* llvm.dereferenceable of a pointer; 0: as far as its allocation */
} drover_emu_argument;

/* One kernel of a library. */
typedef struct drover_emu_kernel {
  const char *name;
  void (*thread)(void **arguments); /* what one thread does; `arguments` as cuLaunchKernel takes them */
  const drover_emu_argument *arguments;
  const char *const *sites; /* by number: the operation and where it stands, for messages */
  uint32_t argument_count;
  uint32_t site_count;
  uint32_t static_shared_bytes; /* of a shared global with a size; the launch adds its own to it */
  uint32_t shared_bytes;        /* drover.shared_bytes: what a launch must give it in all */
  uint32_t max_threads;         /* nvvm.maxntid or nvvm.reqntid; 0: unknown */
  uint32_t granule;             /* log2 of the bytes of the narrowest access, at most 2: a cell of the shadow */
} drover_emu_kernel;

/* The one symbol of a library of kernels. */
#define DROVER_EMU_LIBRARY_SYMBOL "drover_emu_library"
typedef struct drover_emu_library {
  uint32_t version; /* DROVER_EMU_LIBRARY_VERSION */
  uint32_t kernel_count;
  const drover_emu_kernel *kernels;
} drover_emu_library;

/* Bytes that a launch read or wrote: called once per range of neighbouring bytes when the launch has ended. */
typedef void (*drover_emu_touched)(void *context, const void *base, size_t bytes, int written);

typedef struct drover_emu_launch {
  drover_emu_dim grid, block;
  uint32_t dynamic_shared_bytes;
  uint64_t seed; /* order of blocks and of threads */
  drover_emu_touched touched; /* may be null */
  void *context;
} drover_emu_launch;

/* What is checked; DROVER_EMU_CHECKS names them with commas, or says all (the default) or none. */
enum drover_emu_check {
  DROVER_EMU_CHECK_BOUNDS = 1,  /* extents of arguments and of shared memory, writes to readonly, aliases of noalias */
  DROVER_EMU_CHECK_ALIGN = 2,   /* misaligned accesses */
  DROVER_EMU_CHECK_INIT = 4,    /* reads of what nobody wrote */
  DROVER_EMU_CHECK_RACES = 8,   /* between threads without a barrier, and between blocks */
  DROVER_EMU_CHECK_ASYNC = 16,  /* reads of cp.async data before its wait; copies never waited for */
  DROVER_EMU_CHECK_BARRIER = 32 /* divergent barriers and warp operations */
};
void drover_emu_set_checks(uint32_t checks);

/* Runs a kernel. Blocks run one after the other, the threads of a block as fibers of the calling thread.
 * Returns the number of faults of this launch; what they were is in the log below. */
uint64_t drover_emu_run(const drover_emu_kernel *kernel, const drover_emu_launch *launch, void **arguments);

/* Device memory: what kernels may touch. Memory starts without contents. */
void drover_emu_memory_add(void *base, size_t bytes);
void drover_emu_memory_remove(void *base);
void drover_emu_memory_written(const void *base, size_t bytes);
/* `destination` holds what `source` holds: its bytes count as written where those of the source do. */
void drover_emu_memory_copied(const void *destination, const void *source, size_t bytes);
/* The first byte of the range that nobody wrote, or null. */
const void *drover_emu_memory_unwritten(const void *base, size_t bytes);

/* The log of faults of this process, one line each; equal faults at one place of one kernel are one line. The checks
 * of the stand-in libraries report through it too. Lines go to stderr as they come unless DROVER_EMU_QUIET is set. */
void drover_emu_report(const char *line);
uint64_t drover_emu_fault_count(void);
/* Valid until the log is cleared; null past the end. */
const char *drover_emu_fault(uint64_t index);
void drover_emu_clear_faults(void);

/* Counters of all launches: bytes by global loads and stores, switches of fibers, warp-wide operations, floating-point
 * operations (a multiply-add is two, an approximate function one). */
typedef struct drover_emu_counters {
  uint64_t bytes_read, bytes_written, switches, warp_operations, barriers, blocks, flops;
} drover_emu_counters;
void drover_emu_read_counters(drover_emu_counters *counters);

#ifdef __cplusplus
}
#endif

#endif /* DROVER_EMULATION_EMU_H */
