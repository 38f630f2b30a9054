"""A model's ONNX export and its config.json are one program: prints both after specialization and compares the text.

usage: same_program.py DROVER FOLDER     FOLDER holds model.onnx and config.json
Left out of the comparison: where parameters lie in files (tfm.source; tfm.aliases of older checkpoints), the module's
attributes, and locations. Sizes are those of reference.json where it says what the export was traced with.
"""
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile


def program(drover, model, batch, length):
    with tempfile.NamedTemporaryFile(suffix=".mlir") as output:
        command = [drover, "compile", model, "--task=train", f"--microbatch={batch}", f"--seq-len={length}",
                   f"--global-batch={batch}", "--stop-after=specialize", "--emit=mlir", "-o", output.name]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"status {done.returncode} of {' '.join(command)}\n{done.stderr}")
        text = open(output.name).read()
    text = re.sub(r",? ?tfm\.source = #tfm\.source<[^>]*>", "", text)
    text = re.sub(r"tfm\.aliases = \[[^\]]*\](, )?", "", text)
    text = re.sub(r"^module.*\{$", "module {", text, flags=re.M)
    # One line per argument, so that a difference can be read.
    return text.replace("}, %arg", "},\n    %arg").splitlines()


def main():
    drover, folder = sys.argv[1:3]
    traced = {}
    if os.path.exists(f"{folder}/reference.json"):
        with open(f"{folder}/reference.json") as file:
            traced = json.load(file)
    sizes = traced.get("batch", 2), traced.get("seq", 16)
    onnx, config = (program(drover, f"{folder}/{name}", *sizes) for name in ("model.onnx", "config.json"))
    difference = list(difflib.unified_diff(onnx, config, "model.onnx", "config.json", lineterm="", n=0))
    print("\n".join(difference) or f"{len(onnx)} equal lines")
    sys.exit(bool(difference) or len(onnx) < 20)


main()
