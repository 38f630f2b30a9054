#!/usr/bin/env python3
"""Writes the ONNX model of a config.json (llama or gpt2) with random weights, in the forms that exporters write.

usage: build_onnx.py CONFIG.json -o MODEL.onnx [--seed N] [--external]
Batch and sequence stay symbolic. Needs numpy and onnx.
"""
import argparse
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from drover.decoder import random_parameters, read_config, sizes


class Graph:
    """Collects nodes and initializers under readable names."""

    def __init__(self):
        self.nodes, self.initializers, self.counter = [], [], 0

    def node(self, kind, *inputs, scope="", **attributes):
        self.counter += 1
        output = f"{scope}/{kind}_{self.counter}_output_0"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=output[:-9], **attributes))
        return output

    def split(self, value, sizes_, axis, scope):
        self.counter += 1
        outputs = [f"{scope}/Split_{self.counter}_output_{i}" for i in range(len(sizes_))]
        self.nodes.append(helper.make_node("Split", [value, self.constant(sizes_, np.int64)], outputs,
                                           name=f"{scope}/Split_{self.counter}", axis=axis))
        return outputs

    def constant(self, value, dtype):
        self.counter += 1
        output = f"/Constant_{self.counter}_output_0"
        tensor = numpy_helper.from_array(np.asarray(value, dtype=dtype))
        self.nodes.append(helper.make_node("Constant", [], [output], value=tensor))
        return output

    def parameter(self, name, value):
        self.initializers.append(numpy_helper.from_array(value, name))
        return name


def scope_of(name):
    """The node scope of a parameter's module: layers and heads are written layers.0."""
    return "/" + "/".join(name.split(".")[:-1]).replace("layers/", "layers.").replace("/h/", "/h.")


class Builder:
    def __init__(self, config, parameters):
        self.config, self.parameters, self.s, self.g = config, parameters, sizes(config), Graph()
        for name, value in parameters.items():
            self.g.parameter(name, value)

    def linear(self, x, name):
        """x times the transposed weight [out, in]: a Transpose node before the MatMul."""
        scope = scope_of(name)
        return self.g.node("MatMul", x, self.g.node("Transpose", name, perm=[1, 0], scope=scope), scope=scope)

    def conv1d(self, x, base):
        """GPT-2's projection: Gemm on rows with a weight [in, out], between two reshapes."""
        g, scope = self.g, scope_of(base + ".weight")
        inputs, outputs = self.parameters[base + ".weight"].shape
        rows = g.node("Reshape", x, g.constant([-1, inputs], np.int64), scope=scope)
        y = g.node("Gemm", rows, base + ".weight", base + ".bias", scope=scope)
        return g.node("Reshape", y, g.node("Concat", self.batch, self.length, g.constant([outputs], np.int64), axis=0), scope=scope)

    def sizes_of(self, ids):
        g = self.g
        shape = g.node("Shape", ids)
        self.batch = g.node("Unsqueeze", g.node("Gather", shape, g.constant(0, np.int64), axis=0), g.constant([0], np.int64))
        self.length_scalar = g.node("Gather", shape, g.constant(1, np.int64), axis=0)
        self.length = g.node("Unsqueeze", self.length_scalar, g.constant([0], np.int64))
        self.positions = g.node("Unsqueeze", g.node("Range", g.constant(0, np.int64), self.length_scalar, g.constant(1, np.int64)),
                                g.constant([0], np.int64))

    def mask(self):
        """0 where key <= query, the smallest float elsewhere: [1, 1, S, S]."""
        g = self.g
        keys = g.node("Unsqueeze", self.positions, g.constant([0, 1], np.int64))
        queries = g.node("Transpose", keys, perm=[0, 1, 3, 2])
        allowed = g.node("LessOrEqual", keys, queries)
        return g.node("Where", allowed, g.constant(0.0, np.float32), g.constant(np.finfo(np.float32).min, np.float32))

    def heads(self, x, count, scope):
        """[B, S, count * D] to [B, count, S, D]."""
        g = self.g
        shape = g.node("Concat", self.batch, self.length, g.constant([count], np.int64), g.constant([self.s["head_size"]], np.int64), axis=0)
        return g.node("Transpose", g.node("Reshape", x, shape, scope=scope), perm=[0, 2, 1, 3], scope=scope)

    def repeat(self, x, scope):
        g, kv, group = self.g, self.s["kv_heads"], self.s["heads"] // self.s["kv_heads"]
        if group == 1:
            return x
        tail = [self.length, g.constant([self.s["head_size"]], np.int64)]
        wide = g.node("Concat", self.batch, g.constant([kv], np.int64), g.constant([group], np.int64), *tail, axis=0)
        flat = g.node("Concat", self.batch, g.constant([kv * group], np.int64), *tail, axis=0)
        x = g.node("Expand", g.node("Unsqueeze", x, g.constant([2], np.int64), scope=scope), wide, scope=scope)
        return g.node("Reshape", x, flat, scope=scope)

    def attention(self, q, k, v, mask, scope):
        g, s = self.g, self.s
        k, v = self.repeat(k, scope), self.repeat(v, scope)
        scores = g.node("MatMul", q, g.node("Transpose", k, perm=[0, 1, 3, 2], scope=scope), scope=scope)
        scores = g.node("Mul", scores, g.constant(1 / math.sqrt(s["head_size"]), np.float32), scope=scope)
        weights = g.node("Softmax", g.node("Add", scores, mask, scope=scope), axis=-1, scope=scope)
        y = g.node("Transpose", g.node("MatMul", weights, v, scope=scope), perm=[0, 2, 1, 3], scope=scope)
        shape = g.node("Concat", self.batch, self.length, g.constant([s["heads"] * s["head_size"]], np.int64), axis=0)
        return g.node("Reshape", y, shape, scope=scope)

    def rms_norm(self, x, name):
        g, scope = self.g, scope_of(name)
        square = g.node("Pow", x, g.constant(2.0, np.float32), scope=scope)
        mean = g.node("ReduceMean", square, axes=[-1], keepdims=1, scope=scope)
        root = g.node("Sqrt", g.node("Add", mean, g.constant(self.s["eps"], np.float32), scope=scope), scope=scope)
        return g.node("Mul", name, g.node("Mul", x, g.node("Reciprocal", root, scope=scope), scope=scope), scope=scope)

    def layer_norm(self, x, base):
        return self.g.node("LayerNormalization", x, base + ".weight", base + ".bias", axis=-1, epsilon=self.s["eps"], scope=scope_of(base + ".weight"))

    def rope_tables(self):
        g, d = self.g, self.s["head_size"]
        frequencies = (1.0 / np.float32(self.s["theta"]) ** (np.arange(0, d, 2, dtype=np.float32) / d)).astype(np.float32)
        positions = g.node("Cast", g.node("Unsqueeze", self.positions, g.constant([1], np.int64)), to=TensorProto.FLOAT)
        angles = g.node("Transpose", g.node("MatMul", g.constant(frequencies.reshape(1, -1, 1), np.float32), positions), perm=[0, 2, 1])
        angles = g.node("Concat", angles, angles, axis=-1)
        return [g.node("Unsqueeze", g.node(f, angles), g.constant([1], np.int64)) for f in ("Cos", "Sin")]

    def rope(self, x, tables, scope):
        g, half = self.g, self.s["head_size"] // 2
        bounds = lambda a, b: [g.constant([v], np.int64) for v in (a, b, 3, 1)]
        first = g.node("Slice", x, *bounds(0, half), scope=scope)
        second = g.node("Slice", x, *bounds(half, np.iinfo(np.int64).max), scope=scope)
        turned = g.node("Concat", g.node("Neg", second, scope=scope), first, axis=-1, scope=scope)
        return g.node("Add", g.node("Mul", x, tables[0], scope=scope), g.node("Mul", turned, tables[1], scope=scope), scope=scope)

    def gelu_tanh(self, x, scope):
        g = self.g
        cube = g.node("Pow", x, g.constant(3.0, np.float32), scope=scope)
        inner = g.node("Add", x, g.node("Mul", cube, g.constant(0.044715, np.float32), scope=scope), scope=scope)
        t = g.node("Tanh", g.node("Mul", inner, g.constant(math.sqrt(2 / math.pi), np.float32), scope=scope), scope=scope)
        half = g.node("Mul", x, g.constant(0.5, np.float32), scope=scope)
        return g.node("Mul", half, g.node("Add", t, g.constant(1.0, np.float32), scope=scope), scope=scope)

    def llama(self, ids):
        g, s = self.g, self.s
        x = g.node("Gather", "model.embed_tokens.weight", ids, scope="/model/embed_tokens")
        mask, tables = self.mask(), self.rope_tables()
        for layer in range(s["layers"]):
            base, scope = f"model.layers.{layer}.", f"/model/layers.{layer}"
            h = self.rms_norm(x, base + "input_layernorm.weight")
            q, k, v = (self.heads(self.linear(h, f"{base}self_attn.{n}_proj.weight"), c, scope + "/self_attn")
                       for n, c in (("q", s["heads"]), ("k", s["kv_heads"]), ("v", s["kv_heads"])))
            q, k = (self.rope(t, tables, scope + "/self_attn") for t in (q, k))
            y = self.attention(q, k, v, mask, scope + "/self_attn")
            x = g.node("Add", x, self.linear(y, base + "self_attn.o_proj.weight"), scope=scope)
            h = self.rms_norm(x, base + "post_attention_layernorm.weight")
            gate, up = (self.linear(h, f"{base}mlp.{n}_proj.weight") for n in ("gate", "up"))
            gate = g.node("Mul", gate, g.node("Sigmoid", gate, scope=scope + "/mlp"), scope=scope + "/mlp")
            y = self.linear(g.node("Mul", gate, up, scope=scope + "/mlp"), base + "mlp.down_proj.weight")
            x = g.node("Add", x, y, scope=scope)
        return self.rms_norm(x, "model.norm.weight"), "model.embed_tokens.weight"

    def gpt2(self, ids):
        g, s = self.g, self.s
        x = g.node("Gather", "transformer.wte.weight", ids, scope="/transformer/wte")
        x = g.node("Add", x, g.node("Gather", "transformer.wpe.weight", self.positions, scope="/transformer/wpe"), scope="/transformer")
        mask = self.mask()
        for layer in range(s["layers"]):
            base, scope = f"transformer.h.{layer}.", f"/transformer/h.{layer}"
            packed = self.conv1d(self.layer_norm(x, base + "ln_1"), base + "attn.c_attn")
            q, k, v = (self.heads(t, s["heads"], scope + "/attn") for t in g.split(packed, [s["hidden"]] * 3, 2, scope + "/attn"))
            y = self.attention(q, k, v, mask, scope + "/attn")
            x = g.node("Add", self.conv1d(y, base + "attn.c_proj"), x, scope=scope)
            y = self.gelu_tanh(self.conv1d(self.layer_norm(x, base + "ln_2"), base + "mlp.c_fc"), scope + "/mlp/act")
            x = g.node("Add", x, self.conv1d(y, base + "mlp.c_proj"), scope=scope)
        return self.layer_norm(x, "transformer.ln_f"), "transformer.wte.weight"

    def build(self):
        g = self.g
        self.sizes_of("input_ids")
        hidden, table = (self.gpt2 if self.config["model_type"] == "gpt2" else self.llama)("input_ids")
        head = table if self.s["tied"] else "lm_head.weight"
        transposed = g.node("Transpose", head, perm=[1, 0], scope="/lm_head")
        g.nodes.append(helper.make_node("MatMul", [hidden, transposed], ["logits"], name="/lm_head/MatMul"))
        ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"])
        logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", self.s["vocab"]])
        graph = helper.make_graph(g.nodes, self.config["model_type"], [ids], [logits], g.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="drover-build-onnx")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--external", action="store_true", help="weights in MODEL.onnx.data")
    arguments = parser.parse_args()
    config = read_config(arguments.config)
    model = Builder(config, random_parameters(config, arguments.seed)).build()
    onnx.checker.check_model(model)
    name = arguments.output.rsplit("/", 1)[-1] + ".data"
    external = dict(save_as_external_data=True, location=name, size_threshold=0) if arguments.external else {}
    onnx.save_model(model, arguments.output, **external)


if __name__ == "__main__":
    main()
