#!/usr/bin/env python3
"""Removes the waits of a step program one at a time, in the executable, and runs it over the stand-ins of a GPU: each must be reported as
a race, whenever work is done, and without a change nothing may be.

usage: drop_waits.py --drover PATH --emulated SCRIPT [--seeds 0,3] [--graphs] [compile options ..]
A wait is an index into its stage's actions; it is replaced by that of the first action, which the host has waited for itself.
With --graphs the run is of two steps, and what counts are races in the graphs of the second one; waits across the ends of graphs, which
are races in the first step alone, are counted.
Prints how many there are; exit status 1 where one is not reported.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from running import run

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 24,
          "num_hidden_layers": 4, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 16, "rms_norm_eps": 1e-6,
          "rope_theta": 1e4, "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": True}


def metadata_of(executable):
    """(offset, bytes) of the program's JSON."""
    key = executable.index(b'"communicators"')
    begin = executable.rindex(b"\0", 0, key) + 1
    return begin, executable[begin:executable.index(b"\0", key)]


def places_of_waits(executable):
    """Of each number in a list of waits: (offset, length)."""
    begin, text = metadata_of(executable)
    count = sum(len(stage["waits"]) for batch in json.loads(text)["batches"] for stage in batch["stages"])
    places = [(begin + found.start(1) + number.start(), len(number.group()))
              for found in re.finditer(rb'"waits":\s*\[([^\]]*)\]', text) for number in re.finditer(rb"\d+", found.group(1))]
    if len(places) != count:
        sys.exit(f"{len(places)} waits found, the program has {count}")
    return places


def races(script, executable, folder, seed, graphs):
    """(status, lines that report a race, those of them that count, all that was printed)."""
    steps = ["--steps=2", "--cuda-graphs", "--on-nonfinite=skip"] if graphs else ["--steps=1"]
    done = subprocess.run(["env", f"DROVER_EMU_SEED={seed}", "DROVER_EMU_CHECKS=races", os.path.abspath(script), executable, "--data=text",
                           "--init=random", "--deadline=60", *steps], cwd=folder, capture_output=True, text=True, timeout=300)
    lines = [line for line in done.stderr.splitlines() if line.startswith("drover-emu: ") and " race: " in line]
    return done.returncode, lines, [line for line in lines if not graphs or ", in a graph" in line], done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drover", default="drover")
    parser.add_argument("--emulated", required=True)
    parser.add_argument("--seeds", default="0,3")
    parser.add_argument("--graphs", action="store_true")
    arguments, options = parser.parse_known_args()
    seeds = arguments.seeds.split(",")
    folder = tempfile.mkdtemp()
    faults = []
    try:
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(CONFIG, file)
        with open(os.path.join(folder, "text"), "wb") as file:
            file.write(bytes(i * 7 % 32 for i in range(600)))
        run([arguments.drover, "compile", "config.json", "--task=train", "--target=cuda", "--seq-len=8", *options, "-o", "train"], folder)
        path = os.path.join(folder, "train")
        with open(path, "rb") as file:
            executable = file.read()
        for seed in seeds:
            status, _, _, text = races(arguments.emulated, "./train", folder, seed, arguments.graphs)
            if status or "drover-emu: " in text:
                sys.exit(f"seed {seed}, nothing removed: status {status}\n{text[-2000:]}")
        places, implied = places_of_waits(executable), set()
        for number, (offset, length) in enumerate(places):
            with open(path, "wb") as file:
                file.write(executable[:offset] + b"0".rjust(length) + executable[offset + length:])
            for seed in seeds:
                _, found, counted, _ = races(arguments.emulated, "./train", folder, seed, arguments.graphs)
                if found and not counted:
                    implied.add(number)
                elif not counted:
                    faults.append(f"wait {number}, for action {executable[offset:offset + length].decode()}: no race with seed {seed}")
    finally:
        shutil.rmtree(folder)
    print(f"{len(places)} waits, each with {len(seeds)} seeds" + (f", {len(implied)} across the ends of graphs" if arguments.graphs else "") + "".join("\n  " + fault for fault in faults))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
