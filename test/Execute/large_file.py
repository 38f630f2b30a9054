"""Weights beyond 2 GB, in one file of external data that is mostly a hole: a table of 2.2 GB whose last row is looked up, and a
matrix behind it. Imports, compiles and runs the forward; the result is exact.

usage: large_file.py DROVER FOLDER
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

from running import run

ROWS, WIDTH, OUT = 8600, 65536, 4


def external(name, shape, offset):
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "weights.bin"), ("offset", offset), ("length", 4 * int(np.prod(shape)))):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def main():
    drover, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.onnx")
    nodes = [helper.make_node("Gather", ["table.weight", "input_ids"], ["x"], name="/table/Gather"),
             helper.make_node("MatMul", ["x", "head.matrix.weight"], ["y"], name="/head/matrix/MatMul")]
    table_offset, table_bytes = 4096, 4 * ROWS * WIDTH
    matrix_offset = table_offset + table_bytes + 4096
    assert table_bytes > 1 << 31
    graph = helper.make_graph(
        nodes, "large", [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, OUT])],
        [external("table.weight", [ROWS, WIDTH], table_offset), external("head.matrix.weight", [WIDTH, OUT], matrix_offset)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)

    # Small whole numbers: every sum is exact.
    random = np.random.RandomState(3)
    row = random.randint(-3, 4, WIDTH).astype(np.float32)
    matrix = random.randint(-3, 4, (WIDTH, OUT)).astype(np.float32)
    with open(os.path.join(folder, "weights.bin"), "wb") as file:
        file.seek(table_offset + table_bytes - 4 * WIDTH)
        file.write(row.tobytes())
        file.seek(matrix_offset)
        file.write(matrix.tobytes())
    try:
        program = os.path.join(folder, "model.mlir")
        run([drover, "import", path, "-o", program])
        assert os.path.getsize(program) < 10000, "weights went into the program"
        np.save(os.path.join(folder, "ids.npy"), np.int64([[0, ROWS - 1]]))
        run([drover, "compile", path, "--task=forward", "-o", os.path.join(folder, "forward")])
        run([os.path.join(folder, "forward"), "--ranks=1", "--input", f"input_ids={folder}/ids.npy", f"--output-dir={folder}"])
        got = np.load(os.path.join(folder, "y.npy"))
        wanted = np.stack([np.zeros(OUT), row.astype(np.float64) @ matrix])[None]
        assert got.shape == wanted.shape and (got == wanted).all(), (got, wanted)
    finally:
        os.remove(os.path.join(folder, "weights.bin"))


main()
