/*===- nccl_plugins.h - what NCCL asks of its plugins ------------*- C -*-===//
 * Part of drover, under the Apache License v2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 *===----------------------------------------------------------------------===//
 * NCCL installs no header for these interfaces: layouts and numbers as NCCL 2.20 to 2.30 have them, under names of our
 * own. Functions return ncclResult_t, 0 for success.
 */
#ifndef DROVER_RT_PLUGINS_NCCL_PLUGINS_H
#define DROVER_RT_PLUGINS_NCCL_PLUGINS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Levels of the logger: 2 is shown with NCCL_DEBUG=WARN, 3 with INFO. Subsystems are bits. */
enum { DROVER_NCCL_LOG_WARN = 2, DROVER_NCCL_LOG_INFO = 3, DROVER_NCCL_SUBSYSTEM_TUNING = 64 };
typedef void (*drover_nccl_logger)(int level, unsigned long subsystems, const char *file, int line, const char *format,
                                   ...);

/* Algorithms and protocols of the table; a pair that can't be used has -1. */
enum {
  DROVER_NCCL_TREE = 0,
  DROVER_NCCL_RING = 1,
  DROVER_NCCL_NVLS = 4,
  DROVER_NCCL_NVLS_TREE = 5,
  DROVER_NCCL_PAT = 6,
  DROVER_NCCL_ALGORITHMS = 7
};
enum { DROVER_NCCL_LL = 0, DROVER_NCCL_LL128 = 1, DROVER_NCCL_SIMPLE = 2, DROVER_NCCL_PROTOCOLS = 3 };
enum {
  DROVER_NCCL_BROADCAST = 0,
  DROVER_NCCL_REDUCE = 1,
  DROVER_NCCL_ALL_GATHER = 2,
  DROVER_NCCL_REDUCE_SCATTER = 3,
  DROVER_NCCL_ALL_REDUCE = 4
};

/* `costs` is declared as float ** there, and is float[algorithms][protocols]. `bytes` are of the whole tensor. */
typedef int (*drover_nccl_get_info)(void *context, int collective, size_t bytes, int operations, float **costs,
                                    int algorithms, int protocols, int registered, int *channels);

typedef struct drover_nccl_tuner_v4 {
  const char *name;
  int (*init)(size_t ranks, size_t nodes, drover_nccl_logger logger, void **context);
  drover_nccl_get_info getCollInfo;
  int (*destroy)(void *context);
} drover_nccl_tuner_v4;

typedef struct drover_nccl_domain_v5 {
  int domains, fewest_ranks, most_ranks; /* NVLink domains of the communicator */
} drover_nccl_domain_v5;

/* `constants` are NCCL's own, of its model of costs: left alone. */
typedef struct drover_nccl_tuner_v5 {
  const char *name;
  int (*init)(void **context, uint64_t communicator, size_t ranks, size_t nodes, drover_nccl_logger logger,
              drover_nccl_domain_v5 *domain, void *constants);
  drover_nccl_get_info getCollInfo;
  int (*finalize)(void *context);
} drover_nccl_tuner_v5;

typedef struct drover_nccl_tuner_v6 {
  const char *name;
  int (*init)(void **context, uint64_t communicator, size_t ranks, size_t nodes, drover_nccl_logger logger,
              drover_nccl_domain_v5 *domain, void *constants);
  drover_nccl_get_info getCollInfo;
  int (*finalize)(void *context);
  int (*getChunkSize)(void *context, int collective, size_t bytes, int algorithm, int protocol, int channels,
                      size_t *chunk);
} drover_nccl_tuner_v6;

typedef struct drover_nccl_env_v1 {
  const char *name;
  int (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix);
  int (*finalize)(void);
  const char *(*getEnv)(const char *variable); /* null: not set */
} drover_nccl_env_v1;

/*--- Of both plugins, for the process that loads them -----------------------*/

/* Settings as text (docs/nccl.md), in place of a file; before NCCL's first call. Null where all is well, else what is
 * wrong with them: then there are none. */
const char *drover_nccl_use_settings(const char *text, size_t bytes);

/*--- Of the tuner ------------------------------------------------------------*/

/* The communicator that this process creates next, -1: none is known. Only where a process is one rank. */
void drover_nccl_creating(int64_t communicator);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DROVER_RT_PLUGINS_NCCL_PLUGINS_H */
