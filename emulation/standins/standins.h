/*===- standins.h - what tests ask of the stand-in libraries -----*- C -*-===//
 * Part of drover, under the Apache License v2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 *===----------------------------------------------------------------------===//
 * Exported by the stand-in driver. What they find wrong goes to the emulator's log (emu.h).
 */
#ifndef DROVER_EMULATION_STANDINS_H
#define DROVER_EMULATION_STANDINS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As DROVER_EMU_SEED: 0 does work at once, others late and in an order of their own. While nothing is in flight. */
void drover_standin_set_seed(uint64_t seed);

#ifdef __cplusplus
}
#endif

#endif /* DROVER_EMULATION_STANDINS_H */
