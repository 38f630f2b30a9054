"""Data sets recorded beside an ONNX model: the forward executable gives the outputs. Each is a folder test_data_set_N of input_I.pb and
output_I.pb, in the order of the graph, or the folder data of NAME.npy.

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


def data_sets(folder, inputs, outputs):
    """Of each set its inputs and its outputs by name."""
    for data in sorted(glob.glob(os.path.join(folder, "test_data_set_*"))):
        yield ({info.name: load(os.path.join(data, f"input_{index}.pb")) for index, info in enumerate(inputs)},
               {info.name: load(os.path.join(data, f"output_{index}.pb")) for index, info in enumerate(outputs)})
    if os.path.isdir(os.path.join(folder, "data")):
        named = lambda infos: {info.name: np.load(os.path.join(folder, "data", info.name + ".npy")) for info in infos}
        yield named(inputs), named(outputs)


def main():
    drover, folder = sys.argv[1:]
    model = onnx.load(os.path.join(folder, "model.onnx"), load_external_data=False)
    initialized = {tensor.name for tensor in model.graph.initializer}
    inputs = [info for info in model.graph.input if info.name not in initialized]
    worst = 0.0
    with tempfile.TemporaryDirectory() as work:
        built = {}
        for given, wanted in data_sets(folder, inputs, model.graph.output):
            sizes, arguments = {}, []
            for info in inputs:
                values = given[info.name]
                np.save(os.path.join(work, f"{info.name}.npy"), values)
                arguments += ["--input", f"{info.name}={work}/{info.name}.npy"]
                for dim, size in zip(info.type.tensor_type.shape.dim, values.shape):
                    if dim.dim_param and "+" not in dim.dim_param:
                        sizes[dim.dim_param] = size
            key = tuple(sorted(sizes.items()))
            if key not in built:
                built[key] = os.path.join(work, f"forward{len(built)}")
                run([drover, "compile", os.path.join(folder, "model.onnx"), "--task=forward",
                     *(f"--dim={name}={size}" for name, size in key), "-o", built[key]])
            run([built[key], "--ranks=1", *arguments, f"--output-dir={work}/out"])
            for name, values in wanted.items():
                got = np.load(f"{work}/out/{name}.npy")
                assert got.shape == values.shape, f"{name} has shape {got.shape}, not {values.shape}"
                worst = max(worst, float(np.abs(got - values).max(initial=0)))
    if not built:
        sys.exit(f"{folder} has no data set")
    print(f"{os.path.basename(folder)}: {len(built)} executables, outputs within {worst:.1e}")
    sys.exit(not worst <= 1e-4)


main()
