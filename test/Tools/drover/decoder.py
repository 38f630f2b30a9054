"""Writes a decoder of two layers as tfm, the first as it is, the others with one thing that has no price.
usage: decoder.py FOLDER"""
import os
import re
import sys

H, KV, FFN, VOCABULARY, S = 16, 8, 32, 32, 8
X = f"tensor<1x{S}x{H}xf32>"


def linear(name, value, weight, width, source=H):
    return f"%{name} = tfm.linear %{value}, %{weight} : (tensor<1x{S}x{source}xf32>, tensor<{width}x{source}xf32>) -> tensor<1x{S}x{width}xf32>"


def norm(name, value, weight):
    return f"%{name} = tfm.rms_norm %{value}, %{weight} {{eps = 1.0e-6 : f64}} : ({X}, tensor<{H}xf32>) -> {X}"


def decoder():
    parameters = [("table", VOCABULARY, H), ("wpe", S, H)]
    body = [f"%e = tfm.embedding %ids, %table : (tensor<1x{S}xi64>, tensor<{VOCABULARY}x{H}xf32>) -> {X}",
            f"%positions = tfm.iota {{axis = 1 : i64}} : tensor<1x{S}xi64>",
            f"%p = tfm.embedding %positions, %wpe : (tensor<1x{S}xi64>, tensor<{S}x{H}xf32>) -> {X}",
            f"%x0 = arith.addf %e, %p : {X}"]
    for i in range(2):
        parameters += [(f"n{i}", H), (f"wq{i}", H, H), (f"wk{i}", KV, H), (f"wv{i}", KV, H), (f"wo{i}", H, H), (f"m{i}", H),
                       (f"up{i}", FFN, H), (f"down{i}", H, FFN)]
        body += [norm(f"h{i}", f"x{i}", f"n{i}"),
                 linear(f"q{i}", f"h{i}", f"wq{i}", H), linear(f"k{i}", f"h{i}", f"wk{i}", KV), linear(f"v{i}", f"h{i}", f"wv{i}", KV),
                 f"%a{i}, %l{i} = tfm.attention %q{i}, %k{i}, %v{i} causal top_left {{num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.35 : f64}} : "
                 f"({X}, tensor<1x{S}x{KV}xf32>, tensor<1x{S}x{KV}xf32>) -> ({X}, tensor<1x2x{S}xf32>)",
                 linear(f"o{i}", f"a{i}", f"wo{i}", H),
                 f"%y{i} = arith.addf %x{i}, %o{i} : {X}",
                 norm(f"g{i}", f"y{i}", f"m{i}"),
                 linear(f"u{i}", f"g{i}", f"up{i}", FFN),
                 f"%s{i} = tfm.gelu %u{i} {{kind = 1 : i32}} : (tensor<1x{S}x{FFN}xf32>) -> tensor<1x{S}x{FFN}xf32>",
                 linear(f"d{i}", f"s{i}", f"down{i}", H, FFN),
                 f"%x{i + 1} = arith.addf %y{i}, %d{i} : {X}"]
    parameters += [("nf", H), ("head", VOCABULARY, H)]
    body += [norm("hf", "x2", "nf"), linear("logits", "hf", "head", VOCABULARY)]
    return parameters, body


def text(parameters, body, width=VOCABULARY):
    arguments = [f'%ids: tensor<1x{S}xi64> {{tfm.input = "input_ids"}}']
    arguments += [f'%{name}: tensor<{"x".join(map(str, shape))}xf32> {{tfm.parameter = "{name}"}}' for name, *shape in parameters]
    lines = "\n    ".join(body)
    return (f"func.func @model({', '.join(arguments)}) -> (tensor<1x{S}x{width}xf32> {{tfm.output = \"logits\"}}) {{\n    {lines}\n"
            f"    return %logits : tensor<1x{S}x{width}xf32>\n}}\n")


def edited(*replacements):
    """The decoder with patterns replaced in its operations, each at least once."""
    parameters, body = decoder()
    lines = "\n".join(body)
    for pattern, replacement, count in replacements:
        new = re.sub(pattern, replacement, lines, count=count)
        assert new != lines, pattern
        lines = new
    return text(parameters, lines.split("\n"))


def extended(parameters, *additions):
    """The decoder with more parameters, and values added to others: (value, operations of the added one, its name)."""
    all_parameters, body = decoder()
    for value, operations, name in additions:
        place = next(i for i, line in enumerate(body) if line.startswith(f"%{value} "))
        body[place] = body[place].replace(f"%{value} ", f"%{value}_alone ", 1)
        body[place + 1:place + 1] = operations + [f"%{value} = arith.addf %{value}_alone, %{name} : {X}"]
    return text(all_parameters + parameters, body)


def variants():
    yield "whole", text(*decoder())
    yield "bidirectional", edited(("causal top_left ", "", 1))
    yield "window", edited(("scale = 0.35 : f64", "scale = 0.35 : f64, window = 4 : i64", 1))
    yield "heads", edited((r"(%a1, .*)num_heads = 2(.*)num_kv_heads = 1(.*)1x2x8xf32", r"\1num_heads = 4\2num_kv_heads = 2\g<3>1x4x8xf32", 1))
    scores = f"tensor<1x{S}x{S}xf32>"
    yield "product", extended([], ("o0", [f"%t = tfm.transpose %x0 {{permutation = array<i64: 0, 2, 1>}} : {X} -> tensor<1x{H}x{S}xf32>",
                                          f"%z = tfm.matmul %x0, %t : ({X}, tensor<1x{H}x{S}xf32>) -> {scores}",
                                          f"%w = tfm.matmul %z, %x0 : ({scores}, {X}) -> {X}"], "w"))
    yield "table", extended([("types", 9, H)],
                            ("p", [f"%r = tfm.embedding %positions, %types : (tensor<1x{S}xi64>, tensor<9x{H}xf32>) -> {X}"], "r"))
    yield "products", text([("table", VOCABULARY, H)], [
        f"%e = tfm.embedding %ids, %table : (tensor<1x{S}xi64>, tensor<{VOCABULARY}x{H}xf32>) -> {X}",
        f"%logits, %l = tfm.attention %e, %e, %e causal top_left {{num_heads = 2 : i64, num_kv_heads = 2 : i64, scale = 0.35 : f64}} : "
        f"({X}, {X}, {X}) -> ({X}, tensor<1x2x{S}xf32>)"], H)
    yield "head", edited((r"%p = [^\n]*", f"%p = arith.addf %e, %e : {X}", 1), (r"tensor<32x16xf32>\) -> tensor<1x8x16xf32>", "tensor<33x16xf32>) -> tensor<1x8x16xf32>", 1)) \
        .replace("%table: tensor<32x16xf32>", "%table: tensor<33x16xf32>")
    yield "count", extended([("extra", H, H)], ("o0", [linear("w", "h0", "extra", H)], "w"))
    yield "forms", edited((r"(%u1 = .*)32x16xf32(.*)1x8x32xf32", r"\g<1>48x16xf32\g<2>1x8x48xf32", 1), (r"(%s1 = .*)1x8x32xf32(.*)1x8x32xf32", r"\g<1>1x8x48xf32\g<2>1x8x48xf32", 1),
                          (r"(%d1 = .*)1x8x32xf32>, tensor<16x32xf32>", r"\g<1>1x8x48xf32>, tensor<16x48xf32>", 1)) \
        .replace("%up1: tensor<32x16xf32>", "%up1: tensor<48x16xf32>").replace("%down1: tensor<16x32xf32>", "%down1: tensor<16x48xf32>")
    yield "weights", extended([("extra0", H, H), ("extra1", H, H)], ("o0", [linear("w0", "h0", "extra0", H)], "w0"),
                              ("o1", [linear("w1", "h1", "extra1", H)], "w1"))
    yield "norms", edited((r"%hf = [^\n]*", f"%hf = arith.addf %x2, %x2 : {X}", 1))
    yield "kinds", edited((r"%hf = [^\n]*", f"%hf = tfm.layer_norm %x2 weight %nf {{eps = 1.0e-6 : f64}} : ({X}, tensor<{H}xf32>) -> {X}", 1))
    yield "parameters", extended([("other", 1, S, H)], ("p", [], "other"))
    # Keys of half the tokens.
    short = f"tensor<1x4x{H}xf32>"
    halves = [(f"(%k{i} = tfm.linear)", f"%b{i} = tfm.slice %h{i} {{offsets = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>}} : {X} -> {short}\n    \\1", 1)
              for i in range(2)]
    yield "flops", edited(*halves, (r"(%[kv])(\d) = tfm.linear %h\d(.*)1x8x16xf32(.*)1x8x8xf32", r"\1\2 = tfm.linear %b\2\g<3>1x4x16xf32\g<4>1x4x8xf32", 0),
                          (r"tensor<1x8x8xf32>, tensor<1x8x8xf32>\) -> \(", "tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> (", 0), ("top_left", "bottom_right", 0))


for name, module in variants():
    with open(os.path.join(sys.argv[1], name + ".mlir"), "w") as file:
        file.write(module)
