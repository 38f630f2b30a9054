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

#define DROVER_PROGRAM_VERSION 1

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

/* The context of one body call. */
typedef struct drover_call {
  struct drover_pool *pool; /* the rank's threads */
  int64_t size;             /* elements of a flat body (docs/body-abi.md), else 0 */
  int32_t accumulate;       /* 1 where the accumulators hold earlier microbatches' sums */
  int32_t reserved;
} drover_call;

/* A compiled body: one pointer an operand; `workspace` has the body's workspace_bytes, 64-byte aligned. */
typedef void (*drover_body_fn)(void *const *operands, void *workspace, const drover_call *call);

/* A kernel over the indices [begin, end). Results do not depend on how the range is cut. */
typedef void (*drover_kernel_fn)(int64_t begin, int64_t end, void *const *operands);

/* What the compiler embeds in an executable, under the symbol `drover_embedded_program`. */
typedef struct drover_program {
  uint32_t version; /* DROVER_PROGRAM_VERSION */
  uint32_t num_bodies;
  const char *metadata; /* JSON, docs/step-program.md */
  uint64_t metadata_bytes;
  const void *actions; /* struct drover_action[], docs/step-program.md */
  uint64_t num_actions;
  const drover_body_fn *bodies;
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
  DROVER_FREE = 7
};

/* Flags of an action. */
enum drover_action_flag {
  DROVER_ACTION_FIRST = 1, /* first into the chunk's accumulators: accumulate = 0 */
  DROVER_ACTION_LOAD = 2   /* first of its microbatch on this rank: the loader fills the input slot before it */
};

/* One action of a rank's list. Fields that a kind does not use are 0. */
typedef struct drover_action {
  uint8_t kind;   /* drover_action_kind */
  uint8_t stream; /* 0 compute; lanes and collectives from part 2 on */
  uint16_t chunk;
  uint16_t phase; /* 0 forward, 1 backward (or input gradient), 2 weight gradient */
  uint16_t flags; /* drover_action_flag */
  uint32_t microbatch;
  uint32_t binding;    /* index into the batch's `bindings`: where the chunk's slots lie in the arena */
  uint32_t first_wait; /* index into the batch's `waits` */
  uint32_t num_waits;
  uint32_t peer;
  uint32_t sequence; /* place in the one global sequence */
} drover_action;

/*--- Called by compiled code ------------------------------------------------*/

/* Runs kernel over [0, count) on the pool's threads, in blocks of at least `grain` indices. */
void drover_rt_parallel_for(const drover_call *call, drover_kernel_fn kernel, int64_t count, int64_t grain,
                            void *const *operands);

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
 * where a mask is absent. mask strides are in elements, 0 where broadcast. */
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
                         const void *value, const void *mask, const void *key_mask, const void *documents, void *result,
                         void *log_sum_exp, void *workspace);
void drover_rt_attention_grad(const drover_call *call, const drover_attention *desc, const void *query, const void *key,
                              const void *value, const void *result, const void *log_sum_exp, const void *gradient,
                              const void *mask, const void *key_mask, const void *documents, void *query_grad,
                              void *key_grad, void *value_grad, void *workspace);

/* table_grad[v, :] (store) the sum in position order of gradient[p, :] with ids[p] = v; f32 result. */
void drover_rt_embedding_grad(const drover_call *call, const void *ids, int32_t ids_dtype, int64_t positions,
                              const void *gradient, int32_t gradient_dtype, int64_t width, int64_t rows,
                              float *table_grad, int32_t store);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DROVER_RT_ABI_H */
