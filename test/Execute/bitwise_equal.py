#!/usr/bin/env python3
"""Compiles a model and trains it from random weights several times: with one thread, again, with two; over several ranks also with
operations that complete as early and as late as allowed, with guards around slots and dead slots poisoned, and with --mpi as processes.
Losses and weights must be the same bit for bit.

usage: bitwise_equal.py FOLDER [--drover PATH] [--mpi] [compile options ..]
"""
import argparse
import os
import re
import shutil
import sys
import tempfile

from running import run, steps_of


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--drover", default="drover")
    parser.add_argument("--mpi", action="store_true")
    arguments, options = parser.parse_known_args()
    source, folder = os.path.abspath(arguments.folder), tempfile.mkdtemp()
    ranks = 1
    for axis in re.findall(r"--(?:tp|cp|pp|dp)=(\d+)", " ".join(options)):
        ranks *= int(axis)
    variants = [([], 1), ([], 1), ([], 2)]
    if ranks > 1:
        variants += [(["env", f"DROVER_RT_{guard}"], 1) for guard in ("TIMING=early", "TIMING=late", "CANARIES=1", "POISON=1")]
    if arguments.mpi:
        variants.append((["mpirun", "-n", str(ranks), "--allow-run-as-root", "--oversubscribe"], 1))
    results = []
    try:
        run([arguments.drover, "compile", f"{source}/model.onnx", "--task=train", "--seq-len=16", *options, "-o", "train"], folder)
        for launcher, threads in variants:
            run([*launcher, "./train", f"--data={source}/tokens.u16", "--steps=6", "--lr=0.01", "--init=random", "--seed=1",
                 f"--threads={threads}", "--log=log.jsonl", "--save-weights=w.safetensors"], folder, 150)
            losses = [row["loss"] for row in steps_of(folder)]
            with open(os.path.join(folder, "w.safetensors"), "rb") as file:
                results.append((losses, file.read()))
    finally:
        shutil.rmtree(folder)
    losses = results[0][0]
    if len(losses) != 6 or not losses[-1] < losses[0]:
        sys.exit(f"expected a loss that falls, not {losses}")
    different = [f"{' '.join(launcher)} --threads={threads}" for (launcher, threads), result in zip(variants, results) if result != results[0]]
    if different:
        sys.exit(f"other bits than the first run: {'; '.join(different)}")


main()
