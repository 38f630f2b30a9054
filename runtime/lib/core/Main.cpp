//===- Main.cpp - entry of an executable that drover compiled -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// In the archive like everything else: the linker takes it where nothing else defines main.
#include "drover/rt/executable.h"

int main(int argc, char **argv) { return drover::rt::runExecutable(drover_embedded_program, argc, argv); }
