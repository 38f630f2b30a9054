"""Data sets recorded beside an ONNX model (test_data_set_N/input_I.pb, output_I.pb): the forward executable gives the outputs.

usage: io_reference.py DROVER FOLDER      sizes are those of the data; one executable for each set of sizes
"""
import glob
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

from running import run


def load(path):
    return numpy_helper.to_array(onnx.load_tensor(path))


def main():
    drover, folder = sys.argv[1:]
    model = onnx.load(os.path.join(folder, "model.onnx"), load_external_data=False)
    initialized = {tensor.name for tensor in model.graph.initializer}
    inputs = [info for info in model.graph.input if info.name not in initialized]
    worst = 0.0
    with tempfile.TemporaryDirectory() as work:
        built = {}
        for data in sorted(glob.glob(os.path.join(folder, "test_data_set_*"))):
            sizes, arguments = {}, []
            for index, info in enumerate(inputs):
                values = load(os.path.join(data, f"input_{index}.pb"))
                np.save(os.path.join(work, f"{info.name}.npy"), values)
                arguments += ["--input", f"{info.name}={work}/{info.name}.npy"]
                for dim, size in zip(info.type.tensor_type.shape.dim, values.shape):
                    if dim.dim_param:
                        sizes[dim.dim_param] = size
            key = tuple(sorted(sizes.items()))
            if key not in built:
                built[key] = os.path.join(work, f"forward{len(built)}")
                run([drover, "compile", os.path.join(folder, "model.onnx"), "--task=forward",
                     *(f"--dim={name}={size}" for name, size in key), "-o", built[key]])
            run([built[key], "--ranks=1", *arguments, f"--output-dir={work}/out"])
            for index, info in enumerate(model.graph.output):
                wanted, got = load(os.path.join(data, f"output_{index}.pb")), np.load(f"{work}/out/{info.name}.npy")
                assert got.shape == wanted.shape, f"{data}: {info.name} has shape {got.shape}, not {wanted.shape}"
                worst = max(worst, float(np.abs(got - wanted).max(initial=0)))
    print(f"{os.path.basename(folder)}: {len(built)} executables, outputs within {worst:.1e}")
    sys.exit(not worst <= 1e-4)


main()
