#!/usr/bin/env python3
"""One training step of a Llama-shaped decoder: drover's executable against PyTorch's eager and compiled step, f32 and bf16.

usage: step_time [--threads 2] [--steps 12] [--batch 4] [--seq 256] [--config models/bench-llama.json] [--no-peer] [--no-compile]
Peers run through shared/peers/torch_step.py (DROVER_SHARED or ../shared). The runs alternate; the table gives medians, ratios
(above 1: drover is faster), achieved GFLOP/s (model FLOPs, attention causal) and peak memory.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def drover_step(arguments, dtype, folder):
    """Compiles for `dtype`, trains, returns median step time in s, GFLOP/s, peak MB and loss."""
    config = json.load(open(os.path.join(TOP, arguments.config)))
    drover = os.path.join(TOP, "build/bin/drover")
    exe = os.path.join(folder, "train-" + dtype)
    subprocess.run([drover, "compile", os.path.join(TOP, arguments.config), "--task=train", f"--seq-len={arguments.seq}",
                    f"--microbatch={arguments.batch}", f"--global-batch={arguments.batch}", f"--compute-dtype={dtype}", "-o", exe], check=True)
    tokens = os.path.join(folder, "tokens.u16")
    np.random.default_rng(0).integers(0, config["vocab_size"], arguments.batch * arguments.seq * 4 + 1).astype("<u2").tofile(tokens)
    log = os.path.join(folder, dtype + ".jsonl")
    subprocess.run([exe, f"--data={tokens}", f"--steps={arguments.steps}", "--lr=1e-4", "--grad-clip=1.0", "--weight-decay=0.1", "--init=random",
                    f"--threads={arguments.threads}", f"--log={log}"], check=True, stdout=subprocess.DEVNULL)
    rows = [row for row in map(json.loads, open(log)) if "loss" in row]
    median = statistics.median(row["step_time_s"] for row in rows[3:])
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    key = config["num_key_value_heads"] * hidden // heads
    parameters = config["num_hidden_layers"] * (2 * hidden * hidden + 2 * hidden * key + 3 * hidden * config["intermediate_size"]) + hidden * config["vocab_size"]
    tokens_per_step = arguments.batch * arguments.seq
    flops = 6 * parameters * tokens_per_step + 6 * config["num_hidden_layers"] * tokens_per_step * arguments.seq * hidden
    return dict(step_s=median, gflops=flops / median / 1e9, peak_mb=rows[-1]["peak_bytes"] / 2**20, loss=rows[-1]["loss"])


def peer_step(arguments, dtype, compiled, script):
    """The peer's JSON line, or None where it fails."""
    command = [sys.executable, script, f"--batch={arguments.batch}", f"--seq={arguments.seq}", f"--threads={arguments.threads}",
               f"--dtype={dtype}", f"--steps={arguments.steps - 3}"] + (["--compile"] if compiled else [])
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"peer failed: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}")
        return None
    line = json.loads(done.stdout.strip().splitlines()[-1])
    return dict(step_s=line["step_s"], gflops=line["gflops"], peak_mb=line["peak_rss_mb"], loss=line["loss"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in dict(threads=2, steps=12, batch=4, seq=256).items():
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--config", default="models/bench-llama.json")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--no-compile", action="store_true", help="leave out torch.compile")
    arguments = parser.parse_args()
    script = os.path.join(os.environ.get("DROVER_SHARED", os.path.join(TOP, "../shared")), "peers/torch_step.py")
    print(f"{'':24}{'step s':>9}{'GFLOP/s':>9}{'peak MB':>9}{'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for dtype in ("f32", "bf16"):
            results = {"drover": drover_step(arguments, dtype, folder)}
            if not arguments.no_peer:
                results["torch eager"] = peer_step(arguments, dtype, False, script)
                if not arguments.no_compile:
                    results["torch compile"] = peer_step(arguments, dtype, True, script)
            for name, row in results.items():
                if row:
                    ratio = row["step_s"] / results["drover"]["step_s"]
                    print(f"{dtype + ' ' + name:24}{row['step_s']:9.4f}{row['gflops']:9.1f}{row['peak_mb']:9.0f}{ratio:7.2f}")


if __name__ == "__main__":
    main()
