#!/usr/bin/env python3
"""Compiles a model, trains it from random weights with one thread, again with one, and with two, and compares losses and weights bit for bit.

usage: bitwise_equal.py FOLDER [--drover PATH] [compile options ..]
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=550)
    if done.returncode:
        sys.exit(f"status {done.returncode} of {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


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
            with open(os.path.join(folder, "log.jsonl")) as file:
                losses = [row["loss"] for row in map(json.loads, file) if "loss" in row]
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
