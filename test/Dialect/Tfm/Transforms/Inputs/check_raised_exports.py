"""Imports and raises the exports beside the project; counts operations and compares logits.

Usage: check_raised_exports.py DROVER DROVER_OPT DROVER_INTERPRET SHARED
Prints one line a model and a summary; status 1 where a model has other operations than expected, or logits more than
1e-4 away from the recorded ones.
"""
import array
import ast
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

# Operations a layer, and around the layers, of the form that a person would write: by the folder's first word.
EXPECTED = {
    "llama": (15, 4), "llama3rope": (15, 4), "mistral": (15, 4), "olmo2": (17, 4), "qwen2": (18, 4), "phi3": (17, 4),
    "stablelm": (15, 4), "starcoder2": (20, 4), "gpt2": (17, 7), "gpt_neox": (23, 4), "gptj": (15, 5),
    "falcon": (14, 4), "phi": (19, 5), "gemma": (16, 6), "gemma2": (18, 10),
}
# Nothing of these may be left of shapes, masks and tables.
FORBIDDEN = re.compile(r"= (?:tfm\.(?:softmax|matmul|gather|size|transpose|scatter_nd|concat)|arith\.cmpi|math\.cos)\b")
INPUTS = {"input_ids": None, "attention_mask": "ones", "position_ids": "arange"}


def read_npy(path):
    data = path.read_bytes()
    size = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + size].decode())
    assert header["descr"] == "<f4" and not header["fortran_order"], path
    return header["shape"], array.array("f", data[10 + size:])


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def family(name):
    return max((key for key in EXPECTED if name == key or name.startswith(key + "_")), key=len, default=None)


def check(folder, tools, work):
    drover, opt, interpret = tools
    imported, raised = work / "imported.mlir", work / "raised.mlir"
    run(drover, "import", folder / "model.onnx", "-o", imported)
    text = run(opt, "--tfm-raise", imported)
    raised.write_text(text)
    faults = []
    operations = len(re.findall(r"^ *%[^=\n]* = \"?(?:tfm|arith|math)\.", text, re.M))
    layers = len(re.findall(r"= tfm\.attention ", text))
    key = family(folder.name)
    if key:
        layer, rest = EXPECTED[key]
        # Positions that are an input need no counting.
        rest -= "position_ids" in text
        if operations != layer * layers + rest or not layers:
            faults.append(f"{operations} operations in {layers} layers, expected {layer} a layer and {rest}")
        faults += [f"left over: {left}" for left in sorted(set(FORBIDDEN.findall(text)))]
    difference = "-"
    if (folder / "logits.npy").exists():
        arguments = []
        for name, default in INPUTS.items():
            if f'tfm.input = "{name}"' in text:
                file = folder / f"{name}.npy"
                arguments += ["--input", f"{name}={file if file.exists() else default}"]
        run(interpret, raised, *arguments, f"--source-dir={folder}", f"--output-dir={work}")
        shape, expected = read_npy(folder / "logits.npy")
        got_shape, got = read_npy(work / "logits.npy")
        difference = max(abs(a - b) for a, b in zip(expected, got)) if shape == got_shape else float("inf")
        if not difference <= 1e-4:
            faults.append(f"logits differ by {difference:.2e}")
        difference = f"{difference:.1e}"
    print(f"{folder.name}: {operations} operations, {layers} layers, logits {difference}",
          "ok" if not faults else "; ".join(faults))
    return not faults


def main():
    tools, shared = sys.argv[1:4], pathlib.Path(sys.argv[4])
    folders = sorted(path.parent for kind in ("training", "onnx/exports") for path in shared.glob(f"{kind}/*/model.onnx"))
    failed = []
    for folder in folders:
        with tempfile.TemporaryDirectory() as work:
            try:
                if not check(folder, tools, pathlib.Path(work)):
                    failed.append(folder.name)
            except subprocess.CalledProcessError as error:
                print(f"{folder.name}: {error.cmd[0]} failed: {error.stderr.strip()[:500]}")
                failed.append(folder.name)
    print(f"{len(folders) - len(failed)} of {len(folders)} models", "failed: " + ", ".join(failed) if failed else "")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
