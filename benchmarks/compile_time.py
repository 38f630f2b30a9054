#!/usr/bin/env python3
"""Compiles models/llama-3.1-405b.json to an executable, checks it, and plans all its ranks, over ranks, layers and microbatches; prints
Markdown: seconds and peak MB of `drover compile` and `drover check`, actions, KB of metadata and actions in the executable, seconds to
plan every rank through the executable's loader (`--describe-ranks`) and the bytes of the largest plan.

usage: compile_time [--drover build/bin/drover] [--ir | --cuda]
  --ir: lines and KB of the IR after differentiation, over layers
  --cuda: the kernels of a GPU instead: to PTX, to cubins with an empty cache, with a full one, and to an object; MB are of the compiler
          and of the ptxas that it runs, together, at the worst of the moments looked at
"""
import argparse
import json
import os
import re
import subprocess
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LLAMA3 = {"tp": 8, "cp": 1, "pp": 16, "dp": 128, "chunks": 8, "seq-len": 8192, "layers": 126, "microbatches": 16}
# The two layouts of Llama 3's report (arXiv 2407.21783, table 4), then one thing at a time.
ROWS = [
    dict(LLAMA3), dict(LLAMA3, **{"cp": 16, "dp": 8, "seq-len": 131072}),
    *(dict(LLAMA3, dp=dp) for dp in (1, 4, 16, 64)), dict(LLAMA3, cp=4),
    *(dict(LLAMA3, layers=layers) for layers in (14, 30, 62, 254)),
    *(dict(LLAMA3, microbatches=m) for m in (4, 64, 256)),
    dict(LLAMA3, tp=1, pp=1, dp=1, chunks=1, microbatches=1),
]


def measure(command, **more):
    """Wall seconds, peak resident MB and standard output of a command."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"status {status} of {' '.join(command)}")
    return time.perf_counter() - begin, usage.ru_maxrss / 1024, text


def resident(pid):
    """Resident bytes of a process and of all below it, now."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            total = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                total += sum(resident(child) for child in file.read().split())
        return total
    except OSError:  # it has ended
        return 0


def measure_tree(command, **more):
    """Wall seconds, and peak resident MB of a command with what it starts."""
    begin, peak = time.perf_counter(), 0
    process = subprocess.Popen(command, **more)
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"status {process.returncode} of {' '.join(command)}")
    return time.perf_counter() - begin, peak / 2**20


def options(row):
    """Plan options; layers are spread as the report does, none in the first and the last chunk, where there are so many chunks."""
    chunks = row["pp"] * row["chunks"]
    result = [f"--{name}={row[name]}" for name in ("tp", "cp", "pp", "dp", "chunks", "seq-len")]
    result += [f"--global-batch={row['microbatches'] * row['dp']}", "--compute-dtype=bf16", "--task=train"]
    if row["layers"] == chunks - 2:
        result.append(f"--layers-per-chunk=0,1*{chunks - 2},0")
    return result


def write_config(folder, layers):
    with open(os.path.join(TOP, "models/llama-3.1-405b.json")) as file:
        config = json.load(file)
    config["num_hidden_layers"] = layers
    path = os.path.join(folder, "config.json")
    with open(path, "w") as file:
        json.dump(config, file)
    return path


def print_ir(drover, folder):
    print("| layers | IR lines | IR KB |\n| --- | --- | --- |")
    for layers in (4, 32, 126):
        out = os.path.join(folder, "ir.mlir")
        measure([drover, "compile", write_config(folder, layers), "--task=train", "--seq-len=8192", "--compute-dtype=bf16",
                 "--stop-after=differentiate", "--emit=mlir", "-o", out])
        with open(out) as file:
            print(f"| {layers} | {sum(1 for _ in file)} | {os.path.getsize(out) / 1024:.0f} |")


def print_cuda(drover, folder):
    print("| ranks | TP CP PP DP | S | bodies | kernels | PTX s | MB | cubins s | MB | ptxas s | again s | object s | object KB |\n" + "|" + " --- |" * 13)
    for number, row in enumerate(ROWS[:2]):
        config = write_config(folder, row["layers"])
        out = [os.path.join(folder, f"{name}{number}") for name in ("ptx", "cubin", "again", "object.o")]
        cache = dict(os.environ, DROVER_KERNEL_CACHE=os.path.join(folder, f"cache{number}"))
        command = [drover, "compile", config, *options(row), "--target=cuda"]
        ptx_seconds, ptx_memory = measure_tree([*command, "--emit=ptx", "-o", out[0]], env=cache)
        seconds, memory = measure_tree([*command, "--emit=cubin", "-o", out[1]], env=cache)
        again, _ = measure_tree([*command, "--emit=cubin", "-o", out[2]], env=cache)
        object_seconds, _ = measure_tree([*command, "--emit=obj", "-o", out[3]], env=cache)
        _, _, text = measure([drover, "check", config, *options(row)])
        bodies = re.search(r"(\d+) bodies", text).group(1)
        ranks = row["tp"] * row["cp"] * row["pp"] * row["dp"]
        print(f"| {ranks} | {row['tp']} {row['cp']} {row['pp']} {row['dp']} | {row['seq-len']} | {bodies} | {len(os.listdir(out[1]))} | {ptx_seconds:.2f} |"
              f" {ptx_memory:.0f} | {seconds:.2f} | {memory:.0f} | {seconds - again:.2f} | {again:.2f} | {object_seconds:.2f} | {os.path.getsize(out[3]) / 1024:.0f} |",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drover", default=os.path.join(TOP, "build/bin/drover"))
    parser.add_argument("--ir", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    arguments = parser.parse_args()
    drover = os.path.abspath(arguments.drover)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.ir:
            return print_ir(drover, folder)
        if arguments.cuda:
            return print_cuda(drover, folder)
        print("| ranks | TP CP PP DP | V | layers | S | M | compile s | MB | check s | MB | actions | executable KB | plan all ranks s | largest plan KB |\n"
              "|" + " --- |" * 14)
        for row in ROWS:
            config, exe = write_config(folder, row["layers"]), os.path.join(folder, "train")
            seconds, memory, _ = measure([drover, "compile", config, *options(row), "-o", exe])
            check_seconds, check_memory, text = measure([drover, "check", config, *options(row)])
            if "proof: ok" not in text:
                raise SystemExit(text)
            actions = re.search(r"(\d+) actions", text).group(1)
            ranks = row["tp"] * row["cp"] * row["pp"] * row["dp"]
            _, _, plans = measure([exe, "--describe-ranks"])
            planned = re.search(r"planned in ([\d.]+) s.*at most ([\d.]+ \S+) a plan", plans)
            print(f"| {ranks} | {row['tp']} {row['cp']} {row['pp']} {row['dp']} | {row['chunks']} | {row['layers']} | {row['seq-len']} | {row['microbatches']} |"
                  f" {seconds:.2f} | {memory:.0f} | {check_seconds:.2f} | {check_memory:.0f} | {actions} | {os.path.getsize(exe) / 1024:.0f} |"
                  f" {planned.group(1)} | {planned.group(2)} |", flush=True)


if __name__ == "__main__":
    main()
