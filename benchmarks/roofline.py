#!/usr/bin/env python3
"""A training step on paper: what the kernels, products and collectives of one layer would take if each ran at the device's peak or
at its memory's or network's bandwidth, off the compiled program; and beside it how `drover plan` expects the step to go. Prints
Markdown, or puts it into the marks of a page.

usage: roofline [--build build] [--report docs/roofline.md] [--model MODEL.json] [--cluster CLUSTER.yaml] [--layout "tp=8 pp=16 .."]..
"""
import argparse
import collections
import json
import os
import re
import subprocess
import tempfile

from gpu_program import TOP, Collective, Launch, Matmul, Program
from drover.pages import put_between_marks

# The two layouts of Llama 3's report (arXiv 2407.21783, table 4).
LLAMA3 = "tp=8 cp=1 pp=16 dp=128 chunks=8 layers-per-chunk=0,1*126,0 seq-len=8192 global-batch=2048 tp-overlap=bulk"
LAYOUTS = [LLAMA3, LLAMA3.replace("cp=1", "cp=16").replace("dp=128", "dp=8").replace("=8192", "=131072").replace("=2048", "=128")]
UNITS = {"T": 1e12, "G": 1e9}
# Products of queries, keys and values that each kernel makes, of the forward's two (lib/Conversion/TfmToRt/GpuAttentionGrad.cpp).
PRODUCTS = {"attention": 2, "attention_query_grad": 3, "attention_key_grad": 4}


def quantity(text, pattern):
    value, unit = re.search(pattern + r": ([\d.]+) ([TG])", text, re.M | re.S).groups()
    return float(value) * UNITS[unit]


class Device:
    """Peak FLOP/s in bf16, bytes/s of memory, and bytes/s of the innermost network level, as a cluster file has them."""

    def __init__(self, path):
        with open(path) as file:
            text = file.read()
        device = re.search(r"^device:\s+(\S+)", text, re.M).group(1)
        with open(os.path.join(os.path.dirname(path), device)) as file:
            about = file.read()
        self.name = re.search(r"^name: (.*)", about, re.M).group(1)
        self.peak = quantity(about, r"^peak:.*?\bbf16")
        self.memory = quantity(about, r"^  bandwidth")
        self.network = quantity(text, r"\bbandwidth")


class Row:
    """One thing that a layer does."""

    def __init__(self, part, what, bytes_, flops, seconds, bound):
        self.part, self.what, self.bytes, self.flops, self.seconds, self.bound = part, what, bytes_, flops, seconds, bound


def roofline(device, bytes_, flops):
    by_memory, by_peak = bytes_ / device.memory, flops / device.peak
    return max(by_memory, by_peak), "memory" if by_memory > by_peak else "peak"


def rows_of(device, program, body):
    products = [step for step in body.steps if isinstance(step, Matmul)]
    # What a body counts beside its products is attention, the forward's two products and twice as many backward.
    attention = body.flops - sum(step.flops() for step in products)
    per_product = attention / (2 if body.kind == "forward" else 4)
    for step in body.steps:
        if isinstance(step, Matmul):
            seconds, bound = roofline(device, step.bytes(), step.flops())
            what = f"{step.m} x {step.n} x {step.k} {step.types[0]} into {step.types[2]}{'' if step.store == 'overwrite' else ', adds'}"
            yield Row("matmul", what, step.bytes(), step.flops(), seconds, bound)
        elif isinstance(step, Launch):
            name = step.kernel.rsplit("_", 1)[0]
            flops = per_product * PRODUCTS.get(name, 0)
            bytes_ = sum(size for size in step.sizes if not isinstance(size, tuple))
            seconds, bound = roofline(device, bytes_, flops)
            yield Row("attention" if name in PRODUCTS else "memory-bound", name, bytes_, flops, seconds, bound)
        elif isinstance(step, Collective):
            yield Row(f"{step.communicator} collectives", f"{step.kind} over {step.ranks} ranks", step.sent(), 0, step.sent() / device.network, "network")


def plan_of(build, model, cluster, layout):
    options = [f"--{option}" for option in layout.split()]
    gpus = 1
    for axis in ("tp", "cp", "pp", "dp"):
        gpus *= int(re.search(rf"\b{axis}=(\d+)", layout).group(1))
    fixed = ["--recompute=none", "--zero=2", "--microbatch=1", "--schedule=interleaved" if "chunks=" in layout else "--schedule=1f1b"]
    fixed += [f"--run={re.search(r'pp=([0-9]+)', layout).group(1)}"] + ([] if "tp-overlap" in layout else ["--tp-overlap=none"])
    fixed += [] if "chunks=" in layout else ["--chunks=1"]
    text = subprocess.run([os.path.join(build, "bin/drover"), "plan", model, f"--cluster={cluster}", f"--gpus={gpus}", *options, *fixed, "--json"],
                          check=True, text=True, stdout=subprocess.PIPE).stdout
    return gpus, json.loads(text)["plans"][0], fixed


def page_of(build, model, cluster, layout):
    device = Device(cluster)
    gpus, plan, fixed = plan_of(build, model, cluster, layout)
    compiled = [f"--{option}" for option in layout.split()] + [option for option in fixed if not option.startswith("--schedule")]
    with tempfile.TemporaryDirectory() as folder:
        program = Program(build, folder, model, compiled, 1 << 20)
    with open(model) as file:
        config = json.load(file)
    number = lambda name: int(re.search(rf"(?:^| ){name}=(\d+)", layout).group(1))
    microbatches = number("global-batch") // number("dp")
    # The stage with most work has the most layers.
    per_rank = -(-(config.get("num_hidden_layers") or config["n_layer"]) // number("pp"))
    lines = [f"## {layout}", "", f"{os.path.basename(model)} in bf16 on {gpus:,} of {device.name}: {device.peak / 1e12:.0f} TFLOP/s, {device.memory / 1e12:.2f} TB/s, and"
             f" {device.network / 1e9:.0f} GB/s a GPU and direction to its neighbours. One layer of one microbatch on one rank, in order:", ""]
    totals = collections.defaultdict(float)
    for name, body in program.bodies.items():
        if not name.startswith("layer"):
            continue
        rows = list(rows_of(device, program, body))
        lines += [f"| {name} | what | MiB | GFLOP | roofline us | bound by |", "|" + " --- |" * 6]
        for row in rows:
            totals[row.part] += row.seconds
            lines.append(f"| {row.part} | {row.what} | {row.bytes / 2**20:.1f} | {row.flops / 1e9:.2f} | {row.seconds * 1e6:.1f} | {row.bound} |")
        lines += [f"| all | | {sum(r.bytes for r in rows) / 2**20:.1f} | {sum(r.flops for r in rows) / 1e9:.2f} | {sum(r.seconds for r in rows) * 1e6:.1f} | |", ""]
    breakdown = collections.defaultdict(float, plan["breakdown_s"])
    step = plan["step_time_s"]
    shown = {"matmul": breakdown["matmul"] + breakdown["head"], "attention": breakdown["attention"], "memory-bound": breakdown["memory_bound"]}
    exposed = {key: value for key, value in breakdown.items() if key.endswith("_exposed")}
    rest = {key: value for key, value in breakdown.items() if key not in ("matmul", "head", "attention", "memory_bound") and key not in exposed}
    passes = per_rank * microbatches
    lines += [f"The step: {per_rank} layers a rank, {microbatches} microbatches. At the roofline the layers of a rank take what their parts take {passes} times;"
              f" `drover plan` expects of the stage with most work ({step:.3f} s, {plan['mfu'] * 100:.1f} % MFU):", "",
              "| part | layers at the roofline s | projected s | of the step % |", "| --- | --- | --- | --- |"]
    for part, seconds in shown.items():
        lines.append(f"| {part} | {totals[part] * passes:.3f} | {seconds:.3f} | {seconds / step * 100:.1f} |")
    for key, seconds in exposed.items():
        axis = key.split("_")[0]
        moved = totals[f"{axis} collectives"] * passes
        if seconds or moved:
            lines.append(f"| exposed {axis} communication | {f'{moved:.3f} if none is hidden' if moved else '-'} | {seconds:.3f} | {seconds / step * 100:.1f} |")
    for key, seconds in rest.items():
        if seconds:
            lines.append(f"| {key.replace('_', ' ')} | - | {seconds:.3f} | {seconds / step * 100:.1f} |")
    lines += [f"| all | | {step:.3f} | 100.0 |", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(TOP, "build"))
    parser.add_argument("--report")
    parser.add_argument("--model", default=os.path.join(TOP, "models/llama-3.1-405b.json"))
    parser.add_argument("--cluster", default=os.path.join(TOP, "clusters/llama3-24k.yaml"))
    parser.add_argument("--layout", action="append")
    arguments = parser.parse_args()
    text = "\n".join(page_of(os.path.abspath(arguments.build), arguments.model, arguments.cluster, layout) for layout in arguments.layout or LAYOUTS)
    if arguments.report:
        put_between_marks(arguments.report, "roofline.py", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
