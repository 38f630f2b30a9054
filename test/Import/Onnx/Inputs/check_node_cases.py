"""The ONNX node cases beside the project: each `*_expanded` case is the function body of an operator. Imported and raised,
it must give the outputs recorded for its twin, the operator itself, and so must the twin.

usage: check_node_cases.py DROVER DROVER_INTERPRET SHARED [-v]
Prints one line for each fault, and what the cases were raised to; status 1 where a case has other values than recorded, or
is left in primitives where RAISED says it becomes one operation.
"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

# The operation that an expanded case must become, by the start of its name.
RAISED = {"test_attention": "tfm.attention", "test_gelu": "tfm.gelu", "test_layer_normalization": "tfm.layer_norm",
          "test_rms_normalization": "tfm.rms_norm", "test_swiglu": "tfm.swiglu"}
# Cases that stay in primitives: probabilities that are an output of their own, root mean squares over several dimensions,
# and layer norms whose reshapes to rows of the last of four dimensions stand between the moments and their uses.
PRIMITIVES = [r"test_attention_.*(mode3|qk_matmul_softmax)",
              r"test_rms_normalization_(2d_axis0|3d_axis_negative_2|4d_axis[012]|4d_axis_negative_[234])",
              r"test_layer_normalization_(4d_axis_negative_1|default_axis)"]


def fault_of_raising(name, text):
    wanted = next((operation for start, operation in RAISED.items() if name.startswith(start)), None)
    if not wanted or "_expanded" not in name:
        return None
    stays = any(re.match(pattern, name) for pattern in PRIMITIVES)
    if stays == (f"= {wanted} " in text or f"{wanted} %" in text):
        return f"{wanted} is there, which PRIMITIVES denies" if stays else f"no {wanted} after raising"
    return None


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def outputs_of(folder, drover, interpret, work):
    """Pairs of computed and recorded outputs of all data sets, and the raised program."""
    model = onnx.load(folder / "model.onnx")
    program = work / "model.mlir"
    done = run(drover, "import", folder / "model.onnx", "-o", program)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    text = program.read_text()
    twin = folder.parent / folder.name.split("_expanded")[0]
    pairs = []
    for data in sorted(twin.glob("test_data_set_*")):
        arguments = []
        for index, info in enumerate(model.graph.input):
            values = numpy_helper.to_array(onnx.load_tensor(data / f"input_{index}.pb"))
            if f'tfm.input = "{info.name}"' in text:
                np.save(work / f"{info.name}.npy", values)
                arguments += ["--input", f"{info.name}={work / info.name}.npy"]
        done = run(interpret, program, *arguments, f"--output-dir={work / 'out'}")
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        for index, info in enumerate(model.graph.output):
            wanted = numpy_helper.to_array(onnx.load_tensor(data / f"output_{index}.pb"))
            pairs.append((info.name, np.load(work / "out" / f"{info.name}.npy"), wanted))
    return text, pairs


def faults_of(pairs):
    for name, got, wanted in pairs:
        tolerance = 2e-3 if wanted.dtype == np.float16 else 1e-4
        if got.shape != wanted.shape:
            yield f"{name} has shape {got.shape}, not {wanted.shape}"
        elif not np.allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance / 10,
                             equal_nan=True):
            yield f"{name} differs by {np.abs(got.astype(np.float64) - wanted).max():.2e}"


def main():
    drover, interpret, shared = sys.argv[1:4]
    verbose = "-v" in sys.argv
    failed, counts = 0, collections.Counter()
    cases = sorted(path.parent for path in (pathlib.Path(shared) / "onnx/node").glob("*/model.onnx"))
    for folder in cases:
        with tempfile.TemporaryDirectory() as work:
            try:
                text, pairs = outputs_of(folder, drover, interpret, pathlib.Path(work))
                faults = list(faults_of(pairs))
            except RuntimeError as error:
                text, faults = "", [str(error)[:300]]
        if text and (fault := fault_of_raising(folder.name, text)):
            faults.append(fault)
        operations = re.findall(r"= ((?:tfm|arith|math)\.\w+)", text)
        if verbose:
            print(folder.name, collections.Counter(operations))
        counts["of which expanded"] += "_expanded" in folder.name
        if faults:
            failed += 1
            print(f"{folder.name}: {'; '.join(faults)}")
    print(f"{len(cases)} cases, {dict(counts)}, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
