"""Models whose file is in float16: the weights' values are kept exactly, and the step is computed in the compute dtype.

usage: half_weights.py FOLDER --drover=PATH
Makes of FOLDER/model.onnx one with weights rounded to float16 and, with those, one that stores them in float16 behind casts and one that
is float16 throughout. The first two must train alike, bit for bit; the third's losses lie within 1e-3 (its RoPE table is rounded too).
"""
import argparse
import os
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from running import Failed, run, steps_of


def rounded(tensor):
    return numpy_helper.to_array(tensor).astype(np.float16)


def is_float(tensor):
    return tensor.data_type == TensorProto.FLOAT


def with_rounded_weights(model):
    for tensor in filter(is_float, model.graph.initializer):
        tensor.CopyFrom(numpy_helper.from_array(rounded(tensor).astype(np.float32), tensor.name))


def with_casts(model):
    casts = []
    for tensor in filter(is_float, model.graph.initializer):
        tensor.CopyFrom(numpy_helper.from_array(rounded(tensor), tensor.name))
        casts.append(helper.make_node("Cast", [tensor.name], [tensor.name + ".wide"], to=TensorProto.FLOAT))
    wide = {cast.input[0]: cast.output[0] for cast in casts}
    for node in model.graph.node:
        node.input[:] = [wide.get(name, name) for name in node.input]
    nodes = casts + list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def throughout(model):
    lowest = float(np.finfo(np.float16).min)
    half = lambda array: np.maximum(array, lowest).astype(np.float16)
    for tensor in filter(is_float, model.graph.initializer):
        tensor.CopyFrom(numpy_helper.from_array(half(numpy_helper.to_array(tensor)), tensor.name))
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR and is_float(attribute.t):
                attribute.t.CopyFrom(numpy_helper.from_array(half(numpy_helper.to_array(attribute.t))))
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.FLOAT16
    for info in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        if info.type.tensor_type.elem_type == TensorProto.FLOAT:
            info.type.tensor_type.elem_type = TensorProto.FLOAT16


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--drover", default="drover")
    arguments = parser.parse_args()
    source, losses, weights = os.path.abspath(arguments.folder), {}, {}
    for change in (with_rounded_weights, with_casts, throughout):
        with tempfile.TemporaryDirectory() as work:
            model = onnx.load(os.path.join(source, "model.onnx"))
            change(model)
            onnx.save(model, os.path.join(work, "model.onnx"))
            run([arguments.drover, "compile", "model.onnx", "--task=train", "--seq-len=32", "--global-batch=4", "-o", "train"], work)
            run(["./train", f"--data={source}/tokens.u16", "--steps=4", "--lr=1e-3", "--init=model", "--log=log.jsonl",
                 "--save-weights=weights.safetensors"], work)
            losses[change] = np.array([row["loss"] for row in steps_of(work)])
            with open(os.path.join(work, "weights.safetensors"), "rb") as file:
                weights[change] = file.read()
    if any(losses[with_casts] != losses[with_rounded_weights]) or weights[with_casts] != weights[with_rounded_weights]:
        raise Failed(f"weights behind casts train otherwise: {losses[with_casts]} and {losses[with_rounded_weights]}")
    apart = float(np.abs(losses[throughout] / losses[with_rounded_weights] - 1).max())
    if not apart <= 1e-3:
        raise Failed(f"a float16 model's losses {losses[throughout]} are not {losses[with_rounded_weights]}")
    print(f"weights behind casts: equal; float16 throughout: losses within {apart:.1e}")


if __name__ == "__main__":
    main()
