#!/usr/bin/env python3
"""Mutates the collectives of lowered bodies, one at a time: each start and each wait left out, there twice, moved behind the next collective
call, a start aimed at another communicator or slot, a wait at another slot. On all ranks: `rt-verify-collectives`, which check and compile
run, reports the mutant, or it is compiled, run under early and late timing, and gives the same losses and weights. On one rank (with
--mpi): the mutant is compiled and runs as the last of the ranks under mpirun: it is reported when ranks compare their executables. Without
that comparison the run ends with an error that names an operation or a body, or shows other values, or the same.

usage: mutate_collectives.py --drover PATH --drover-opt PATH [--layouts I,..] [--mpi]
Prints the tables of docs/proof.md; exit status 1, and lines to stderr, where a mutant is neither reported nor equal.
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from running import Failed, run

LAYOUTS = [["--tp=2", "--cp=2"], ["--tp=4", "--compute-dtype=bf16"], ["--tp=2", "--cp=2", "--recompute=full", "--compute-dtype=bf16"],
           ["--tp=4", "--cp=2", "--recompute=selective"], ["--tp=4", "--tp-overlap=ring"],
           ["--tp=2", "--cp=2", "--tp-overlap=ring", "--recompute=full", "--compute-dtype=bf16"], ["--tp=4", "--cp=2", "--schedule=zb-h1"]]
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 256, "hidden_size": 64, "intermediate_size": 96,
          "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-6,
          "rope_theta": 1e4, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": False}
COMMUNICATOR = re.compile(r"(?:all_gather|reduce_scatter|all_reduce|shift)(?: op \w+)? (\w+) slot")
Mutant = collections.namedtuple("Mutant", "body mutation target index lines")  # index: which collective call of the body


def read_bodies(text):
    """By name: (lines of its kernels, its lines)."""
    functions = {}
    current = None
    for line in text.splitlines():
        found = re.match(r"  func\.func private @(\w+)\(", line)
        if found and line.endswith("{"):
            current = functions.setdefault(found.group(1), [])
        if current is not None:
            current.append(line)
        if line == "  }":
            current = None
    bodies = {}
    for name, lines in functions.items():
        if "rt.body" in lines[0]:
            kernels = sorted({kernel for line in lines for kernel in re.findall(r"rt\.launch %\w+ @(\w+)", line)})
            bodies[name] = [line for kernel in kernels for line in functions[kernel]], lines
    return bodies


def mutants_of(name, lines, communicators):
    calls = [i for i, line in enumerate(lines) if "rt.collective_" in line]
    for index, place in enumerate(calls):
        line = lines[place]
        is_start = "rt.collective_start" in line
        target = "start of a shift" if is_start and " shift " in line else "start" if is_start else "wait"
        def mutant(mutation, changed):
            return Mutant(name, mutation, target, index, changed)
        yield mutant("drop", lines[:place] + lines[place + 1:])
        yield mutant("double", lines[:place] + [line] + lines[place:])
        if index + 1 < len(calls):
            behind = calls[index + 1] + 1
            yield mutant("reorder", lines[:place] + lines[place + 1:behind] + [line] + lines[behind:])
        slot = int(re.search(r"slot (\d+)", line).group(1))
        yield mutant("retarget slot", lines[:place] + [line.replace(f"slot {slot}", f"slot {(slot + 1) % 16}", 1)] + lines[place + 1:])
        own = COMMUNICATOR.search(line)
        for other in communicators - {own.group(1)} if own else ():
            yield mutant("retarget communicator", lines[:place] + [line.replace(f" {own.group(1)} slot", f" {other} slot", 1)] + lines[place + 1:])


def reported(drover_opt, folder, bodies, mutants):
    """For each mutant whether the pass reports it: all of them in one file, each error's line tells which."""
    chunks, starts, line = [], [], 1
    for mutant in mutants:
        chunk = bodies[mutant.body][0] + mutant.lines
        starts.append(line)
        chunks.append("\n".join(chunk))
        line += len(chunk) + 1
    path = os.path.join(folder, "mutants.mlir")
    with open(path, "w") as file:
        file.write("\n// -----\n".join(chunks) + "\n")
    done = subprocess.run([drover_opt, path, "--split-input-file", "--rt-verify-collectives", "-o", os.devnull], capture_output=True, text=True, timeout=500)
    lines = {int(found) for found in re.findall(r"mutants\.mlir:(\d+):\d+: error: ", done.stderr)}
    ends = starts[1:] + [line]
    result = [any(begin <= error < end for error in lines) for begin, end in zip(starts, ends)]
    if done.returncode == 0 and any(result) or done.returncode and not lines:
        raise Failed(done.stderr[-2000:])
    return result


def mutate_llvm(text, mutant):
    """The same change of the calls of the runtime in LLVM IR, whose order is that of the lowered body."""
    lines = text.splitlines()
    begin = next(i for i, line in enumerate(lines) if re.match(rf"define .*@{mutant.body}\(", line))
    end = next(i for i in range(begin, len(lines)) if lines[i] == "}")
    calls = [i for i in range(begin, end) if "call void @drover_rt_collective_" in lines[i]]
    place = calls[mutant.index]
    line = lines[place]
    if mutant.mutation == "drop":
        del lines[place]
    elif mutant.mutation == "double":
        lines.insert(place, line)
    elif mutant.mutation == "reorder":
        lines.insert(calls[mutant.index + 1] + 1, line)
        del lines[place]
    else:
        return None
    return "\n".join(lines) + "\n"


class Runs:
    """Compiles LLVM IR with the runtime, trains two steps, and compares."""

    def __init__(self, drover, folder, ranks):
        self.folder, self.ranks = folder, ranks
        self.runtime = os.path.join(os.path.dirname(os.path.dirname(drover)), "lib/libdrover_rt.a")
        self.compiler = shutil.which("clang++-22") or "clang++"

    def link(self, text, name):
        with open(os.path.join(self.folder, name + ".ll"), "w") as file:
            file.write(text)
        run([self.compiler, "-O1", "-Wno-override-module", name + ".ll", self.runtime, "-lpthread", "-ldl", "-o", name], self.folder, 120)

    def options(self):
        return ["--data=text", "--init=random", "--steps=2", "--threads=1", "--log=log.jsonl", "--save-weights=w.safetensors",
                "--deadline-first-step=4", "--deadline=4"]

    def result(self):
        with open(os.path.join(self.folder, "log.jsonl")) as file:
            rows = [json.loads(line) for line in file]
        with open(os.path.join(self.folder, "w.safetensors"), "rb") as file:
            return [(row["loss"], row["grad_norm"]) for row in rows if "loss" in row], rows[-1]["peak_bytes"], file.read()

    def threads(self, name, timing="normal"):
        run(["env", f"DROVER_RT_TIMING={timing}", f"./{name}", *self.options()], self.folder, 60)
        return self.result()

    def processes(self, mutant, base, may_differ):
        """The mutant as the last rank: (error or "", result)."""
        command = ["env", f"DROVER_RT_ANY_EXECUTABLE={may_differ}", "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(self.ranks - 1), f"./{base}", *self.options(), ":",
                   "-n", "1", f"./{mutant}", *self.options()]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60)
        return (done.stderr + done.stdout, None) if done.returncode else ("", self.result())


def mutate(arguments, layout, table, on_one):
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(CONFIG, file)
        with open(os.path.join(folder, "text"), "wb") as file:
            file.write(bytes(i * i % 251 for i in range(4000)))
        options = ["config.json", "--task=train", "--seq-len=32", "--global-batch=2", *layout]
        run([arguments.drover, "compile", *options, "--stop-after=partition", "--emit=mlir", "-o", "bodies.mlir"], folder)
        run([arguments.drover_opt, "bodies.mlir", "--tfm-erase-distributions", f"--convert-tfm-to-rt=tp-overlap={'bulk' if '--tp-overlap=ring' in layout else 'none'}", "-o", "lowered.mlir"], folder)
        run([arguments.drover, "compile", *options, "--emit=llvm", "-o", "program.ll"], folder)
        with open(os.path.join(folder, "lowered.mlir")) as file:
            bodies = read_bodies(file.read())
        with open(os.path.join(folder, "program.ll")) as file:
            program = file.read()
        text = " ".join(line for _, lines in bodies.values() for line in lines)
        communicators = set(COMMUNICATOR.findall(text))
        mutants = [mutant for name, (_, lines) in bodies.items() for mutant in mutants_of(name, lines, communicators)]
        ranks = 1
        for option in layout:
            if re.match(r"--(tp|cp)=", option):
                ranks *= int(option.split("=")[1])
        runs = Runs(arguments.drover, folder, ranks)
        runs.link(program, "base")
        expected = runs.threads("base")
        seen = collections.Counter()
        for mutant, is_reported in zip(mutants, reported(arguments.drover_opt, folder, bodies, mutants)):
            key = mutant.mutation, mutant.target
            where = f"{' '.join(layout)}: {mutant.mutation} {mutant.target} {mutant.index} of {mutant.body}"
            table[key]["mutants"] += 1
            table[key]["reported"] += is_reported
            changed = mutate_llvm(program, mutant)
            seen[key] += 1
            wants_one = arguments.mpi and changed and seen[key] % 5 == 1
            if not is_reported or wants_one:
                if changed is None:
                    faults.append(where + " is not reported")
                    continue
                runs.link(changed, "mutant")
            if not is_reported:
                equal = all(runs.threads("mutant", timing) == expected for timing in ("early", "late"))
                table[key]["equal"] += equal
                if not equal:
                    faults.append(where + " is not reported, and gives other values")
            if wants_one:
                on_one[key]["mutants"] += 1
                error, _ = runs.processes("mutant", "base", 0)
                is_named = "expected one executable on all ranks" in error
                on_one[key]["reported"] += is_named
                if not is_named:
                    faults.append(f"{where} on one rank is not reported at start: {error[-500:]}")
                error, result = runs.processes("mutant", "base", 1)
                named = re.search(r"communicator|collective|parameter '", error)
                on_one[key]["named" if named else "equal" if result == expected else "differ"] += 1
                if error and not named:
                    faults.append(f"{where} on one rank: {error[-500:]}")
    return faults


def write(file, title, columns, table):
    file.write(f"{title}\n\n| mutation | of | " + " | ".join(columns.values()) + " |\n" + "| --- " * (len(columns) + 2) + "|\n")
    total = collections.Counter()
    for (mutation, target), counts in sorted(table.items()):
        file.write(f"| {mutation} | {target} | " + " | ".join(str(counts[name]) for name in columns) + " |\n")
        total += counts
    file.write("| all | | " + " | ".join(str(total[name]) for name in columns) + " |\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drover", required=True)
    parser.add_argument("--drover-opt", required=True)
    parser.add_argument("--layouts", default=",".join(map(str, range(len(LAYOUTS)))), help="numbers of layouts (all)")
    parser.add_argument("--mpi", action="store_true", help="on one rank too: every fifth mutant")
    arguments = parser.parse_args()
    arguments.drover, arguments.drover_opt = os.path.abspath(arguments.drover), os.path.abspath(arguments.drover_opt)
    table, on_one = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    faults = [fault for number in arguments.layouts.split(",") for fault in mutate(arguments, LAYOUTS[int(number)], table, on_one)]
    parts = [("On all ranks:", {"mutants": "mutants", "reported": "reported", "equal": "executed and equal"}, table)]
    if arguments.mpi:
        parts.append(("\nOn one rank, a process:", {"mutants": "mutants", "reported": "reported at start", "named": "without that: error that names the operation", "equal": "equal", "differ": "other values"}, on_one))
    for part in parts:
        write(sys.stdout, *part)
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
