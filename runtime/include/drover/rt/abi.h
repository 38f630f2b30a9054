/*===- abi.h - what compiled code and the runtime agree on ---------*- C -*-===//
 * Part of drover, under the Apache License v2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 *===----------------------------------------------------------------------===//
 * The runtime's C ABI (docs/runtime-abi.md) and the body ABI (docs/body-abi.md). The compiler knows
 * this header and nothing else of the runtime; the runtime knows nothing of the compiler.
 */
#ifndef DROVER_RT_ABI_H
#define DROVER_RT_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DROVER_PROGRAM_VERSION 2

/* Element types, as they stand in compiled code and in binary files. */
enum drover_dtype {
  DROVER_F32 = 0,
  DROVER_BF16 = 1,
  DROVER_F16 = 2,
  DROVER_F64 = 3,
  DROVER_I64 = 4,
  DROVER_I32 = 5,
  DROVER_I8 = 6,
  DROVER_I1 = 7 /* one byte an element, 0 or 1 */
};

/* How a result meets what its memory holds. */
enum drover_store {
  DROVER_OVERWRITE = 0,
  DROVER_ADD = 1,
  DROVER_ACCUMULATE = 2 /* ADD where call->accumulate is 1, else OVERWRITE */
};

struct drover_pool;
struct drover_communicators;
struct drover_device;

/* Axes of the grid of ranks; KV and REPLICA are the factors of TP where it is split (docs/distributions.md). */
enum drover_axis {
  DROVER_AXIS_TP = 0,
  DROVER_AXIS_CP = 1,
  DROVER_AXIS_PP = 2,
  DROVER_AXIS_DP = 3,
  DROVER_AXIS_KV = 4,
  DROVER_AXIS_REPLICA = 5,
  DROVER_NUM_AXES = 6
};

/* The context of one body call. */
typedef struct drover_call {
  struct drover_pool *pool; /* the rank's threads */
  int64_t size;             /* elements of a flat body (docs/body-abi.md), else 0 */
  int32_t accumulate;       /* 1 where the accumulators hold earlier microbatches' sums */
  int32_t reserved;
  const int32_t *coordinates;                 /* DROVER_NUM_AXES of them: the rank's place on the grid; never null */
  struct drover_communicators *communicators; /* the rank's groups; null where there is one rank */
  struct drover_device *device;               /* null: the host */
} drover_call;

/* A compiled body: one pointer an operand; `workspace` has the body's workspace_bytes, 64-byte aligned. */
typedef void (*drover_body_fn)(void *const *operands, void *workspace, const drover_call *call);

/* A kernel over the indices [begin, end). Results do not depend on how the range is cut. */
typedef void (*drover_kernel_fn)(int64_t begin, int64_t end, void *const *operands);

/* The code of a kernel of the GPU in the forms that a device loads (docs/cuda.md). */
typedef struct drover_gpu_image {
  const char *name;  /* of the kernel: NAME_HASH, the hash of its content */
  const void *cubin; /* for `architecture` */
  uint64_t cubin_bytes;
  const char *ptx; /* ends with a 0, which is not counted; null where the kernel is for one architecture only */
  uint64_t ptx_bytes;
  uint32_t architecture;          /* compute capability, 10 * major + minor: 90 */
  uint32_t architecture_specific; /* 1: for this capability alone (sm_90a) */
} drover_gpu_image;

/* What the compiler embeds in an executable, under the symbol `drover_embedded_program`. */
typedef struct drover_program {
  uint32_t version; /* DROVER_PROGRAM_VERSION */
  uint32_t num_bodies;
  const char *metadata; /* JSON, docs/step-program.md */
  uint64_t metadata_bytes;
  const void *actions; /* struct drover_action[], docs/step-program.md */
  uint64_t num_actions;
  const drover_body_fn *bodies;
  const drover_gpu_image *gpu_images; /* in order of their names; null where the program is for the host */
  uint64_t num_gpu_images;
  const void *gpu_modules; /* MLIR bytecode of all kernels, in section .drover.nvvm: what the emulator compiles */
  uint64_t gpu_modules_bytes;
} drover_program;

extern const drover_program drover_embedded_program;

/* Kinds of actions; numbers are part of the format. */
enum drover_action_kind {
  DROVER_RUN = 0, /* run a chunk's phase for a microbatch */
  DROVER_SEND = 1,
  DROVER_RECEIVE = 2,
  DROVER_GATHER = 3, /* a chunk's parameters into the compute dtype */
  DROVER_REDUCE = 4, /* a chunk's gradients over its ranks */
  DROVER_NORM = 5,   /* squares of a chunk's gradients, into the global norm */
  DROVER_UPDATE = 6, /* optimizer of a chunk */
  DROVER_FREE = 7,
  DROVER_COUNT = 8, /* labels that count, over the world */
  DROVER_CLIP = 9   /* squares and loss over the world; the clip coefficient */
};

/* "run", "send", ..; "unknown" where there is no such kind. */
static inline const char *drover_action_name(uint32_t kind) {
  static const char *const names[] = {"run",  "send",   "receive", "gather", "reduce",
                                      "norm", "update", "free",    "count",  "clip"};
  return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}

/* 1 where `chunk` of such an action is the number of a bucket (docs/step-program.md). */
static inline int drover_action_is_of_bucket(uint32_t kind) {
  return kind == DROVER_GATHER || kind == DROVER_REDUCE || kind == DROVER_NORM || kind == DROVER_UPDATE;
}

/* Streams of a rank: actions of one run in order (docs/step-program.md). */
enum drover_stream {
  DROVER_STREAM_COMPUTE = 0,
  DROVER_STREAM_FORWARD_SEND = 1,
  DROVER_STREAM_FORWARD_RECEIVE = 2,
  DROVER_STREAM_BACKWARD_SEND = 3,
  DROVER_STREAM_BACKWARD_RECEIVE = 4,
  DROVER_STREAM_GATHER = 5,
  DROVER_STREAM_REDUCE = 6,
  DROVER_NUM_STREAMS = 7
};

/* Communicators with fixed ids; edges and ties follow from DROVER_COMM_FIRST_LISTED on (docs/step-program.md). */
enum drover_communicator_id {
  DROVER_COMM_WORLD = 0,
  DROVER_COMM_TP = 1,
  DROVER_COMM_KV = 2,
  DROVER_COMM_REPLICA = 3,
  DROVER_COMM_CP = 4,
  DROVER_COMM_FSDP = 5,
  DROVER_COMM_DP = 6,
  DROVER_COMM_FIRST_LISTED = 16
};

/* Flags of an action. */
enum drover_action_flag {
  DROVER_ACTION_FIRST = 1, /* first into the chunk's accumulators: accumulate = 0 */
  DROVER_ACTION_LOAD = 2,  /* first of its microbatch on this rank: the loader fills the input slot before it */
  DROVER_ACTION_ADD = 4    /* a REDUCE that adds to what `gradient` holds */
};

/* One action of a rank's list. Fields that a kind does not use are 0. */
typedef struct drover_action {
  uint8_t kind;   /* drover_action_kind */
  uint8_t stream; /* drover_stream */
  uint16_t chunk;
  uint16_t phase; /* 0 forward, 1 backward (or input gradient), 2 weight gradient */
  uint16_t flags; /* drover_action_flag */
  uint32_t microbatch;
  uint32_t binding;    /* index into the batch's `bindings`: where the chunk's slots lie in the arena */
  uint32_t first_wait; /* index into the batch's `waits` */
  uint32_t num_waits;
  uint32_t peer;     /* communicator of a SEND, a RECEIVE, or a tied bucket's GATHER and REDUCE; else 0 */
  uint32_t sequence; /* place in the one global sequence */
} drover_action;

/*--- Called by compiled code ------------------------------------------------*/

/* Runs kernel over [0, count) on the pool's threads, in blocks of at least `grain` indices. */
void drover_rt_parallel_for(const drover_call *call, drover_kernel_fn kernel, int64_t count, int64_t grain,
                            void *const *operands);

/* An index that a kernel read is not in [low, size): ends the rank. `what` names the body and the operation. */
void drover_rt_index_error(const char *what, int64_t index, int64_t low, int64_t size);

/* A kernel of the GPU as a body launches it; its code is found by its name (docs/cuda.md). */
typedef struct drover_gpu_kernel {
  const char *name;
  const char *check;     /* the body and operation whose indices it checks; null where it checks none */
  uint32_t threads;      /* of a block */
  uint32_t shared_bytes; /* of a block, in all */
  uint32_t num_arguments;
  uint32_t reserved;
} drover_gpu_kernel;
/* Enqueues `blocks` blocks of the kernel on the body's stream. `arguments` has a pointer to each argument, a pointer or
 * an int64_t, and room for two more: a kernel with `check` also gets the address of `kernel` as an int64_t, and the
 * device's two error words, into which it puts that number and the first index that is out of range. */
void drover_rt_gpu_launch(const drover_call *call, const drover_gpu_kernel *kernel, int64_t blocks, void **arguments);

/* C[m,n] (store) A[m,k] B[k,n], row-major with leading dimensions; trans_a: A is stored [k,m]. Sums in
 * f32. dtypes f32 or bf16 for A and B (equal), f32 or bf16 for C. `batch` products at the strides
 * (in elements) stride_a, stride_b, stride_c. */
typedef struct drover_matmul {
  int32_t dtype_ab, dtype_c, trans_a, trans_b, store, reserved;
  int64_t m, n, k, lda, ldb, ldc;
  int64_t batch, stride_a, stride_b, stride_c;
} drover_matmul;
void drover_rt_matmul(const drover_call *call, const drover_matmul *desc, const void *a, const void *b, void *c);

/* Attention over [batch, length, heads * head_size] tensors; row strides in elements, so that a slice
 * of a packed projection is read in place. Semantics: `tfm.attention` (docs/tfm.md). Null pointers
 * where a mask is absent. mask strides are in elements, 0 where broadcast. `documents` has an id a key. `query_index`,
 * where it is not null, has the place of each query in the keys' sequence, in any order. */
typedef struct drover_attention {
  int32_t dtype; /* of query, key, value, result, gradient */
  int32_t dtype_kv_grad;
  int32_t causal;     /* 0 none, 1 top-left, 2 bottom-right */
  int32_t mask_dtype; /* DROVER_I1 or a float type */
  int32_t key_mask_dtype, documents_dtype;
  int64_t batch, queries, keys, heads, kv_heads, head_size, value_head_size;
  int64_t query_stride, key_stride, value_stride, result_stride, gradient_stride; /* between rows */
  int64_t query_grad_stride, key_grad_stride, value_grad_stride;
  int64_t window; /* 0: none */
  int64_t mask_batch_stride, mask_head_stride, mask_query_stride, key_mask_batch_stride;
  double scale, softcap; /* softcap 0: none */
  const float *alibi_slopes;
} drover_attention;
/* Bytes of `workspace` that either direction may use: the row sums of result * gradient, and, where it is narrower, an
 * f32 copy of query_grad. A constant of the shapes, linear in the lengths, because the compiler plans it into a body's
 * workspace; tiles belong to a thread. */
static inline int64_t drover_attention_workspace(const drover_attention *desc) {
  int64_t rows = desc->batch * desc->queries * desc->heads;
  int64_t floats = rows;
  if (desc->dtype != DROVER_F32)
    floats += rows * desc->head_size;
  return floats * (int64_t)sizeof(float);
}
void drover_rt_attention(const drover_call *call, const drover_attention *desc, const void *query, const void *key,
                         const void *value, const void *mask, const void *key_mask, const void *documents,
                         const int64_t *query_index, void *result, void *log_sum_exp, void *workspace);
void drover_rt_attention_grad(const drover_call *call, const drover_attention *desc, const void *query, const void *key,
                              const void *value, const void *result, const void *log_sum_exp, const void *gradient,
                              const void *mask, const void *key_mask, const void *documents, const int64_t *query_index,
                              void *query_grad, void *key_grad, void *value_grad, void *workspace);

/* table_grad[v, :] (store) the sum in position order of gradient[p, :] with ids[p] = v; f32 result. Where `offset` is
 * not null the table is rows *offset, .. of a longer one: ids[p] - *offset = v, and ids of other rows are skipped. */
void drover_rt_embedding_grad(const drover_call *call, const void *ids, int32_t ids_dtype, int64_t positions,
                              const int64_t *offset, const void *gradient, int32_t gradient_dtype, int64_t width,
                              int64_t rows, float *table_grad, int32_t store);

/* Collectives of a body (docs/communication.md). */
enum drover_collective_kind {
  DROVER_ALL_GATHER = 0,
  DROVER_REDUCE_SCATTER = 1,
  DROVER_ALL_REDUCE = 2,
  DROVER_SHIFT = 3 /* in goes to the next member, out comes from the one before; the last's next is member 0 */
};
enum drover_reduce_op { DROVER_SUM = 0, DROVER_MAX = 1 };
#define DROVER_MAX_IN_FLIGHT 16

typedef struct drover_collective {
  int32_t communicator; /* drover_communicator_id */
  int32_t kind, op, dtype;
  int32_t two_chunk; /* 1: a rank's part of the dimension is CP's two chunks */
  int32_t reduction; /* id of the typed reduction that this discharges or is a step of, -1 for a gather */
  int64_t outer, local, inner;
} drover_collective;

/* Starts a collective into `slot` (0 .. DROVER_MAX_IN_FLIGHT-1, free); in and out belong to it until the wait. */
void drover_rt_collective_start(const drover_call *call, const drover_collective *desc, const void *in, void *out,
                                int32_t slot);
void drover_rt_collective_wait(const drover_call *call, int32_t slot);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DROVER_RT_ABI_H */
