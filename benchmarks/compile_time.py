#!/usr/bin/env python3
"""Compiles models/llama-3.1-405b.json with 4, 32 and 126 layers to an executable; prints seconds, peak memory, and the size of the
IR after outlining and differentiation. usage: compile_time [--layers 4,32,126] [--seq-len 8192]"""
import argparse
import json
import os
import subprocess
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def measure(command):
    """Wall seconds and peak resident MB of a command."""
    begin = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"status {status} of {' '.join(command)}")
    return time.perf_counter() - begin, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", default="4,32,126")
    parser.add_argument("--seq-len", type=int, default=8192)
    arguments = parser.parse_args()
    config = json.load(open(os.path.join(TOP, "models/llama-3.1-405b.json")))
    drover = os.path.join(TOP, "build/bin/drover")
    print(f"{'layers':>7}{'compile s':>11}{'peak MB':>9}{'IR lines':>10}{'IR KB':>8}{'exe KB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for layers in map(int, arguments.layers.split(",")):
            config["num_hidden_layers"] = layers
            path = os.path.join(folder, "config.json")
            json.dump(config, open(path, "w"))
            common = [drover, "compile", path, "--task=train", f"--seq-len={arguments.seq_len}", "--compute-dtype=bf16"]
            seconds, memory = measure([*common, "-o", os.path.join(folder, "train")])
            text = os.path.join(folder, "ir.mlir")
            measure([*common, "--stop-after=differentiate", "--emit=mlir", "-o", text])
            size = os.path.getsize(text)
            lines = sum(1 for _ in open(text))
            print(f"{layers:7}{seconds:11.2f}{memory:9.0f}{lines:10}{size / 1024:8.0f}{os.path.getsize(os.path.join(folder, 'train')) / 1024:8.0f}")


if __name__ == "__main__":
    main()
