#!/usr/bin/env python3
"""Trains a small decoder (llama or gpt2) with PyTorch in float32 and records what drover must reproduce.

usage: make_reference.py CONFIG.json TEXT -o FOLDER [--seed N] [--seq-len S] [--global-batch G] [--steps K]
Writes into FOLDER: model.onnx (through build_onnx.py), config.json, tokens.u16, reference.json (settings and, for each of three
variants, loss, gradient norm and learning rate of every step), gradients_step1*.safetensors, weights_after.safetensors.
The variants: plain; documents (token 10 ends a document and belongs to it, attention stays inside); ignore (labels equal to token 32
do not count). Needs torch, numpy, onnx.
"""
import argparse
import json
import math
import os
import shutil
import subprocess
import sys

import numpy as np
import torch
import torch.nn.functional as F

from drover.decoder import random_parameters, read_config, sizes
from drover.tensors import write_safetensors


def rms_norm(x, weight, eps):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def attend(q, k, v, mask):
    """[B, H, S, D] queries over grouped keys and values."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), -1) @ v


def forward(config, p, ids, mask):
    """Logits of a batch. `mask` is [B, 1, S, S], true where attention is allowed."""
    s = sizes(config)
    batch, length = ids.shape

    def split(x, count):
        return x.view(batch, length, count, s["head_size"]).transpose(1, 2)

    def merge(x):
        return x.transpose(1, 2).reshape(batch, length, -1)

    if config["model_type"] == "gpt2":
        def norm(x, base):
            return F.layer_norm(x, (s["hidden"],), p[base + ".weight"], p[base + ".bias"], s["eps"])

        def project(x, base):
            return x @ p[base + ".weight"] + p[base + ".bias"]

        x = p["transformer.wte.weight"][ids] + p["transformer.wpe.weight"][:length]
        for layer in range(s["layers"]):
            base = f"transformer.h.{layer}."
            q, k, v = (split(t, s["heads"]) for t in project(norm(x, base + "ln_1"), base + "attn.c_attn").chunk(3, -1))
            x = x + project(merge(attend(q, k, v, mask)), base + "attn.c_proj")
            inner = F.gelu(project(norm(x, base + "ln_2"), base + "mlp.c_fc"), approximate="tanh")
            x = x + project(inner, base + "mlp.c_proj")
        return norm(x, "transformer.ln_f") @ p["transformer.wte.weight" if s["tied"] else "lm_head.weight"].T

    d = s["head_size"]
    angles = torch.arange(length).float()[:, None] * (1.0 / s["theta"] ** (torch.arange(0, d, 2).float() / d))
    angles = torch.cat([angles, angles], -1)
    cos, sin = angles.cos(), angles.sin()
    x = p["model.embed_tokens.weight"][ids]
    for layer in range(s["layers"]):
        base = f"model.layers.{layer}."
        h = rms_norm(x, p[base + "input_layernorm.weight"], s["eps"])
        q, k, v = (split(h @ p[f"{base}self_attn.{n}_proj.weight"].T, c)
                   for n, c in (("q", s["heads"]), ("k", s["kv_heads"]), ("v", s["kv_heads"])))
        y = merge(attend(rotate(q, cos, sin), rotate(k, cos, sin), v, mask))
        x = x + y @ p[base + "self_attn.o_proj.weight"].T
        h = rms_norm(x, p[base + "post_attention_layernorm.weight"], s["eps"])
        gate, up = (h @ p[f"{base}mlp.{n}_proj.weight"].T for n in ("gate", "up"))
        x = x + (F.silu(gate) * up) @ p[base + "mlp.down_proj.weight"].T
    head = "model.embed_tokens.weight" if s["tied"] else "lm_head.weight"
    return rms_norm(x, p["model.norm.weight"], s["eps"]) @ p[head].T


def train(config, start, tokens, settings, variant):
    """Rows of (step, loss, norm, lr), the gradients of step 1 and the weights after the last step."""
    torch.manual_seed(0)
    p = {name: torch.tensor(value, requires_grad=True) for name, value in start.items()}
    groups = [dict(params=[v for v in p.values() if v.dim() >= 2], weight_decay=settings["weight_decay"]),
              dict(params=[v for v in p.values() if v.dim() < 2], weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=settings["lr"], betas=(settings["beta1"], settings["beta2"]), eps=settings["eps"])
    length, batch, steps, warmup = settings["seq_len"], settings["global_batch"], settings["steps"], settings["warmup_steps"]
    count = (len(tokens) - 1) // length
    rows, first = [], None
    for step in range(1, steps + 1):
        picks = [((step - 1) * batch + i) % count * length for i in range(batch)]
        ids = torch.tensor(np.stack([tokens[a:a + length] for a in picks]).astype(np.int64))
        labels = torch.tensor(np.stack([tokens[a + 1:a + length + 1] for a in picks]).astype(np.int64))
        mask = torch.tril(torch.ones(length, length, dtype=torch.bool))[None, None].expand(batch, 1, -1, -1)
        if variant == "documents":
            documents = torch.cumsum((ids == settings["separator"]).long(), -1) - (ids == settings["separator"]).long()
            mask = mask & (documents[:, None, :, None] == documents[:, None, None, :])
        if variant == "ignore":
            labels = labels.masked_fill(labels == settings["ignore_label"], -100)
        rate = settings["lr"] * step / warmup if step <= warmup else settings["min_lr"] + (settings["lr"] - settings["min_lr"]) * 0.5 * (
            1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(config, p, ids, mask).flatten(0, 1), labels.flatten(), ignore_index=-100)
        loss.backward()
        if step == 1:
            first = {name: value.grad.numpy().copy() for name, value in p.items()}
        norm = torch.nn.utils.clip_grad_norm_(p.values(), settings["grad_clip"])
        optimizer.step()
        rows.append({"step": step, "loss": loss.item(), "grad_norm": norm.item(), "lr": rate})
    return rows, first, {name: value.detach().numpy() for name, value in p.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("text", help="bytes below the vocabulary are the tokens")
    parser.add_argument("-o", "--output", required=True)
    for name, default in dict(seed=0, seq_len=24, global_batch=8, steps=20).items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    arguments = parser.parse_args()
    config = read_config(arguments.config)
    os.makedirs(arguments.output, exist_ok=True)
    path = lambda name: os.path.join(arguments.output, name)
    shutil.copy(arguments.config, path("config.json"))
    builder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "build_onnx.py")
    subprocess.run([sys.executable, builder, arguments.config, "-o", path("model.onnx"), "--seed", str(arguments.seed)], check=True)

    settings = dict(optimizer="adamw", lr=2e-3, min_lr=2e-4, warmup_steps=5, beta1=0.9, beta2=0.95, eps=1e-6, weight_decay=0.1, grad_clip=1.0,
                    global_batch=arguments.global_batch, seq_len=arguments.seq_len, steps=arguments.steps, separator=10, ignore_label=32)
    with open(arguments.text, "rb") as file:
        tokens = np.frombuffer(file.read(), np.uint8).astype("<u2")
    needed = arguments.global_batch * arguments.steps * arguments.seq_len + 1
    # Fewer sequences than the run takes: the data order must wrap around.
    tokens = tokens[:needed - arguments.seq_len * 3] % config["vocab_size"]
    tokens.tofile(path("tokens.u16"))

    start = random_parameters(config, arguments.seed)
    reference = {"settings": settings, "torch": torch.__version__, "parameters": int(sum(v.size for v in start.values()))}
    for variant in ("plain", "documents", "ignore"):
        rows, gradients, weights = train(config, start, tokens, settings, variant)
        suffix = "" if variant == "plain" else "_" + variant
        reference["rows" + suffix] = rows
        write_safetensors(path(f"gradients_step1{suffix}.safetensors"), gradients)
        if variant == "plain":
            write_safetensors(path("weights_after.safetensors"), weights)
    with open(path("reference.json"), "w") as file:
        json.dump(reference, file, indent=1)
    print(f"{arguments.output}: loss {reference['rows'][0]['loss']:.4f} -> {reference['rows'][-1]['loss']:.4f}")


if __name__ == "__main__":
    main()
