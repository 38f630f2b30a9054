"""Dumps a step of one rank and of a layout and compares them by python/compare_dumps.py: every tensor of the step, forward by layer,
backward by layer, gradients, parameters. Another step's dump must differ.

dumps_agree.py FOLDER --drover=PATH [--emulated=SCRIPT] LAYOUT OPTIONS..
With --emulated (scripts/with-emulated-gpu) the layout is compiled for a GPU and runs over the stand-ins.
"""
import argparse
import os
import subprocess
import sys
import tempfile

from running import Failed, emulate, run

PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python")


def compare(a, b, *options):
    """Status and text of compare_dumps.py."""
    command = [sys.executable, os.path.join(PYTHON, "compare_dumps.py"), a, b, "--all", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env={**os.environ, "PYTHONPATH": PYTHON})
    return done.returncode, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--drover", required=True)
    parser.add_argument("--emulated")
    options, layout = parser.parse_known_args()
    folder = os.path.abspath(options.folder)
    with tempfile.TemporaryDirectory() as scratch:
        def dump(name, layout, step, emulated=None):
            run([options.drover, "compile", os.path.join(folder, "model.onnx"), "--task=train", f"--target={'cuda' if emulated else 'host'}",
                 "--compute-dtype=f32", "--seq-len=32", "--microbatch=1", "--global-batch=4", *layout, "-o", os.path.join(scratch, name)])
            command = [os.path.join(scratch, name), "--data=" + os.path.join(folder, "tokens.u16"), "--steps=2", "--dump=.", f"--dump-step={step}",
                       f"--dump-file={name}.safetensors"]
            if found := emulate(emulated, command, scratch, os.environ.get("DROVER_EMU_SEED", 0)) if emulated else run(command, scratch):
                raise Failed("\n".join(found[:3]))
            return os.path.join(scratch, name + ".safetensors")

        one, many = dump("one", [], 1), dump("many", layout, 1, options.emulated)
        status, text = compare(many, one)
        lines = text.splitlines()
        for start in ("forward.embed", "forward.layer.0.", "forward.layer.1.", "backward.layer.1.", "backward.layer.0.", "gradient.",
                      "parameter."):
            if not any(f": {start}" in line for line in lines):
                raise Failed(f"no tensor {start}.. in both dumps\n{text[-2000:]}")
        if status:
            raise Failed("dumps of one step differ\n" + "\n".join(line for line in lines if not line.startswith("agrees")))
        status, text = compare(dump("later", [], 2), one)
        if status != 1 or "differs by" not in text:
            raise Failed(f"another step's dump must differ: status {status}\n{text[-2000:]}")
        print(lines[-1])


if __name__ == "__main__":
    main()
