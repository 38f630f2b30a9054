#!/usr/bin/env python3
"""Compiles layouts of one model for the host, measures the steps of each with all ranks in one process, and compares them with what
`drover plan` says on the cluster file that `drover calibrate` makes of this machine.

usage: closed_loop [--cluster=FILE.yaml] [--rounds=N] [--steps=N] [--report=docs/closed-loop.md] [--drover=build/bin/drover]

Without --cluster the machine is calibrated first. Layouts take turns, round by round, so that what else the machine does meets all of
them; of each the fastest step counts, without the first of a run. Steps are compared twice: by the clock, which means something on a
machine that does nothing else; and by the processor time of all ranks, which other load disturbs little, against the projected step on
one core, where all work stands in a row. Prints a table, the median and the largest error, and Spearman's rank correlation of both;
--report puts all of it between the marks of the page. Every run has a deadline.
"""
import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "python"))
from drover.pages import put_between_marks  # noqa: E402

MODEL = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 2048, "hidden_size": 256, "intermediate_size": 704,
         "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 512, "rms_norm_eps": 1e-6,
         "rope_theta": 1e4, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": False}
SEQUENCE, BATCH = 128, 8
LAYOUTS = [
    "--dp=1",
    "--dp=1 --microbatch=4",
    "--dp=1 --recompute=full",
    "--dp=1 --compute-dtype=bf16",
    "--tp=2",
    "--cp=2",
    "--pp=2",
    "--pp=2 --chunks=2",
    "--pp=2 --microbatch=4",
    "--pp=2 --schedule=zb-h1",
    "--dp=2",
    "--dp=2 --zero=3 --chunks=4",
    "--tp=4",
    "--pp=4",
    "--pp=4 --microbatch=2",
    "--dp=4",
    "--tp=2 --pp=2",
    "--tp=2 --dp=2",
    "--cp=2 --dp=2 --recompute=full",
    "--tp=2 --cp=2 --pp=2",
]


def call(command, deadline, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=deadline, **more)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def projected(drover, folder, cluster, layout):
    """Seconds of the layout, given in full."""
    fixed = {"--tp": 1, "--cp": 1, "--pp": 1, "--dp": 1, "--chunks": 1, "--microbatch": 1, "--zero": 2, "--recompute": "none",
             "--compute-dtype": "f32", "--tp-overlap": "none"}
    fixed |= dict(option.split("=") for option in layout.split())
    fixed.setdefault("--run", fixed["--pp"])
    fixed.setdefault("--schedule", "interleaved" if int(fixed["--chunks"]) > 1 else "1f1b")
    ranks = 1
    for axis in ("--tp", "--cp", "--pp", "--dp"):
        ranks *= int(fixed[axis])
    chunks = int(fixed["--chunks"]) * int(fixed["--pp"])
    layers = MODEL["num_hidden_layers"] // chunks
    fixed["--layers-per-chunk"] = f"{layers}*{chunks}"
    options = [f"{name}={value}" for name, value in fixed.items()]
    plans = json.loads(call([drover, "plan", "config.json", f"--cluster={cluster}", f"--gpus={ranks}", f"--global-batch={BATCH}",
                             f"--seq-len={SEQUENCE}", "--order=tp,cp,pp,dp", "--json", *options], 300, cwd=folder))["plans"]
    assert len(plans) == 1, (layout, len(plans))
    return ranks, plans[0]["step_time_s"], plans[0]["breakdown_s"]


def measured(folder, program, steps, deadline):
    """Seconds of the fastest step by the clock, and processor seconds of a step: those of a run less those of one that only starts."""
    processor = []
    for count in (1, 1 + steps):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        call([f"./{program}", "--data=text", "--init=random", f"--steps={count}", f"--log={program}.jsonl"], deadline, cwd=folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    with open(os.path.join(folder, program + ".jsonl")) as file:
        rows = [row for row in map(json.loads, file) if "loss" in row]
    return min(row["step_time_s"] for row in rows[1:]), (processor[1] - processor[0]) / steps


def ranks_of(values):
    """Places in ascending order; those of equal values are their mean."""
    places = [0.0] * len(values)
    order = sorted(range(len(values)), key=values.__getitem__)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for i in order[start:end]:
            places[i] = (start + end - 1) / 2
        start = end
    return places


def spearman(a, b):
    x, y = ranks_of(a), ranks_of(b)
    mean = (len(x) - 1) / 2
    covariance = sum((p - mean) * (q - mean) for p, q in zip(x, y))
    return covariance / (sum((p - mean) ** 2 for p in x) * sum((q - mean) ** 2 for q in y)) ** 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cluster", help="a file of drover calibrate, in place of a new one")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=20, help="of each run")
    parser.add_argument("--deadline", type=float, default=300, help="seconds of each run")
    parser.add_argument("--only", help="layouts, by commas, in place of all")
    parser.add_argument("--drover", default=os.path.join(TOP, "build/bin/drover"))
    parser.add_argument("--report", help="page whose table is written")
    options = parser.parse_args()
    drover, lines = os.path.abspath(options.drover), []
    loads = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(MODEL, file)
        with open(os.path.join(folder, "text"), "wb") as file:
            file.write(bytes(i * i % 251 for i in range(50000)))
        cluster = os.path.abspath(options.cluster) if options.cluster else os.path.join(folder, "host.yaml")
        if not options.cluster:
            call([drover, "calibrate", "-o", cluster], 1800)
        layouts = options.only.split(",") if options.only else LAYOUTS
        for i, layout in enumerate(layouts):
            call([drover, "compile", "config.json", "--task=train", f"--seq-len={SEQUENCE}", f"--global-batch={BATCH}", *layout.split(),
                  "-o", f"train{i}"], 600, cwd=folder)
        clock, processor = [float("inf")] * len(layouts), [float("inf")] * len(layouts)
        for _ in range(options.rounds):
            for i in range(len(layouts)):
                seconds, work = measured(folder, f"train{i}", options.steps, options.deadline)
                clock[i], processor[i] = min(clock[i], seconds), min(processor[i], work)
            loads.append(os.getloadavg()[0])
        with open(cluster) as file:
            text = file.read()
        single = os.path.join(folder, "one-core.yaml")
        with open(single, "w") as file:
            file.write(re.sub(r"shared_cores: \d+", "shared_cores: 1", text))
        said = [projected(drover, folder, cluster, layout) for layout in layouts]
        works = [projected(drover, folder, single, layout)[1] for layout in layouts]
    lines += ["| layout | ranks | step ms | projected ms | error | of which sharing cores | processor ms | projected ms | error |",
              "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    errors = [[expected / seconds - 1 for seconds, (_, expected, _) in zip(clock, said)], [b / a - 1 for a, b in zip(processor, works)]]
    for i, (layout, (ranks, expected, parts)) in enumerate(zip(layouts, said)):
        lines.append(f"| `{layout}` | {ranks} | {1e3 * clock[i]:.1f} | {1e3 * expected:.1f} | {100 * errors[0][i]:+.1f} % | {1e3 * parts['core_sharing']:.1f} | "
                     f"{1e3 * processor[i]:.1f} | {1e3 * works[i]:.1f} | {100 * errors[1][i]:+.1f} % |")
    lines.append("")
    for what, error, correlation in (("Steps by the clock", errors[0], spearman(clock, [expected for _, expected, _ in said])),
                                     ("Processor time", errors[1], spearman(processor, works))):
        size = sorted(map(abs, error))
        lines.append(f"{what}, {len(layouts)} layouts: median error {100 * size[len(size) // 2]:.1f} %, largest {100 * size[-1]:.1f} %, Spearman's rank "
                     f"correlation {correlation:.3f}.")
    lines.append(f"Load average of the machine ({os.cpu_count()} cores) between {min(loads):.1f} and {max(loads):.1f}.")
    text = "\n".join(lines)
    print(text)
    if options.report:
        put_between_marks(options.report, "closed_loop.py", text)


if __name__ == "__main__":
    main()
