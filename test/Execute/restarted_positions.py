"""Two documents of 16 tokens a sequence whose positions restart are two sequences of 16 tokens: trains both, the former under a
layout, and compares losses, gradients of every parameter and weights.

restarted_positions.py MODEL --drover=PATH LAYOUT OPTIONS..
"""
import argparse
import os
import random
import struct
import sys
import tempfile

from running import Failed, run, steps_of

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
from drover.tensors import compare, deviation, read_safetensors  # noqa: E402

SEPARATOR, LENGTH, VOCABULARY = 10, 16, 131


def write_tokens(path):
    rng = random.Random(1)
    tokens = [SEPARATOR if i % LENGTH == LENGTH - 1 else rng.randrange(SEPARATOR + 1, VOCABULARY) for i in range(40 * LENGTH + 1)]
    with open(path, "wb") as file:
        file.write(struct.pack(f"<{len(tokens)}H", *tokens))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--drover", required=True)
    options, layout = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as scratch:
        data = os.path.join(scratch, "tokens.u16")
        write_tokens(data)

        def train(name, compiled, trained):
            folder = os.path.join(scratch, name)
            os.mkdir(folder)
            run([options.drover, "compile", os.path.abspath(options.model), "--task=train", "--optimizer=sgd", *compiled, "-o", "train"], folder)
            run(["./train", "--data=" + data, "--steps=2", "--lr=1e-2", "--init=random", "--log=log.jsonl",
                 "--save-gradients=gradients.safetensors", "--save-weights=weights.safetensors", *trained], folder)
            return (steps_of(folder), read_safetensors(os.path.join(folder, "gradients.safetensors")),
                    read_safetensors(os.path.join(folder, "weights.safetensors")))

        apart = train("apart", [f"--seq-len={LENGTH}", "--global-batch=8"], [])
        joined = train("joined", [f"--seq-len={2 * LENGTH}", "--global-batch=4", "--mask=documents", *layout],
                       [f"--document-separator={SEPARATOR}", "--reset-positions"])
        for a, b in zip(apart[0], joined[0]):
            if deviation(b["loss"], a["loss"]) > 1e-5:
                raise Failed(f"step {a['step']}: loss {b['loss']} in place of {a['loss']}")
        for place, name in ((1, "gradient"), (2, "weight")):
            faults = compare(joined[place], apart[place], name)[1]
            if faults:
                raise Failed("\n".join(faults))
        print(f"{len(apart[1])} parameters agree")


if __name__ == "__main__":
    main()
