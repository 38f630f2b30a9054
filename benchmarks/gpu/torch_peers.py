"""What PyTorch does on this GPU: `attention` by cuDNN (SDPA), or a training step of the Llama of a config.json, compiled.

usage: torch_peers.py attention | CONFIG.json
The last line is a JSON object, name -> text. Shapes of attention are those of benchmarks/gpu/prepare.
"""
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

TOKENS, HEADS = 16384, 16


def seconds_of(call, turns=5, calls=10):
    for _ in range(3):
        call()
    times = []
    for _ in range(turns):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / calls)
    return min(times)


def attention():
    found = {}
    for length in (2048, 4096, 8192, 16384):
        for head in (64, 128):
            batch = TOKENS // length
            q, k, v = (torch.randn(batch, HEADS, length, head, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
            flops = 4 * batch * HEADS * length * length * head // 2
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                with torch.no_grad():
                    forward = seconds_of(lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=True))
                out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                gradient = torch.randn_like(out)
                backward = seconds_of(lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True))
            found[f"attention {head} {length} forward"] = f"cuDNN by SDPA: {flops / forward / 1e12:.1f}"
            found[f"attention {head} {length} backward"] = f"cuDNN by SDPA: {2.5 * flops / backward / 1e12:.1f}"
    return found


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv, width = c["num_attention_heads"], c["num_key_value_heads"], c["hidden_size"]
        self.head = width // self.heads
        linear = lambda a, b: nn.Linear(a, b, bias=False)
        self.q, self.k, self.v = linear(width, width), linear(width, self.kv * self.head), linear(width, self.kv * self.head)
        self.o, self.gate, self.up = linear(width, width), linear(width, c["intermediate_size"]), linear(width, c["intermediate_size"])
        self.down = linear(c["intermediate_size"], width)
        self.norm1, self.norm2 = (nn.RMSNorm(width, c["rms_norm_eps"]) for _ in range(2))

    def rotate(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        h = self.norm1(x)
        split = lambda y, heads: y.view(batch, length, heads, self.head).transpose(1, 2)
        q, k, v = self.rotate(split(self.q(h), self.heads), cos, sin), self.rotate(split(self.k(h), self.kv), cos, sin), split(self.v(h), self.kv)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(batch, length, -1))
        h = self.norm2(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["num_hidden_layers"]))
        self.norm = nn.RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        head, length = c["hidden_size"] // c["num_attention_heads"], c["max_position_embeddings"]
        angles = torch.outer(torch.arange(length), c["rope_theta"] ** (-torch.arange(0, head, 2) / head)).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, ids, labels):
        x = self.embed(ids)
        cos, sin = (t[:ids.shape[1]].to(torch.bfloat16) for t in (self.cos, self.sin))
        for layer in self.layers:
            x = layer(x, cos, sin)
        logits = functional.linear(self.norm(x), self.embed.weight)
        return functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten())


def step(path):
    with open(path) as file:
        c = json.load(file)
    model = Llama(c).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    compiled, length, micro, turns = torch.compile(model), c["max_position_embeddings"], 4, 2  # microbatches and sizes of llama-1b
    ids = torch.randint(c["vocab_size"], (turns, micro, length + 1), device="cuda")

    def one():
        for batch in ids:
            with torch.autocast("cuda", torch.bfloat16):
                loss = compiled(batch[:, :-1].contiguous(), batch[:, 1:].contiguous()) / turns
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    times = []
    for _ in range(6):
        torch.cuda.synchronize()
        start = time.perf_counter()
        one()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return {"torch.compile, autocast to bf16": f"{turns * micro * length / statistics.median(times[3:]):.0f} tokens/s"}


if not torch.cuda.is_available():
    sys.exit("PyTorch sees no GPU")
print(json.dumps(attention() if sys.argv[1] == "attention" else step(sys.argv[1])))
