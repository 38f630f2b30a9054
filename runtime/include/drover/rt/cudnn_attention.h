/*===- cudnn_attention.h - attention by cuDNN ---------------------*- C -*-===//
 * Part of drover, under the Apache License v2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 *===----------------------------------------------------------------------===*/
/* libdrover-cudnn.so, which is built where cuDNN's headers are and opened at run time. What it computes: dense bf16
 * attention without a mask or with a causal one; the compiler knows for which it is asked (CudnnConditions.h). */
#ifndef DROVER_RT_CUDNN_ATTENTION_H
#define DROVER_RT_CUDNN_ATTENTION_H

#include "drover/rt/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of workspace that a direction gets. A plan's own number is known on a GPU only, and a plan that needs more is
 * an error there. The backward keeps in f32 the gradients of the queries, two sums a row, and where several queries
 * share a key those of each query's keys and values; its deterministic form has up to version 9.24 a bf16 number a pair
 * of query and key (cudnn-frontend, docs/operations/Attention.md). */
static inline int64_t drover_cudnn_workspace(const drover_attention *desc, int backward) {
  const int64_t slack = 1 << 20;
  int64_t rows = desc->batch * desc->heads * desc->queries, bytes = slack;
  if (!backward)
    return bytes;
  bytes += rows * (desc->head_size + 2) * 4;
  if (desc->heads != desc->kv_heads)
    bytes += desc->batch * desc->heads * desc->keys * (desc->head_size + desc->value_head_size) * 4;
  return bytes + rows * desc->keys * 2;
}

/* Functions return null, or what went wrong, valid until the thread's next call. One thread at a time. */
typedef struct drover_cudnn drover_cudnn;
/* Opens cuDNN: `library`, else $DROVER_RT_LIBCUDNN, else libcudnn.so.9. Needs no GPU. */
const char *drover_cudnn_open(const char *library, drover_cudnn **opened);
void drover_cudnn_close(drover_cudnn *self);
/* As far as a plan for Hopper can be checked without a GPU. */
const char *drover_cudnn_validate(drover_cudnn *self, const drover_attention *desc, int backward);
/* On a CUstream of the current context, whose plans are made once a description. */
const char *drover_cudnn_forward(drover_cudnn *self, const drover_attention *desc, void *stream, const void *query,
                                 const void *key, const void *value, void *result, void *log_sum_exp, void *workspace);
const char *drover_cudnn_backward(drover_cudnn *self, const drover_attention *desc, void *stream, const void *query,
                                  const void *key, const void *value, const void *result, const void *log_sum_exp,
                                  const void *gradient, void *query_grad, void *key_grad, void *value_grad,
                                  void *workspace);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DROVER_RT_CUDNN_ATTENTION_H */
