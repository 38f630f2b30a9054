#!/usr/bin/env python3
"""Compiles a model, trains it from random weights with one thread, again with one, and with two, and compares losses and weights bit for bit.

usage: bitwise_equal.py FOLDER [--drover PATH] [compile options ..]
"""
import argparse
import os
import shutil
import sys
import tempfile

from running import run, steps_of


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--drover", default="drover")
    arguments, options = parser.parse_known_args()
    source, folder = os.path.abspath(arguments.folder), tempfile.mkdtemp()
    results = []
    try:
        run([arguments.drover, "compile", f"{source}/model.onnx", "--task=train", "--seq-len=16", *options, "-o", "train"], folder)
        for threads in (1, 1, 2):
            run(["./train", f"--data={source}/tokens.u16", "--steps=6", "--lr=0.01", "--init=random", "--seed=1", f"--threads={threads}",
                 "--log=log.jsonl", "--save-weights=w.safetensors"], folder)
            losses = [row["loss"] for row in steps_of(folder)]
            with open(os.path.join(folder, "w.safetensors"), "rb") as file:
                results.append((losses, file.read()))
    finally:
        shutil.rmtree(folder)
    losses = results[0][0]
    if len(losses) != 6 or not losses[-1] < losses[0]:
        sys.exit(f"expected a loss that falls, not {losses}")
    if any(result != results[0] for result in results):
        sys.exit("two runs differ")


main()
