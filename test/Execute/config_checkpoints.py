"""usage: config_checkpoints.py FOLDER --drover=PATH
Compiles FOLDER/config.json and FOLDER/model.onnx and trains both from one checkpoint with Hugging Face's names, weights_after.safetensors:
as it is, and cut into two shards with an index. All four runs must be the same bit for bit. The first is on a terminal, whose progress
line is checked.
"""
import argparse
import json
import os
import pty
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
from drover.tensors import read_safetensors, write_safetensors
from running import Failed, run, steps_of


def write_shards(checkpoint, folder):
    """The checkpoint as two files with an index; the index's path."""
    tensors = read_safetensors(checkpoint)
    names = sorted(tensors)
    files = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in files.items():
        write_safetensors(os.path.join(folder, file), {name: tensors[name] for name in part})
    index = os.path.join(folder, "model.safetensors.index.json")
    with open(index, "w") as out:
        json.dump({"metadata": {}, "weight_map": {name: file for file, part in files.items() for name in part}}, out)
    return index


def run_on_terminal(command, folder):
    """What the command shows on a terminal that is its standard error."""
    master, slave = pty.openpty()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=slave) as process:
        os.close(slave)
        shown = b""
        try:
            while part := os.read(master, 4096):
                shown += part
        except OSError:  # the other end is closed
            pass
    os.close(master)
    if process.returncode:
        raise Failed(f"status {process.returncode}: {shown.decode()}")
    return shown.decode()


def check_progress(shown):
    """One line that is written over: step, loss, tokens a second, peak memory, time left."""
    line = shown.split("\n")[0].split("\r")[-2 if shown.split("\n")[0].endswith("\r") else -1]
    if not re.match(r"step 3/3  loss \d+\.\d{4}  \d+ tokens/s  peak [\d.]+ [KM]iB  0:00 left\x1b\[K", line):
        raise Failed(f"not the progress line of the last step: {line!r} of {shown!r}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--drover", default="drover")
    arguments = parser.parse_args()
    source = os.path.abspath(arguments.folder)
    checkpoint = os.path.join(source, "weights_after.safetensors")
    results = []
    with tempfile.TemporaryDirectory() as work:
        index = write_shards(checkpoint, work)
        for model in ("config.json", "model.onnx"):
            run([arguments.drover, "compile", os.path.join(source, model), "--task=train", "--seq-len=16", "--global-batch=2", "-o", "train"], work)
            for init in (checkpoint, index):
                command = ["./train", f"--data={source}/tokens.u16", "--steps=3", "--lr=1e-3", f"--init={init}", "--log=log.jsonl",
                           "--save-weights=w.safetensors"]
                if results:
                    run(command, work)
                else:
                    check_progress(run_on_terminal(command, work))
                with open(os.path.join(work, "w.safetensors"), "rb") as file:
                    results.append(([row["loss"] for row in steps_of(work)], file.read()))
    if any(result != results[0] for result in results):
        raise Failed(f"the runs differ: {[losses for losses, _ in results]}")
    print(f"loss {results[0][0]}")


main()
