#!/usr/bin/env python3
"""Trains a wide model on two ranks, one process each under mpirun, and compares the largest resident size of each process (VmHWM) with
what `drover check` says of its stage; prints a Markdown table, exit status 1 where one deviates by more than 5 %.

usage: memory [--drover build/bin/drover] [--python ..]

A process holds more than its plan: the executable and libmpi, MPI's own buffers and staging, stacks, tiles of the kernels' threads, the
parsed program. None of that grows with the plan, so it is measured by the same layout of a model that is 64 wide, whose own plan is
taken off: resident (wide) - (resident (narrow) - plan (narrow)) is what the table compares with plan (wide).
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LAYOUTS = ["--tp=2", "--tp=2 --compute-dtype=bf16", "--cp=2", "--pp=2", "--pp=2 --chunks=2 --recompute=full", "--dp=2 --zero=0", "--dp=2 --zero=1",
           "--dp=2 --zero=2 --chunks=4", "--dp=2 --zero=3 --chunks=4"]


def config(width, layers, vocabulary):
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocabulary, "hidden_size": width,
            "intermediate_size": 11 * width // 4, "num_hidden_layers": layers, "num_attention_heads": width // 16, "num_key_value_heads": width // 64 * 2,
            "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 1e4, "hidden_act": "silu", "initializer_range": 0.02,
            "tie_word_embeddings": False}


def measure(drover, folder, model, layout, sequence):
    """By rank: (bytes of the plan, bytes allocated, bytes resident)."""
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(model, file)
    options = ["config.json", "--task=train", f"--seq-len={sequence}", "--global-batch=4", *layout.split()]
    call = lambda command, **more: subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=300, **more).stdout
    plan = json.loads(call([drover, "check", *options, "--json"]))["batches"][0]["peak_memory_bytes"]
    call([drover, "compile", *options, "-o", "train"])
    call(["mpirun", "-n", "2", "--allow-run-as-root", "--oversubscribe", "./train", "--data=text", "--init=random", "--steps=2",
          "--threads=1", "--log=log.jsonl", "--log-all-ranks"])
    rows = []
    for rank, name in enumerate(("log.jsonl", "log.1.jsonl")):
        with open(os.path.join(folder, name)) as file:
            end = json.loads(file.readlines()[-1])
        rows.append((plan[rank % len(plan)], end["allocated_bytes"], end["resident_bytes"]))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drover", default=os.path.join(TOP, "build/bin/drover"))
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--vocabulary", type=int, default=16384)
    parser.add_argument("--seq-len", type=int, default=256)
    arguments = parser.parse_args()
    drover, worst = os.path.abspath(arguments.drover), 0
    mib = lambda value: f"{value / 2**20:.1f}"
    print("| layout | rank | plan MiB | allocated MiB | resident MiB | narrow model's own MiB | resident less that | deviation |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "text"), "wb") as file:
            file.write(bytes(i * i % 251 for i in range(20000)))
        for layout in LAYOUTS:
            wide = measure(drover, folder, config(arguments.width, arguments.layers, arguments.vocabulary), layout, arguments.seq_len)
            narrow = measure(drover, folder, config(64, arguments.layers, 256), layout, arguments.seq_len)
            for rank, ((plan, allocated, resident), (small, _, own)) in enumerate(zip(wide, narrow)):
                base = own - small
                deviation = (resident - base) / plan - 1
                worst = max(worst, abs(deviation), float(allocated != plan))
                print(f"| `{layout}` | {rank} | {mib(plan)} | {mib(allocated)} | {mib(resident)} | {mib(base)} | {mib(resident - base)} |"
                      f" {100 * deviation:+.2f} % |", flush=True)
    sys.exit(worst > 0.05)


if __name__ == "__main__":
    main()
