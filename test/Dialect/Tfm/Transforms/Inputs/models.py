#!/usr/bin/env python3
"""Prints a small model as a tfm program, the way import leaves it.

usage: models.py llama|gpt2 [key=value ..]
  layers, batch, length, hidden, vocab, heads, kv, inner   sizes; batch and length may be ? (symbolic)
  tie=1        the head uses the embedding's table
  windows=a,b  sliding window of each layer in turn, 0 for none
  nope=n       every n-th layer has no rope
  wide=n       layer n has twice the inner width
  caches=1     outputs the keys of each layer as well
"""
import sys


class Program:
    def __init__(self, o):
        self.o, self.args, self.body, self.outputs, self.count = o, [], [], [], 0
        self.rows = f"{o['batch']}x{o['length']}"
        self.symbolic = "?" in self.rows

    def name(self):
        self.count += 1
        return f"%{self.count - 1}"

    def act(self, width):
        return f"tensor<{self.rows}x{width}xf32>"

    def input(self, name, dtype="i64"):
        attrs = f'tfm.input = "{name}"'
        if self.symbolic:
            attrs += ", tfm.shape = affine_map<()[s0, s1] -> (s0, s1)>"
        self.args.append((f"%{name}", f"tensor<{self.rows}x{dtype}>", attrs))
        return f"%{name}"

    def parameter(self, name, *shape):
        value = "%p" + str(len(self.args))
        self.args.append((value, f"tensor<{'x'.join(map(str, shape))}xf32>", f'tfm.parameter = "{name}"'))
        return value

    def op(self, text, operands, types, result, attrs=""):
        value = self.name()
        self.body.append(f"{value} = {text} {', '.join(operands)}{' ' + attrs if attrs else ''} : ({', '.join(types)}) -> {result}")
        return value

    def linear(self, x, k, n, name, in_out=False, weight=None):
        shape = (k, n) if in_out else (n, k)
        w = weight or self.parameter(name + ".weight", *shape)
        return self.op("tfm.linear", [x, w], [self.act(k), f"tensor<{shape[0]}x{shape[1]}xf32>"], self.act(n),
                       "in_out" if in_out else "")

    def bias(self, x, n, name):
        return self.op("tfm.bias_add", [x, self.parameter(name + ".bias", n)], [self.act(n), f"tensor<{n}xf32>"], self.act(n))

    def add(self, a, b, n):
        value = self.name()
        self.body.append(f"{value} = arith.addf {a}, {b} : {self.act(n)}")
        return value

    def positions(self):
        shape = ", shape = affine_map<()[s0, s1] -> (1, s1)>" if self.symbolic else ""
        value, kind = self.name(), f"tensor<1x{self.o['length']}xi64>"
        self.body.append(f"{value} = tfm.iota {{axis = 1 : i64{shape}}} : {kind}")
        return value, kind

    def embedding(self, ids, table, n, h):
        return self.op("tfm.embedding", [ids, table], [f"tensor<{self.rows}xi64>", f"tensor<{n}x{h}xf32>"], self.act(h))

    def rms_norm(self, x, h, name):
        return self.op("tfm.rms_norm", [x, self.parameter(name + ".weight", h)], [self.act(h), f"tensor<{h}xf32>"], self.act(h),
                       "{eps = 1.0e-5 : f64}")

    def layer_norm(self, x, h, name):
        w, b, value = self.parameter(name + ".weight", h), self.parameter(name + ".bias", h), self.name()
        self.body.append(f"{value} = tfm.layer_norm {x} weight {w} bias {b} {{eps = 1.0e-5 : f64}} : "
                         f"({self.act(h)}, tensor<{h}xf32>, tensor<{h}xf32>) -> {self.act(h)}")
        return value

    def rope(self, x, width, size, positions):
        return self.op("tfm.rope", [x, positions[0]], [self.act(width), positions[1]], self.act(width),
                       f"{{head_size = {size} : i64, rotary_dim = {size} : i64, theta = 1.0e4 : f64}}")

    def attention(self, q, k, v, h, kvw, layer):
        o, value = self.o, self.name()
        windows = [int(w) for w in str(o["windows"]).split(",")]
        window = windows[layer % len(windows)]
        attrs = f"num_heads = {o['heads']} : i64, num_kv_heads = {o['kv']} : i64, scale = 0.5 : f64"
        if window:
            attrs += f", window = {window} : i64"
        lse = f"tensor<{o['batch']}x{o['heads']}x{o['length']}xf32>"
        self.body.append(f"{value}:2 = tfm.attention {q}, {k}, {v} causal top_left {{{attrs}}} : "
                         f"({self.act(h)}, {self.act(kvw)}, {self.act(kvw)}) -> ({self.act(h)}, {lse})")
        return value + "#0"

    def slice(self, x, full, offset, n):
        shape = f", shape = affine_map<()[s0, s1] -> (s0, s1, {n})>" if self.symbolic else ""
        value = self.name()
        self.body.append(f"{value} = tfm.slice {x} {{offsets = array<i64: 0, 0, {offset}>, strides = array<i64: 1, 1, 1>{shape}}} : "
                         f"{self.act(full)} -> {self.act(n)}")
        return value

    def text(self):
        # Inputs first, then parameters in the order of their first use.
        args = [a for a in self.args if "tfm.input" in a[2]] + [a for a in self.args if "tfm.input" not in a[2]]
        header = 'module attributes {tfm.symbols = ["batch_size", "sequence_length"]} {' if self.symbolic else "module {"
        lines = [header, "  func.func @model("]
        lines.append(",\n".join(f"      {v}: {t} {{{a}}}" for v, t, a in args) + ")")
        lines.append("      -> (" + ", ".join(f'{t} {{tfm.output = "{n}"}}' for v, t, n in self.outputs) + ") {")
        lines += ["    " + line for line in self.body]
        lines.append(f"    return {', '.join(v for v, t, n in self.outputs)} : {', '.join(t for v, t, n in self.outputs)}")
        return "\n".join(lines + ["  }", "}"])


def llama(o):
    p, h = Program(o), o["hidden"]
    size = h // o["heads"]
    kvw = o["kv"] * size
    ids = p.input("input_ids")
    table = p.parameter("model.embed_tokens.weight", o["vocab"], h)
    positions = p.positions()
    x, caches = p.embedding(ids, table, o["vocab"], h), []
    for layer in range(o["layers"]):
        name = f"model.layers.{layer}."
        inner = o["inner"] * (2 if layer == o["wide"] else 1)
        n = p.rms_norm(x, h, name + "input_layernorm")
        q = p.linear(n, h, h, name + "self_attn.q_proj")
        k = p.linear(n, h, kvw, name + "self_attn.k_proj")
        v = p.linear(n, h, kvw, name + "self_attn.v_proj")
        if not o["nope"] or (layer + 1) % o["nope"]:
            q, k = p.rope(q, h, size, positions), p.rope(k, kvw, size, positions)
        caches.append((k, p.act(kvw), f"present.{layer}.key"))
        a = p.linear(p.attention(q, k, v, h, kvw, layer), h, h, name + "self_attn.o_proj")
        x = p.add(x, a, h)
        n = p.rms_norm(x, h, name + "post_attention_layernorm")
        g, u = p.linear(n, h, inner, name + "mlp.gate_proj"), p.linear(n, h, inner, name + "mlp.up_proj")
        s = p.op("tfm.swiglu", [g, u], [p.act(inner)] * 2, p.act(inner))
        x = p.add(x, p.linear(s, inner, h, name + "mlp.down_proj"), h)
    n = p.rms_norm(x, h, "model.norm")
    logits = p.linear(n, h, o["vocab"], "lm_head", weight=table if o["tie"] else None)
    p.outputs = [(logits, p.act(o["vocab"]), "logits")] + (caches if o["caches"] else [])
    return p.text()


def gpt2(o):
    p, h, inner = Program(o), o["hidden"], o["inner"]
    ids = p.input("input_ids")
    table = p.parameter("transformer.wte.weight", o["vocab"], h)
    wpe = p.parameter("transformer.wpe.weight", 32, h)
    positions = p.positions()
    row = p.op("tfm.embedding", [positions[0], wpe], [positions[1], f"tensor<32x{h}xf32>"], f"tensor<1x{o['length']}x{h}xf32>")
    spread, shape = p.name(), f" {{shape = affine_map<()[s0, s1] -> (s0, s1, {h})>}}" if p.symbolic else ""
    p.body.append(f"{spread} = tfm.broadcast {row}{shape} : tensor<1x{o['length']}x{h}xf32> -> {p.act(h)}")
    x = p.add(p.embedding(ids, table, o["vocab"], h), spread, h)
    for layer in range(o["layers"]):
        name = f"transformer.h.{layer}."
        n = p.layer_norm(x, h, name + "ln_1")
        packed = p.bias(p.linear(n, h, 3 * h, name + "attn.c_attn", in_out=True), 3 * h, name + "attn.c_attn")
        q, k, v = (p.slice(packed, 3 * h, i * h, h) for i in range(3))
        a = p.attention(q, k, v, h, h, layer)
        x = p.add(x, p.bias(p.linear(a, h, h, name + "attn.c_proj", in_out=True), h, name + "attn.c_proj"), h)
        n = p.layer_norm(x, h, name + "ln_2")
        f = p.bias(p.linear(n, h, inner, name + "mlp.c_fc", in_out=True), inner, name + "mlp.c_fc")
        g = p.op("tfm.gelu", [f], [p.act(inner)], p.act(inner), "{kind = 1 : i32}")
        x = p.add(x, p.bias(p.linear(g, inner, h, name + "mlp.c_proj", in_out=True), h, name + "mlp.c_proj"), h)
    n = p.layer_norm(x, h, "transformer.ln_f")
    logits = p.linear(n, h, o["vocab"], "lm_head", weight=table if o["tie"] else None)
    p.outputs = [(logits, p.act(o["vocab"]), "logits")]
    return p.text()


def main():
    options = dict(layers=2, batch=2, length=4, hidden=16, vocab=24, heads=4, kv=2, inner=20, tie=0, windows="0", nope=0, wide=-1,
                   caches=0)
    for arg in sys.argv[2:]:
        key, value = arg.split("=")
        assert key in options, key
        options[key] = value if value == "?" or key == "windows" else int(value)
    if sys.argv[1] == "gpt2":
        options["kv"] = options["heads"]
    print({"llama": llama, "gpt2": gpt2}[sys.argv[1]](options))


if __name__ == "__main__":
    main()
