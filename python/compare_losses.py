#!/usr/bin/env python3
"""Prints the losses of training runs side by side.

compare_losses.py LOG.jsonl LOG.jsonl.. [--every=N]

Exit status 1 where a loss of any run deviates by more than 1e-5 of the first run's, or runs have other steps.
"""
import argparse
import json
import os
import sys

from drover.tensors import deviation


def losses_of(path):
    with open(path) as file:
        rows = [json.loads(line) for line in file]
    return {row["step"]: row["loss"] for row in rows if "loss" in row}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+", metavar="LOG.jsonl")
    parser.add_argument("--every", type=int, default=1, help="only every N-th step, the first and the last")
    arguments = parser.parse_args()
    runs = [losses_of(path) for path in arguments.logs]
    names = [os.path.splitext(os.path.basename(path))[0] for path in arguments.logs]
    if any(run.keys() != runs[0].keys() for run in runs):
        sys.exit("the runs have other steps: " + ", ".join(f"{name} {len(run)}" for name, run in zip(names, runs)))
    print("step" + "".join(f"{name:>10}" for name in names))
    for number, step in enumerate(runs[0]):
        if step % arguments.every == 0 or number in (0, len(runs[0]) - 1):
            print(f"{step:4}" + "".join(f"{run[step]:10.4f}" for run in runs))
    worst = max(deviation(run[step], runs[0][step]) for run in runs for step in runs[0])
    if not worst <= 1e-5:
        sys.exit(f"losses deviate by {worst:.2g}")
    print(f"all {len(runs[0])} losses agree within 1e-5")


main()
