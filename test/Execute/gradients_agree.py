"""Trains two steps of a model from random weights on one rank and on a layout, and compares losses, gradients of every parameter and
weights.

gradients_agree.py MODEL --drover=PATH --data=FILE [--optimizer=adamw|sgd] LAYOUT OPTIONS..

AdamW makes a step of the rounding noise in a gradient that is zero in exact arithmetic, as that of a key's bias: sgd does not.
"""
import argparse
import os
import sys
import tempfile

from running import Failed, run, steps_of

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
from drover.tensors import compare, deviation, read_safetensors  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--drover", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--optimizer", default="adamw")
    options, layout = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as scratch:
        def train(name, layout):
            folder = os.path.join(scratch, name)
            os.mkdir(folder)
            run([options.drover, "compile", os.path.abspath(options.model), "--task=train", "--target=host", "--seq-len=32",
                 "--microbatch=1", "--global-batch=4", "--optimizer=" + options.optimizer, *layout, "-o", os.path.join(folder, "train")])
            run([os.path.join(folder, "train"), "--data=" + os.path.abspath(options.data), "--steps=2", "--lr=1e-2", "--init=random",
                 "--log=log.jsonl", "--save-gradients=gradients.safetensors", "--save-weights=weights.safetensors"], folder)
            return (steps_of(folder), read_safetensors(os.path.join(folder, "gradients.safetensors")),
                    read_safetensors(os.path.join(folder, "weights.safetensors")))

        one, many = train("one", []), train("many", layout)
        for a, b in zip(one[0], many[0]):
            for value in ("loss", "grad_norm"):
                if deviation(b[value], a[value]) > 1e-5:
                    raise Failed(f"step {a['step']}: {value} {b[value]} in place of {a[value]}")
        for place, name in ((1, "gradient"), (2, "weight")):
            faults = compare(many[place], one[place], name)[1]
            if faults:
                raise Failed("\n".join(faults))
        print(f"{len(one[1])} parameters agree")


if __name__ == "__main__":
    main()
