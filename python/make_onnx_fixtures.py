#!/usr/bin/env python3
"""Writes the small ONNX files under test/Import/Onnx/Inputs. Needs `onnx` and `numpy` from PyPI.

usage: python/make_onnx_fixtures.py [OUTPUT_FOLDER]

Each function is one file and says what the importer has to get right in it. Everything is seeded: a
second run writes the same bytes.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
V, H, F = 16, 8, 12


def values(*shape, seed=0):
    return (np.random.RandomState(seed + 7).standard_normal(shape) * 0.3).astype(np.float32)


def tensor(name, array):
    return numpy_helper.from_array(np.asarray(array, order="C"), name)


def ids(name="input_ids", dims=("batch_size", "sequence_length")):
    return helper.make_tensor_value_info(name, INT64, list(dims))


def out(name, dims, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, list(dims))


def node(kind, inputs, outputs, name=None, domain="", **attributes):
    return helper.make_node(kind, inputs, outputs, name=name, domain=domain, **attributes)


def constant(name, array):
    return node("Constant", [], [name], value=tensor("", np.asarray(array)))


def model(nodes, inputs, outputs, initializers=(), opset=17, ir=8, functions=(), opsets=(), values_info=()):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(initializers), value_info=list(values_info))
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, v) for d, v in opsets]
    result = helper.make_model(graph, opset_imports=imports, functions=list(functions), producer_name="fixture")
    result.ir_version = ir
    return result


def scope(path, kind):
    return "/" + path.replace(".", "/").replace("/layers/", "/layers.").replace("/h/", "/h.") + "/" + kind


# --- names, ties ------------------------------------------------------------------------------------

def scoped_names():
    """TorchScript: folded transposes named onnx::MatMul_N, a tied head, Gemma's folded 1 + w."""
    table, norm = values(V, H, seed=1), values(H, seed=3)
    nodes = [
        node("Gather", ["model.embed_tokens.weight", "input_ids"], ["x"], scope("model.embed_tokens", "Gather")),
        node("Mul", ["x", "onnx::Mul_20"], ["n"], scope("model.layers.0.input_layernorm", "Mul_1")),
        node("MatMul", ["n", "onnx::MatMul_21"], ["q"], scope("model.layers.0.self_attn.q_proj", "MatMul")),
        node("Add", ["model.layers.0.self_attn.q_proj.bias", "q"], ["qb"],
             scope("model.layers.0.self_attn.q_proj", "Add")),
        node("MatMul", ["qb", "onnx::MatMul_22"], ["logits"], "/lm_head/MatMul"),
    ]
    return model(nodes, [ids()], [out("logits", ["batch_size", "sequence_length", V])],
                 [tensor("model.embed_tokens.weight", table), tensor("onnx::Mul_20", norm + 1),
                  tensor("onnx::MatMul_21", values(H, H, seed=2)),
                  tensor("model.layers.0.self_attn.q_proj.bias", values(H, seed=4)),
                  tensor("onnx::MatMul_22", table.T)])


def tables():
    """No signature: parameters of any rank beside masks, tables, slopes and frequencies, which only their values tell apart."""
    def scores(kind, name, x, y):
        return node(kind, [x, name], [y], "/" + y)
    places, columns = np.arange(8.0)[:, None], np.arange(H)
    angles = places / 100 ** (columns // 2 * 2 / H)
    tables = {
        "pos_emb": values(1, 8, H, seed=5), "onnx::Add_9": values(1, 8, H, seed=6), "cls_token": values(1, 1, H, seed=7),
        "h.0.gamma_1": np.ones((1, 1, H)), "pe": np.where(columns % 2, np.cos(angles), np.sin(angles))[None],
        "temperature": np.full(1, 0.5), "onnx::Mul_10": np.full((1, 1, H), 2),
    }
    masks = {
        "h.0.attn.bias": np.where(columns > places, -1e4, 0)[None, :8, :8], "slopes": 0.5 ** np.array([2, 4, 6, 8, 1, 3, 5, 7.0])[:, None],
        "distances": (columns - places)[None] * 0.25, "freqs": 1 / 3 ** np.arange(8.0)[None, None],
    }
    nodes = [node("Gather", ["wte", "input_ids"], ["x0"], "/wte/Gather")]
    for i, name in enumerate(tables):
        nodes.append(scores("Mul" if i >= 5 else "Add", name, f"x{i}", f"x{i + 1}"))
    last = f"x{len(tables)}"
    nodes += [node("Transpose", [last], ["t"], "/t", perm=[0, 2, 1]), node("MatMul", [last, "t"], ["s0"], "/s0")]
    for i, name in enumerate(masks):
        nodes.append(scores("Mul" if i else "Add", name, f"s{i}", f"s{i + 1}"))
    nodes += [node("MatMul", [f"s{len(masks)}", last], ["y"], "/y"), node("MatMul", ["y", "head"], ["logits"], "/head/MatMul")]
    weights = {"wte": values(V, H, seed=1), **tables, **masks, "head": values(H, V, seed=2)}
    return model(nodes, [ids(dims=(2, 8))], [out("logits", [2, 8, V])],
                 [tensor(name, np.asarray(array, np.float32)) for name, array in weights.items()])


def weights_in(constants):
    """Weights of every role: all in Constant nodes, or all in initializers beside the mask. The program is the same."""
    table = values(V, H, seed=1)
    mask = np.where(np.arange(8) > np.arange(8)[:, None], -1e4, 0).astype(np.float32)
    tensors = {
        "wte.weight": table, "/ln/Constant_output_0": np.ones(H, np.float32), "/ln/Constant_1_output_0": values(H, seed=2),
        "/fc/Constant_output_0": values(H, H, seed=3), "pos_emb": values(1, 8, H, seed=4),
        "onnx::MatMul_9": table.T, "/fc/Constant_1_output_0": values(H, seed=5), "mask": mask,
    }
    nodes = [
        node("Gather", ["wte.weight", "input_ids"], ["x"], "/wte/Gather"),
        node("Add", ["x", "pos_emb"], ["p"], "/Add"),
        node("LayerNormalization", ["p", "/ln/Constant_output_0", "/ln/Constant_1_output_0"], ["n"], "/ln/LayerNormalization"),
        node("Transpose", ["n"], ["t"], "/attn/Transpose", perm=[0, 2, 1]),
        node("MatMul", ["n", "t"], ["s"], "/attn/MatMul"),
        node("Add", ["s", "mask"], ["m"], "/attn/Add"),
        node("Softmax", ["m"], ["a"], "/attn/Softmax"),
        node("MatMul", ["a", "n"], ["c"], "/attn/MatMul_1"),
        node("MatMul", ["c", "/fc/Constant_output_0"], ["f"], "/fc/MatMul"),
        node("Add", ["/fc/Constant_1_output_0", "f"], ["b"], "/fc/Add"),
        node("MatMul", ["b", "onnx::MatMul_9"], ["logits"], "/lm_head/MatMul"),
    ]
    initializers = [tensor(name, array) for name, array in tensors.items()]
    if constants:
        # Behind what reads them, and one as a list of floats.
        nodes += [constant(name, array) for name, array in list(tensors.items())[:-2]]
        bias = tensors["/fc/Constant_1_output_0"]
        nodes.append(node("Constant", [], ["/fc/Constant_1_output_0"], value_floats=[float(value) for value in bias]))
        initializers = [tensor("mask", mask)]
    return model(nodes, [ids(dims=(2, 8))], [out("logits", [2, 8, V])], initializers)


def mixed_constants():
    """Weights in initializers: a Constant is one only where its values say so. An exporter writes ones and zeros for a norm without weights."""
    turn = np.zeros((H, H), np.float32)
    turn[np.arange(H), (np.arange(H) + H // 2) % H] = np.where(np.arange(H) < H // 2, -1, 1)
    tensors = {"ones": np.ones(H, np.float32), "zeros": np.zeros(H, np.float32), "/fc/Constant_output_0": values(H, H, seed=3),
               "turn": turn, "shift": values(4, seed=4).repeat(2)}
    nodes = [constant(name, array) for name, array in tensors.items()] + [
        node("Gather", ["wte.weight", "input_ids"], ["x"], "/wte/Gather"),
        node("LayerNormalization", ["x", "ones", "zeros"], ["n"], "/ln/LayerNormalization"),
        node("MatMul", ["n", "/fc/Constant_output_0"], ["f"], "/fc/MatMul"),
        node("MatMul", ["f", "turn"], ["r"], "/rotate/MatMul"),
        node("Add", ["r", "shift"], ["b"], "/Add"),
        node("MatMul", ["b", "onnx::MatMul_9"], ["logits"], "/lm_head/MatMul"),
    ]
    return model(nodes, [ids(dims=(2, 8))], [out("logits", [2, 8, V])],
                 [tensor("wte.weight", values(V, H, seed=1)), tensor("onnx::MatMul_9", values(H, V, seed=2))])


def no_parameters():
    """A table of sines and a matrix of zeros and ones: there is nothing to train."""
    angles = np.arange(float(V))[:, None] / 100 ** (np.arange(H) // 2 * 2 / H)
    waves = np.where(np.arange(H) % 2, np.cos(angles), np.sin(angles)).astype(np.float32)
    nodes = [constant("waves", waves), node("Gather", ["waves", "input_ids"], ["x"]), node("MatMul", ["x", "pairs"], ["logits"])]
    return model(nodes, [ids(dims=(2, 8))], [out("logits", [2, 8, V])],
                 [tensor("pairs", (np.arange(V) // 2 == np.arange(H)[:, None]).astype(np.float32))])


def lacking(dims, data, constant=False):
    """A weight without values, or without sizes."""
    weight = TensorProto(name="" if constant else "h.weight", data_type=FLOAT, dims=dims, raw_data=b"" if data else None)
    first = [node("Constant", [], ["h.weight"], value=weight)] if constant else []
    return model(first + [node("MatMul", ["x", "h.weight"], ["y"], "h")], [out("x", [2, 8])], [out("y", [2, dims[-1]])],
                 [] if constant else [weight])


def signature_names():
    """The dynamo exporter: names in metadata of IR 10, a buffer that is no parameter, one table for embedding and head."""
    def meta(n, fx, scopes):
        for key, value in (("pkg.torch.onnx.fx_node", fx), ("pkg.torch.onnx.name_scopes", str(scopes))):
            n.metadata_props.add(key=key, value=value)
        return n
    nodes = [
        meta(node("Gather", ["lm_head.weight", "input_ids"], ["x"], "node_embedding"),
             "%embedding = embedding(%p_lm_head_weight, %input_ids)", ["", "wte", "embedding"]),
        meta(node("MatMul", ["x", "val_3"], ["y"], "node_linear"),
             "%linear = linear(%embedding, %p_h_0_fc_weight, %p_h_0_fc_bias)", ["", "h.0", "h.0.fc", "linear"]),
        meta(node("Add", ["y", "h.0.fc.bias"], ["z"], "node_linear_add"),
             "%linear = linear(%embedding, %p_h_0_fc_weight, %p_h_0_fc_bias)", ["", "h.0", "h.0.fc", "linear"]),
        meta(node("Mul", ["z", "scale_buffer"], ["s"], "node_mul"), "%mul = mul(%linear, %b_scale)", ["", "h.0", "mul"]),
        node("Transpose", ["lm_head.weight"], ["t"], "node_transpose", perm=[1, 0]),
        meta(node("MatMul", ["s", "t"], ["logits"], "node_linear_1"),
             "%linear_1 = linear(%mul, %p_lm_head_weight)", ["", "lm_head", "linear_1"]),
    ]
    result = model(nodes, [ids(dims=("s72", "s70"))], [out("logits", ["s72", "s70", V])],
                   [tensor("lm_head.weight", values(V, H, seed=1)), tensor("val_3", values(H, H, seed=2)),
                    tensor("h.0.fc.bias", values(H, seed=3)), tensor("scale_buffer", values(H, seed=4))], opset=18, ir=10)
    result.graph.metadata_props.add(
        key="pkg.torch.export.ExportedProgram.graph_signature",
        value="\n# inputs\np_wte_weight: PARAMETER target='wte.weight'\np_h_0_fc_weight: PARAMETER target='h.0.fc.weight'\n"
              "p_h_0_fc_bias: PARAMETER target='h.0.fc.bias'\np_lm_head_weight: PARAMETER target='lm_head.weight'\n"
              "b_scale: BUFFER target='scale_buffer' persistent=True\ninput_ids: USER_INPUT\n")
    return result


def shared_bias():
    """An optimizer has merged two equal biases: they are two parameters, named by their scopes."""
    nodes = [node("Gather", ["model.embed.weight", "input_ids"], ["x0"], "/model/embed/Gather")]
    initializers = [tensor("model.embed.weight", values(V, H)), tensor("model.layers.0.fc.bias", np.zeros(H, np.float32))]
    for i in range(2):
        nodes.append(node("MatMul", [f"x{i}", f"onnx::MatMul_{i}"], [f"y{i}"], f"/model/layers.{i}/fc/MatMul"))
        nodes.append(node("Add", [f"y{i}", "model.layers.0.fc.bias"], [f"x{i + 1}"], f"/model/layers.{i}/fc/Add"))
        initializers.append(tensor(f"onnx::MatMul_{i}", values(H, H, seed=i)))
    return model(nodes, [ids()], [out("x2", ["batch_size", "sequence_length", H])], initializers)


# --- shapes -----------------------------------------------------------------------------------------

def shape_arithmetic():
    """Heads split with sizes from Shape, -1 beside products, repeat-kv by Expand with Where/Equal: nothing of it stays."""
    nodes = [
        node("Shape", ["x"], ["shape"]), constant("zero", np.int64(0)), constant("one", np.int64(1)),
        node("Gather", ["shape", "zero"], ["b"]), node("Gather", ["shape", "one"], ["s"]),
        constant("axis0", np.int64([0])), node("Unsqueeze", ["b", "axis0"], ["b1"]),
        node("Unsqueeze", ["s", "axis0"], ["s1"]), constant("heads", np.int64([2])), constant("rest", np.int64([-1])),
        node("Concat", ["b1", "s1", "heads", "rest"], ["split"], axis=0), node("Reshape", ["x", "split"], ["h"]),
        node("Transpose", ["h"], ["ht"], perm=[0, 2, 1, 3]), constant("axis2", np.int64([2])),
        node("Unsqueeze", ["ht", "axis2"], ["hu"]), constant("three", np.int64([3])), constant("four", np.int64([4])),
        node("Concat", ["b1", "heads", "three", "s1", "four"], ["want"], axis=0), constant("five", np.int64([5])),
        node("ConstantOfShape", ["five"], ["ones"], value=tensor("", np.int64([1]))),
        constant("minus", np.int64(-1)), node("Mul", ["ones", "minus"], ["minuses"]),
        node("Equal", ["want", "minuses"], ["same"]), node("Where", ["same", "ones", "want"], ["target"]),
        node("Expand", ["hu", "target"], ["he"]), constant("six", np.int64([6])),
        node("Concat", ["b1", "six", "s1", "four"], ["joined"], axis=0), node("Reshape", ["he", "joined"], ["y"]),
    ]
    return model(nodes, [out("x", ["batch", "seq", H])], [out("y", ["batch", 6, "seq", 4])])


def slices():
    """Ends beyond the dimension, INT64_MIN, negative steps and starts, ranges over a symbolic size."""
    big = np.iinfo(np.int64)
    nodes = [constant("z", np.int64([0])), constant("max", np.int64([big.max])), constant("min", np.int64([big.min])),
             constant("m1", np.int64([-1])), constant("m3", np.int64([-3])), constant("ax", np.int64([1])),
             constant("two", np.int64([2])),
             node("Slice", ["x", "m3", "max", "ax"], ["tail"]),
             node("Slice", ["x", "m1", "min", "ax", "m1"], ["reversed"]),
             node("Slice", ["x", "z", "max", "z", "two"], ["even"]),
             node("Shape", ["x"], ["shape"]), node("Slice", ["shape", "z", "ax"], ["len1"]),
             node("Squeeze", ["len1"], ["len"]), constant("start", np.int64(2)), constant("step", np.int64(3)),
             node("Range", ["start", "len", "step"], ["range"])]
    return model(nodes, [out("x", ["n", 5])], [out("tail", ["n", 3]), out("reversed", ["n", 5]), out("even", ["m", 5]),
                                               out("range", ["r"], INT64)])


def unified_sizes():
    """Two names for one size meet in an addition; a cache model's `past_sequence_length + 1` is past + sequence."""
    nodes = [node("Concat", ["past", "x"], ["k"], axis=1), node("Add", ["k", "mask"], ["y"]),
             node("Add", ["x", "other"], ["z"])]
    return model(nodes, [out("x", ["batch_size", "sequence_length", H]), out("past", ["batch_size", "past_sequence_length", H]),
                         out("mask", ["batch_size", "past_sequence_length + 1", 1]), out("other", ["b", "sequence_length", H])],
                 [out("y", ["batch_size", "total", H]), out("z", ["batch_size", "sequence_length", H])])


def contradicting_sizes():
    """3 and 5 cannot be added."""
    return model([node("Add", ["x", "y"], ["z"], "bad_add")], [out("x", ["b", 3]), out("y", ["b", 5])], [out("z", ["b", 5])])


# --- semantics by opset -----------------------------------------------------------------------------

def opset11():
    """Softmax over flattened dimensions, axes as attributes, Clip, Dropout, Split by attribute."""
    nodes = [node("Softmax", ["x"], ["s"], axis=1), node("ReduceMean", ["s"], ["m"], axes=[2], keepdims=1),
             node("Squeeze", ["m"], ["q"], axes=[2]), node("Unsqueeze", ["q"], ["u"], axes=[0]),
             node("Dropout", ["u"], ["d", ""], ratio=0.5), node("Split", ["d"], ["a", "b"], axis=2, split=[1, 2])]
    return model(nodes, [out("x", [2, 3, 4])], [out("a", [1, 2, 1]), out("b", [1, 2, 2])], opset=11, ir=6)


def opset18():
    """The same with axes as inputs, Softmax along one dimension, Split by number of outputs."""
    nodes = [node("Softmax", ["x"], ["s"], axis=1), constant("two", np.int64([2])),
             node("ReduceMean", ["s", "two"], ["m"]), node("Squeeze", ["m", "two"], ["q"]),
             constant("zero", np.int64([0])), node("Unsqueeze", ["q", "zero"], ["u"]),
             node("Split", ["u"], ["a", "b"], axis=2, num_outputs=2)]
    return model(nodes, [out("x", [2, 3, 4])], [out("a", [1, 2, 2]), out("b", [1, 2, 1])], opset=18)


def norms():
    """LayerNormalization, RMSNormalization, SimplifiedLayerNormalization in the default domain, SkipSimplified of ORT."""
    weights = [tensor("a.weight", values(H, seed=1)), tensor("a.bias", values(H, seed=2)), tensor("b.weight", values(H, seed=3)),
               tensor("c.weight", values(H, seed=4)), tensor("d.weight", values(H, seed=5))]
    nodes = [node("LayerNormalization", ["x", "a.weight", "a.bias"], ["l"], epsilon=1e-5),
             node("RMSNormalization", ["l", "b.weight"], ["r"], epsilon=1e-6),
             node("SimplifiedLayerNormalization", ["r", "c.weight"], ["s"], epsilon=1e-6, axis=-1),
             node("SkipSimplifiedLayerNormalization", ["s", "x", "d.weight"], ["y", "", "", "sum"], domain="com.microsoft")]
    return model(nodes, [out("x", ["b", "s", H])], [out("y", ["b", "s", H]), out("sum", ["b", "s", H])], weights, opset=23, ir=11,
                 opsets=[("com.microsoft", 1)])


def attention23():
    """Grouped-query attention in 3-D form with a past, and rotation with a cache of batch 1."""
    nodes = [node("Attention", ["q", "k", "v", "", "pk", "pv"], ["y", "nk", "nv"], is_causal=1, q_num_heads=4, kv_num_heads=2,
                  scale=0.25),
             node("RotaryEmbedding", ["x", "cos", "sin"], ["r"])]
    dims = ["b", "s"]
    return model(nodes, [out("q", dims + [16]), out("k", dims + [8]), out("v", dims + [8]), out("pk", ["b", 2, "past", 4]),
                         out("pv", ["b", 2, "past", 4]), out("x", ["b", 2, "s", 8]), out("cos", [1, "s", 4]), out("sin", [1, "s", 4])],
                 [out("y", dims + [16]), out("nk", ["b", 2, "t", 4]), out("nv", ["b", 2, "t", 4]), out("r", ["b", 2, "s", 8])],
                 opset=23, ir=11)


def group_query():
    """com.microsoft.GroupQueryAttention with rotation, as onnxruntime-genai writes it; the mask decides seqlens_k."""
    cache = np.arange(32)[:, None] * (10000.0 ** (-np.arange(2) / 2))[None]
    weights = [tensor("cos_cache", np.cos(cache).astype(np.float32)), tensor("sin_cache", np.sin(cache).astype(np.float32)),
               tensor("one", np.int64([1]))]
    nodes = [node("ReduceSum", ["attention_mask", "one"], ["count"], keepdims=1), node("Sub", ["count", "one"], ["last"]),
             node("Cast", ["last"], ["seqlens_k"], to=TensorProto.INT32), node("Shape", ["attention_mask"], ["shape"]),
             constant("place", np.int64(1)), node("Gather", ["shape", "place"], ["total64"], axis=0),
             node("Cast", ["total64"], ["total"], to=TensorProto.INT32),
             node("GroupQueryAttention", ["q", "k", "v", "", "", "seqlens_k", "total", "cos_cache", "sin_cache"], ["y", "", ""],
                  domain="com.microsoft", num_heads=4, kv_num_heads=2, do_rotary=1)]
    dims = ["b", "s"]
    return model(nodes, [out("q", dims + [16]), out("k", dims + [8]), out("v", dims + [8]), out("attention_mask", dims, INT64)],
                 [out("y", dims + [16])], weights, opset=21, ir=10, opsets=[("com.microsoft", 1)])


# --- structure --------------------------------------------------------------------------------------

def unsorted():
    """The nodes are listed backwards, the domain is spelled ai.onnx."""
    nodes = [node("Neg", ["b"], ["y"], domain="ai.onnx"), node("Exp", ["a"], ["b"]), node("Abs", ["x"], ["a"])]
    return model(nodes, [out("x", [4])], [out("y", [4])])


def cycle():
    """Two nodes read each other."""
    return model([node("Add", ["x", "b"], ["a"], "first"), node("Neg", ["a"], ["b"], "second")], [out("x", [4])], [out("b", [4])])


def dangling():
    """A value that nothing defines."""
    return model([node("Add", ["x", "nowhere"], ["y"], "lost")], [out("x", [4])], [out("y", [4])])


def duplicate():
    """A value that two nodes define."""
    return model([node("Neg", ["x"], ["y"], "one"), node("Abs", ["x"], ["y"], "two")], [out("x", [4])], [out("y", [4])])


def index_of(op, indices, *updates, **attributes):
    """A constant index that the operand of 2 x 3 has not."""
    data = [tensor("i", np.array(indices, np.int64))] + [tensor("u", np.array(u, np.float32)) for u in updates]
    inputs = ["x", "i"] + ["u"] * len(updates)
    return model([node(op, inputs, ["y"], "pick", **attributes)], [out("x", [2, 3])],
                 [helper.make_tensor_value_info("y", FLOAT, None)], data)


def nonsense(op, inputs=("x",), outputs=("y",), dims=(2, 3), declared=(FLOAT, None), constants=(), opset=18, twice=False,
             **attributes):
    """One node that a file can hold and that means nothing."""
    data = [tensor(f"c{i}", np.array(values, np.int64)) for i, values in enumerate(constants)]
    return model([node(op, list(inputs), list(outputs), "odd", **attributes)], [out("x", dims)] * (2 if twice else 1),
                 [helper.make_tensor_value_info("y", *declared)], data, opset=opset, ir=10)


def ir3_inputs():
    """IR 3 lists initializers as inputs."""
    w = tensor("fc.weight", values(H, H))
    return model([node("Gemm", ["x", "fc.weight"], ["y"], transB=1)], [out("x", [4, H]), out("fc.weight", [H, H])],
                 [out("y", [4, H])], [w], opset=11, ir=3)


def functions():
    """A local function with a default attribute, an override, an overload, and an opset of its own."""
    def scale(overload, default):
        nodes = [node("Constant", [], ["c"]), node("Mul", ["a", "c"], ["r"])]
        nodes[0].attribute.add(name="value_float", ref_attr_name="by", type=onnx.AttributeProto.FLOAT)
        f = helper.make_function("local", "Scale", ["a"], ["r"], nodes, [helper.make_opsetid("", 17)],
                                 attribute_protos=[helper.make_attribute("by", default)])
        f.overload = overload
        return f
    nodes = [node("Scale", ["x"], ["a"], "plain", domain="local"), node("Scale", ["a"], ["b"], "given", domain="local", by=3.0),
             node("Scale", ["b"], ["y"], "overloaded", domain="local")]
    nodes[2].overload = "five"
    return model(nodes, [out("x", [4])], [out("y", [4])], functions=[scale("", 2.0), scale("five", 5.0)], ir=10,
                 opsets=[("local", 1)])


def branch():
    """A merged decoder: the branch hangs on an input, both capture outer values."""
    def body(kind, name):
        return helper.make_graph([node(kind, ["x"], [name])], name, [], [out(name, [4])])
    nodes = [node("If", ["use_cache_branch"], ["y"], "choose", then_branch=body("Neg", "n"), else_branch=body("Abs", "a"))]
    return model(nodes, [out("x", [4]), out("use_cache_branch", [1], BOOL)], [out("y", [4])])


def unsupported():
    """Three nodes without a rule, one of them dead; a quantized one."""
    nodes = [node("NonZero", ["x"], ["n"], "find"), node("Det", ["x"], ["d"], "det"),
             node("MatMulNBits", ["x", "x", "x"], ["m"], "quant", domain="com.microsoft", K=4, N=4, bits=4, block_size=16),
             node("Einsum", ["x"], ["dead"], "dead", equation="ij->ji")]
    return model(nodes, [out("x", [4, 4])], [out("n", [2, "k"], INT64), out("d", []), out("m", [4, 4])], opsets=[("com.microsoft", 1)])


def storage_forms():
    """One constant in every field that TensorProto can keep it in."""
    def make(name, kind, data, raw=False):
        if raw:
            return numpy_helper.from_array(data, name)
        t = TensorProto(name=name, data_type=kind, dims=[len(data)])
        if kind in (TensorProto.FLOAT,):
            t.float_data.extend(data)
        elif kind == TensorProto.DOUBLE:
            t.double_data.extend(data)
        elif kind == TensorProto.INT64:
            t.int64_data.extend(data)
        elif kind in (TensorProto.UINT64, TensorProto.UINT32):
            t.uint64_data.extend(data)
        elif kind == TensorProto.FLOAT16:
            t.int32_data.extend(int(v) for v in np.asarray(data, np.float16).view(np.uint16))
        elif kind == TensorProto.BFLOAT16:
            t.int32_data.extend(int(v) >> 16 for v in np.asarray(data, np.float32).view(np.uint32))
        else:
            t.int32_data.extend(int(v) for v in data)
        return t
    tensors = [make("f32", TensorProto.FLOAT, [0.5, -2.0]), make("raw", FLOAT, np.float32([0.25, 8]), raw=True),
               make("f64", TensorProto.DOUBLE, [1.5, 3.0]), make("f16", TensorProto.FLOAT16, [1.5, -4.0]),
               make("bf16", TensorProto.BFLOAT16, [2.5, -1.0]), make("i64", INT64, [-3, 1 << 40]), make("i32", TensorProto.INT32, [-7, 7]),
               make("i8", TensorProto.INT8, [-8, 8]), make("u8", TensorProto.UINT8, [200, 3]), make("bool", BOOL, [True, False]),
               make("u64", TensorProto.UINT64, [1, 2])]
    nodes = [node("Identity", [t.name], [t.name + "_out"]) for t in tensors]
    return model(nodes, [out("x", [2])], [out(t.name + "_out", [2], t.data_type) for t in tensors], tensors)


def external():
    """Weights in two files beside the model, with offsets."""
    a, b = values(H, H, seed=1), values(H, H, seed=2)
    m = model([node("MatMul", ["x", "a.weight"], ["h"]), node("MatMul", ["h", "b.weight"], ["y"])], [out("x", [4, H])], [out("y", [4, H])])
    for name, location, offset in (("a.weight", "external_a.bin", 16), ("b.weight", "external_b.bin", 0)):
        t = m.graph.initializer.add(name=name, data_type=FLOAT, dims=[H, H], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", location), ("offset", str(offset)), ("length", str(4 * H * H))):
            t.external_data.add(key=key, value=value)
    return m, {"external_a.bin": b"\0" * 16 + a.tobytes(), "external_b.bin": b.tobytes()}


def external_with(**changes):
    m, _ = external()
    entry = {e.key: e for e in m.graph.initializer[0].external_data}
    for key, value in changes.items():
        entry[key].value = value
    return m


FILES = {
    "scoped_names": scoped_names, "tables": tables, "signature_names": signature_names, "shared_bias": shared_bias,
    "shape_arithmetic": shape_arithmetic, "slices": slices, "unified_sizes": unified_sizes,
    "contradicting_sizes": contradicting_sizes, "opset11": opset11, "opset18": opset18, "norms": norms,
    "attention23": attention23, "group_query": group_query, "unsorted": unsorted, "cycle": cycle, "dangling": dangling,
    "duplicate": duplicate, "ir3_inputs": ir3_inputs, "functions": functions, "branch": branch, "unsupported": unsupported,
    "storage_forms": storage_forms,
    "constant_weights": lambda: weights_in(constants=True), "initializer_weights": lambda: weights_in(constants=False),
    "mixed_constants": mixed_constants, "no_parameters": no_parameters,
    "no_data": lambda: lacking([8, 4], data=False), "no_columns": lambda: lacking([8, 0], data=True),
    "constant_no_columns": lambda: lacking([8, 0], data=True, constant=True),
    "gather_index": lambda: index_of("Gather", [0, 2], axis=0),
    "gather_elements_index": lambda: index_of("GatherElements", [[0, 3]], axis=1),
    "gather_nd_index": lambda: index_of("GatherND", [[0, 5]]),
    "scatter_nd_index": lambda: index_of("ScatterND", [[-3, 0]], [1]),
    "odd_repeat": lambda: nonsense("Tile", ["x", "c0"], constants=[[-1, 1]]),
    "odd_split": lambda: nonsense("Split", outputs=["y", "z"], axis=1, num_outputs=0),
    "odd_output_type": lambda: nonsense("Relu", declared=(INT64, [2, 3])),
    "odd_output_rank": lambda: nonsense("Relu", declared=(FLOAT, [2, 3, 1])),
    "odd_output_size": lambda: nonsense("Relu", declared=(FLOAT, [2, 4])),
    "odd_size": lambda: nonsense("Relu", dims=[-4, 3]),
    "odd_empty": lambda: nonsense("Relu", dims=[0, 3]),
    "odd_elements": lambda: nonsense("Relu", dims=[2**40, 2**40]),
    "odd_twice": lambda: nonsense("Relu", twice=True),
    "odd_causal": lambda: nonsense("Attention", ["x"] * 3, dims=[1, 2, 3, 4], opset=23, is_causal=7),
    "odd_scale": lambda: nonsense("Attention", ["x"] * 3, dims=[1, 2, 3, 4], opset=23, scale=float("nan")),
    "odd_mode": lambda: nonsense("Attention", ["x"] * 3, dims=[1, 2, 3, 4], opset=23, qk_matmul_output_mode=9),
    "odd_inputs": lambda: nonsense("Relu", ["x", "x"]),
    "odd_outputs": lambda: nonsense("Relu", outputs=["y", "z"]),
    "odd_attribute": lambda: nonsense("Softmax", axes=1),
    "odd_division": lambda: nonsense("Div", ["c0", "c1"], constants=[[6], [0]]),
    "odd_remainder": lambda: nonsense("Mod", ["c0", "c1"], constants=[[6], [0]]),
    "odd_target": lambda: nonsense("Reshape"),
    "odd_index": lambda: nonsense("Gather", ["x", "x"]),
    "odd_opset": lambda: nonsense("Relu", opset=29),
    "external_escapes": lambda: external_with(location="../secret.bin"),
    "external_missing": lambda: external_with(location="nowhere.bin"),
    "external_short": lambda: external_with(offset="1024"),
    "external_length": lambda: external_with(length="12"),
}


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "test", "Import", "Onnx", "Inputs")
    os.makedirs(folder, exist_ok=True)
    for name, build in FILES.items():
        with open(os.path.join(folder, name + ".onnx"), "wb") as f:
            f.write(build().SerializeToString(deterministic=True))
    m, files = external()
    with open(os.path.join(folder, "external.onnx"), "wb") as f:
        f.write(m.SerializeToString(deterministic=True))
    for name, data in files.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
