#!/usr/bin/env python3
"""Lists where two files of --dump (or of weights or gradients) part.

compare_dumps.py A B [--tolerance=1e-5] [--all]

Tensors are compared in the order in which a step makes them: forward by layer, backward by layer, gradients, parameters;
the first that differs is where to look. Prints a line for each tensor that differs by more than the tolerance (relative,
in the norm), or for all. Exit status 1 where one does, or a name is in one file only.
"""
import argparse
import re
import sys

import numpy as np

from drover.tensors import read_safetensors

PHASES = ("forward", "backward", "weight_gradient", "gradient", "parameter")


def place(name):
    """Sorts names as a step makes them; a backward goes through the layers from the last."""
    phase = name.split(".", 1)[0]
    layer = re.search(r"\.layer\.(\d+)\.", name)
    number = int(layer.group(1)) if layer else (-1 if "embed" in name else 1 << 30)
    rank = PHASES.index(phase) if phase in PHASES else len(PHASES)
    return rank, -number if phase == "backward" else number, [int(x) if x.isdigit() else x for x in re.split(r"(\d+)", name)]


def difference(a, b):
    """The norm of the difference over the norm of b, and the index of the largest difference."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        gap = np.where(equal, 0.0, np.abs(a - b))
    gap = np.where(np.isnan(gap), np.inf, gap)
    if not gap.size:
        return 0.0, ()
    scale = float(np.linalg.norm(b[np.isfinite(b)])) or 1.0
    return float(np.linalg.norm(gap)) / scale, tuple(int(i) for i in np.unravel_index(int(np.argmax(gap)), gap.shape))


def main():
    parser = argparse.ArgumentParser(description="Lists where two dumps part.")
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("--tolerance", type=float, default=1e-5, help="relative, in the norm of a tensor (default 1e-5)")
    parser.add_argument("--all", action="store_true", help="print the tensors that agree too")
    options = parser.parse_args()
    a, b = read_safetensors(options.a), read_safetensors(options.b)
    faults = 0
    for name in sorted(set(a) | set(b), key=place):
        if name not in a or name not in b:
            print(f"only in {options.a if name in a else options.b}: {name}")
            faults += 1
        elif a[name].shape != b[name].shape:
            print(f"shapes {list(a[name].shape)} and {list(b[name].shape)}: {name}")
            faults += 1
        else:
            apart, index = difference(a[name], b[name])
            bad = not apart <= options.tolerance
            faults += bad
            if bad or options.all:
                values = f", {a[name][index]:.9g} and {b[name][index]:.9g} at {list(index)}" if apart else ""
                print(f"{'differs' if bad else 'agrees '} by {apart:.3e}{values}: {name}")
    print(f"{len(set(a) & set(b))} tensors in both, {faults} differ")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
