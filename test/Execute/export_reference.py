"""Holds exported models against what PyTorch recorded beside them: logits of the forward task within 1e-4, and loss and every gradient,
by the names of the model, of one training step, within DESIGN's "Equality".

usage: export_reference.py FOLDER.. --drover=PATH [compile options ..]
A folder has model.onnx, reference.json (batch, seq, loss), the inputs and logits.npy, tokens.u16 and gradients.safetensors.
Prints a line a folder; exit status 1 where one deviates.
"""
import argparse
import glob
import json
import os
import shutil
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
from drover.tensors import compare, read_safetensors
from running import run, steps_of


def forward(drover, folder, work, sizes, options):
    """The largest deviation of a logit."""
    run([drover, "compile", "model.onnx", "--task=forward", *sizes, *options, "-o", "forward"], work)
    inputs = []
    for path in sorted(glob.glob(os.path.join(folder, "*.npy"))):
        name = os.path.basename(path)[:-len(".npy")]
        if name != "logits":
            inputs += ["--input", f"{name}={path}"]
    run(["./forward", *inputs, "--output-dir=out"], work)
    return float(np.abs(np.load(os.path.join(work, "out/logits.npy")) - np.load(os.path.join(folder, "logits.npy"))).max())


def train(drover, folder, work, sizes, reference, options):
    """The relative deviation of the loss, the worst gradient's as a multiple of what is allowed, and the faults."""
    run([drover, "compile", "model.onnx", "--task=train", *sizes, f"--global-batch={reference['batch']}", *options, "-o", "train"], work)
    run(["./train", f"--data={folder}/tokens.u16", "--steps=1", "--init=model", "--log=log.jsonl",
         "--save-gradients=gradients.safetensors"], work)
    loss = abs(steps_of(work)[0]["loss"] / reference["loss"] - 1)
    worst, faults = compare(read_safetensors(os.path.join(work, "gradients.safetensors")),
                            read_safetensors(os.path.join(folder, "gradients.safetensors")), "gradient")
    return loss, worst[0], faults


def check(drover, folder, options):
    """The folder's line and its faults."""
    with open(os.path.join(folder, "reference.json")) as file:
        reference = json.load(file)
    sizes = [f"--seq-len={reference['seq']}", f"--microbatch={reference['batch']}"]
    with tempfile.TemporaryDirectory() as work:
        for name in os.listdir(folder):
            if name.startswith("model.onnx"):  # only the model: nothing may read the answers
                shutil.copy(os.path.join(folder, name), work)
        logits = forward(drover, folder, work, sizes, options)
        loss, gradient, faults = train(drover, folder, work, sizes, reference, options)
    if not logits <= 1e-4:
        faults.append(f"logits deviate by {logits:.3g}")
    if not loss <= 1e-5:
        faults.append(f"loss deviates by {loss:.3g}")
    return f"{os.path.basename(folder)}: logits {logits:.1e} loss {loss:.1e} gradients {gradient:.2f} of allowed", faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--drover", default="drover")
    arguments, options = parser.parse_known_args()
    failed = False
    for folder in arguments.folders:
        line, faults = check(arguments.drover, os.path.abspath(folder), options)
        print(line + "".join("\n  " + fault for fault in faults))
        failed |= bool(faults)
    sys.exit(failed)


if __name__ == "__main__":
    main()
