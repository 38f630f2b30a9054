#!/usr/bin/env python3
"""One training step of a Llama-shaped decoder: drover's executable against PyTorch's eager and compiled step, f32 and bf16.

usage: step_time [--threads 2] [--rounds 3] [--warmup 3] [--steps 8] [--batch 4] [--seq 256] [--dtypes f32,bf16] [--deadline 300]
                 [--config models/bench-llama.json] [--no-peer] [--no-compile]
Peers run through shared/peers/torch_step.py (DROVER_SHARED or ../shared). In every round each program runs once, one after
the other, so that what else the machine does falls on all of them; a figure is the median of the rounds' medians. A peer that
has not ended by the deadline (seconds for a run) is ended and reported as such: PyTorch's bf16 products are scalar loops on a
CPU without bf16 instructions. The table is markdown: ratio above 1 means that drover is faster; GFLOP/s are model FLOPs,
attention causal. Below it: where drover's step goes, from one traced run a dtype.
"""
import argparse
import collections
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile

import numpy as np

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(command, seconds=None):
    """What the command prints, or None where it fails or has not ended in time. Its children end with it."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, "late"
    if process.returncode:
        return None, (err.strip().splitlines() or [f"status {process.returncode}"])[-1]
    return out, ""


class Drover:
    """Compiled once; each run trains from the same random weights."""
    name = "drover"

    def __init__(self, arguments, dtype, folder):
        self.arguments, self.dtype, self.folder = arguments, dtype, folder
        with open(os.path.join(TOP, arguments.config)) as file:
            self.config = json.load(file)
        self.exe = os.path.join(folder, "train-" + dtype)
        subprocess.run([os.path.join(TOP, "build/bin/drover"), "compile", os.path.join(TOP, arguments.config), "--task=train",
                        f"--seq-len={arguments.seq}", f"--microbatch={arguments.batch}", f"--global-batch={arguments.batch}",
                        f"--compute-dtype={dtype}", "-o", self.exe], check=True)
        self.tokens = os.path.join(folder, "tokens.u16")
        count = arguments.batch * arguments.seq * 4 + 1
        np.random.default_rng(0).integers(0, self.config["vocab_size"], count).astype("<u2").tofile(self.tokens)

    def flops(self):
        """Of a step: 6 a parameter and token, and causal attention."""
        c, a = self.config, self.arguments
        hidden, layers, tokens = c["hidden_size"], c["num_hidden_layers"], a.batch * a.seq
        key = c["num_key_value_heads"] * hidden // c["num_attention_heads"]
        parameters = layers * (2 * hidden * (hidden + key) + 3 * hidden * c["intermediate_size"]) + hidden * c["vocab_size"]
        return 6 * parameters * tokens + 6 * layers * tokens * a.seq * hidden

    def train(self, *options):
        log = os.path.join(self.folder, self.dtype + ".jsonl")
        subprocess.run([self.exe, f"--data={self.tokens}", f"--steps={self.arguments.warmup + self.arguments.steps}", "--lr=1e-4", "--grad-clip=1.0",
                        "--weight-decay=0.1", "--init=random", f"--threads={self.arguments.threads}", f"--log={log}", *options],
                       check=True, cwd=self.folder, stdout=subprocess.DEVNULL)
        with open(log) as file:
            return [row for row in map(json.loads, file) if "loss" in row]

    def step(self):
        rows = self.train()
        median = statistics.median(row["step_time_s"] for row in rows[self.arguments.warmup:])
        return dict(step_s=median, gflops=self.flops() / median / 1e9, peak_mb=rows[-1]["peak_bytes"] / 2**20)

    def breakdown(self):
        """Body -> its share of a step, the longest first, and what is outside of bodies."""
        path = os.path.join(self.folder, "trace.json")
        first, last = self.arguments.warmup + 1, self.arguments.warmup + self.arguments.steps
        self.train(f"--trace={path}", f"--trace-steps={first}-{last}")
        with open(path) as file:
            events = json.load(file)["traceEvents"]
        bodies = {event["tid"] for event in events if event["name"] == "thread_name" and event["args"]["name"] == "bodies"}
        events = [event for event in events if event["ph"] == "X"]
        steps = sum(event["dur"] for event in events if event["name"].startswith("step "))
        shares = collections.Counter()
        for event in events:
            if event["tid"] in bodies:
                shares[event["name"]] += event["dur"] / steps
        return shares


class Torch:
    """PyTorch's step; `late` once a run has passed the deadline."""

    def __init__(self, arguments, dtype, compiled, script):
        self.name = "torch compile" if compiled else "torch eager"
        self.deadline, self.fault = arguments.deadline, ""
        self.command = [sys.executable, script, f"--batch={arguments.batch}", f"--seq={arguments.seq}",
                        f"--threads={arguments.threads}", f"--dtype={dtype}"] + (["--compile"] if compiled else [])
        self.steps = [f"--warmup={arguments.warmup}", f"--steps={arguments.steps}"]
        # One step alone says whether there is one; torch.compile's cache is filled besides.
        self.measure("--warmup=0", "--steps=1")

    def measure(self, *options):
        out, fault = run(self.command + list(options), self.deadline)
        if out is None:
            what = "no step" if "--warmup=0" in options else "no end"
            self.fault = f"{what} in {self.deadline} s" if fault == "late" else fault
            return None
        line = json.loads(out.strip().splitlines()[-1])
        return dict(step_s=line["step_s"], gflops=line["gflops"], peak_mb=line["peak_rss_mb"])

    def step(self):
        return None if self.fault else self.measure(*self.steps)


def compare(arguments, dtype, script, folder):
    drover = Drover(arguments, dtype, folder)
    peers = [] if arguments.no_peer else [Torch(arguments, dtype, False, script)]
    if peers and not arguments.no_compile:
        peers.append(Torch(arguments, dtype, True, script))
    results = collections.defaultdict(list)
    for _ in range(arguments.rounds):
        for program in [drover] + peers:
            row = program.step()
            if row:
                results[program.name].append(row)
    own = statistics.median(row["step_s"] for row in results["drover"])
    for program in [drover] + peers:
        rows = results[program.name]
        if not rows:
            print(f"| {dtype} {program.name} | {program.fault} | | | |", flush=True)
            continue
        middle = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        print(f"| {dtype} {program.name} | {middle['step_s']:.3f} | {middle['gflops']:.1f} | {middle['peak_mb']:.0f} | "
              f"{middle['step_s'] / own:.2f} |", flush=True)
    return drover


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in dict(threads=2, rounds=3, warmup=3, steps=8, batch=4, seq=256, deadline=300).items():
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("--config", default="models/bench-llama.json")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--no-compile", action="store_true", help="leave out torch.compile")
    arguments = parser.parse_args()
    script = os.path.join(os.environ.get("DROVER_SHARED", os.path.join(TOP, "../shared")), "peers/torch_step.py")
    if not arguments.no_peer and not os.path.exists(script):
        parser.error(f"{script} is missing: set DROVER_SHARED, or leave the peers out by --no-peer")
    busy = lambda: f"{os.getloadavg()[0]:.1f}"
    print(f"{os.cpu_count()} cores, load average {busy()} at the start\n")
    with tempfile.TemporaryDirectory() as folder:
        print("| program | step s | GFLOP/s | peak MB | ratio |\n| --- | --- | --- | --- | --- |", flush=True)
        programs = [compare(arguments, dtype, script, folder) for dtype in arguments.dtypes.split(",")]
        for drover in programs:
            shares = drover.breakdown()
            listed = ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.most_common(7))
            print(f"\n{drover.dtype}, where drover's step goes: {listed}; all bodies {100 * sum(shares.values()):.0f} %")
    print(f"\nload average {busy()} at the end")


if __name__ == "__main__":
    main()
