#!/usr/bin/env python3
"""Collective bytes of a rank three ways: closed forms, `drover check --json`, and what the runtime counted; its memory two ways.

usage: rank_reports.py --drover PATH [--list]

The model is a Llama of 4 layers from a config.json. The closed forms are those of
- tensor parallelism: Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters (arXiv 2104.04473), section 3.2:
  8 b s h (t-1)/t elements per layer and microbatch; Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models
  (arXiv 2205.05198): the same bytes as gathers and reduce-scatters, and two gathers more where the backward gathers its input again:
  10 b s h (t-1)/t, which is what drover does (docs/communication.md), also where a backward is split (zb-h1),
- context parallelism: gathers of K and V in both directions and a reduce-scatter of their gradients, 6 b s n_kv d_h/t (c-1)/c
  (Llama 3, arXiv 2407.21783, section 3.3.2),
- sharded data parallelism: Rajbhandari et al., ZeRO (arXiv 1910.02054), section 7; one gather in the compute dtype and one reduction in
  f32 of a rank's parameters per step, (n-1)/n of them each; twice that for the all-reduce of zero 0,
- pipelines: b s/(c t) h per boundary, direction and microbatch (arXiv 2104.04473, section 2).
What every rank of the runtime issues in a step must be the closed form of its stage, and the largest over the stages what check prints.
What every rank allocates must be what check says of its stage.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

from running import run

VOCABULARY, WIDTH, HIDDEN, HEADS, KV_HEADS, LAYERS, SEQUENCE = 256, 64, 96, 4, 2, 4, 32
SIZES = {"f32": 4, "bf16": 2, "f64": 8, "i64": 8}
NAMES = {"kv_heads": KV_HEADS, "tied": False}
PLAN = {"tp": 1, "cp": 1, "pp": 1, "dp": 1, "chunks": 1, "zero": 2, "reduce-every": "step", "recompute": "none", "compute-dtype": "f32",
        "microbatch": 1, "tp-overlap": "none", "schedule": None}


class Layout:
    def __init__(self, microbatches, **options):
        self.model = {name: options.pop(name, value) for name, value in NAMES.items()}
        self.plan = {name: options.pop(name.replace("-", "_"), value) for name, value in PLAN.items()}
        assert not options, options
        self.microbatches = microbatches
        for name in ("tp", "cp", "pp", "dp", "chunks", "zero", "microbatch"):
            setattr(self, name, self.plan[name])
        self.dtype, self.every, self.recompute = (self.plan[name] for name in ("compute-dtype", "reduce-every", "recompute"))
        self.rings = self.plan["tp-overlap"] == "ring"
        self.ranks, self.fsdp = self.tp * self.cp * self.pp * self.dp, self.cp * self.dp

    def options(self):
        return [f"--{name}={value}" for name, value in self.plan.items() if value is not None] + [
            f"--global-batch={self.microbatches * self.dp * self.microbatch}", f"--seq-len={SEQUENCE}", "--task=train"]

    def __str__(self):
        changed = [f"{name}={value}" for name, value in self.plan.items() if value != PLAN[name]]
        changed += [f"{name}={value}" for name, value in self.model.items() if value != NAMES[name]]
        return f"M={self.microbatches} " + " ".join(changed)

    def stage_of(self, rank):
        return rank // (self.tp * self.cp) % self.pp

    def chunks_of(self, stage):
        """(layers, has embedding, has head) of each chunk of a stage."""
        total = self.pp * self.chunks
        counts = [LAYERS // total + (c < LAYERS % total) for c in range(total)]
        return [(counts[c], c == 0, c == total - 1) for c in range(stage, total, self.pp)]


LAYOUTS = [
    Layout(2, tp=2), Layout(2, tp=2, microbatch=2), Layout(2, tp=4), Layout(2, tp=4, cp=2, compute_dtype="bf16"),
    Layout(2, tp=4, kv_heads=1), Layout(2, tp=2, cp=2, recompute="selective"), Layout(2, tp=2, cp=2, recompute="full"),
    Layout(2, cp=4), Layout(2, cp=2, dp=2, compute_dtype="bf16"), Layout(4, pp=2, chunks=2), Layout(3, pp=4),
    Layout(4, dp=2, zero=0), Layout(4, dp=2, zero=1), Layout(4, dp=4, zero=2), Layout(4, dp=2, zero=3, chunks=4),
    Layout(4, pp=2, dp=2, chunks=2, zero=2, reduce_every="run"), Layout(4, pp=2, dp=2, chunks=2, zero=3, reduce_every="run"),
    Layout(4, pp=2, dp=2, tied=True), Layout(4, tp=2, pp=2, dp=2, zero=3, compute_dtype="bf16"),
    Layout(4, tp=2, cp=2, pp=2, dp=2, compute_dtype="bf16"), Layout(2, tp=4, tp_overlap="ring"),
    Layout(2, tp=2, cp=2, tp_overlap="ring", recompute="full"),
    Layout(4, tp=4, pp=2, dp=2, tp_overlap="ring", compute_dtype="bf16", recompute="selective"),
    Layout(4, tp=4, schedule="zb-h1"), Layout(5, tp=2, pp=4, schedule="zb-h1"), Layout(4, tp=2, pp=2, dp=2, zero=3, schedule="zb-h1"),
    Layout(4, tp=2, cp=2, pp=2, recompute="full", schedule="zb-h1", compute_dtype="bf16"),
    Layout(4, tp=4, pp=2, schedule="zb-h1", tp_overlap="ring"),
]


def align(value, alignment):
    return -(-value // alignment) * alignment


class Traffic(collections.defaultdict):
    """(count, bytes sent) by (axis, kind, dtype)."""

    def __init__(self):
        super().__init__(lambda: [0, 0])

    def add(self, axis, members, kind, dtype, elements, times=1):
        """`elements` of the whole."""
        if members == 1 or times == 0:
            return
        sent = {"all_reduce": 2 * elements * SIZES[dtype] * (members - 1) // members, "broadcast": elements * SIZES[dtype], "shift": elements * SIZES[dtype]}
        entry = self[axis, kind, dtype]
        entry[0] += times
        entry[1] += times * sent.get(kind, elements * SIZES[dtype] * (members - 1) // members)


def name_of(axis, layout):
    """One name for the groups that have the same members."""
    if axis == "fsdp":
        return "cp*dp" if layout.cp > 1 and layout.dp > 1 else "cp" if layout.cp > 1 else "dp"
    return "tp" if axis == "replica" and layout.model["kv_heads"] == 1 else axis


def add_activations(traffic, layout, layers, has_embedding, has_head):
    """What a chunk's bodies exchange in a microbatch."""
    t, c, e = layout.tp, layout.cp, layout.dtype
    rows = layout.microbatch * SEQUENCE // c
    whole = rows * WIDTH
    # Attention and MLP: a gather before and a scatter behind, in both directions; the backward gathers its inputs again. Where a layer
    # is recomputed the scatter behind its attention runs again (those gathers it has anyway; its output nobody needs).
    gathers, scatters = 6 * layers, (4 + (layout.recompute == "full")) * layers
    # What linears read travels in rings, and so does what sums them; not what only weight gradients read.
    unread = 0 if layout.recompute == "full" else 2 * layers
    if has_embedding:
        traffic.add("tp", t, "reduce_scatter", e, whole)
        traffic.add("tp", t, "all_gather", e, whole)
    if has_head:  # the vocabulary-parallel head: its input twice, the gradient of that, and three floats a row
        gathers, scatters = gathers + 2, scatters + 1
        unread += layout.recompute != "full"
        traffic.add("tp", t, "all_reduce", "f32", rows, 5 if layout.recompute == "full" else 3)
    if layout.rings:
        traffic.add("tp", t, "shift", e, whole // t, (gathers - unread + scatters) * (t - 1))
        gathers, scatters = unread, 0
    traffic.add("tp", t, "all_gather", e, whole, gathers)
    traffic.add("tp", t, "reduce_scatter", e, whole, scatters)
    kv_heads = layout.model["kv_heads"]
    parts = min(t, kv_heads)
    keys = layout.microbatch * SEQUENCE * kv_heads // parts * WIDTH // HEADS
    traffic.add("cp", c, "all_gather", e, keys, 4 * layers)
    traffic.add("cp", c, "reduce_scatter", "f32", keys, 2 * layers)
    # Fewer kv heads than TP: replicas add up the gradients of keys and values, after the scatter over CP.
    traffic.add(name_of("replica", layout), t // parts, "all_reduce", "f32", keys // c, 2 * layers)


def section_sizes(layout, layers, has_embedding, has_head):
    """Elements of a chunk's bucket: of matrices, and of norms, whose gradients TP ranks have of their rows alone."""
    t = layout.tp
    kv_width = layout.model["kv_heads"] * WIDTH // HEADS
    parts = min(t, layout.model["kv_heads"])
    pad = lambda elements: align(elements, 32)
    matrices = layers * (2 * pad(WIDTH * WIDTH // t) + 3 * pad(WIDTH * HIDDEN // t))
    if not layout.model["tied"]:
        matrices += (has_embedding + has_head) * pad(VOCABULARY * WIDTH // t)
    return matrices + layers * 2 * pad(kv_width * WIDTH // parts), (2 * layers + has_head) * pad(WIDTH)


def add_parameters(traffic, layout, matrices, norms, reductions, gathers):
    """What is exchanged of a bucket in a step. The norms are last in it, and take the padding up to a multiple of the shards."""
    elements = align(matrices + norms, 32 * layout.fsdp)
    axis = name_of("fsdp", layout)
    if norms:
        traffic.add("tp", layout.tp, "all_reduce", "f32", elements - matrices, reductions)
    if layout.zero:
        traffic.add(axis, layout.fsdp, "all_gather", layout.dtype, elements, gathers)
    traffic.add(axis, layout.fsdp, "reduce_scatter" if layout.zero else "all_reduce", "f32", elements, reductions)


def closed_form(layout, stage):
    traffic = Traffic()
    groups = max(1, min(-(-layout.microbatches // layout.pp), layout.microbatches // layout.pp))
    for layers, has_embedding, has_head in layout.chunks_of(stage):
        for _ in range(layout.microbatches):
            add_activations(traffic, layout, layers, has_embedding, has_head)
        matrices, norms = section_sizes(layout, layers, has_embedding, has_head)
        reductions = groups if layout.every == "run" and layout.fsdp > 1 else 1
        # With zero 3 a bucket is gathered for each direction of each group of microbatches.
        add_parameters(traffic, layout, matrices, norms, reductions, 2 * groups if layout.zero == 3 else 1)
    if layout.model["tied"]:
        table = VOCABULARY * WIDTH // layout.tp
        add_parameters(traffic, layout, table, 0, 1, 1)
        shard = align(table, 32 * layout.fsdp) // (layout.fsdp if layout.zero else 1)
        traffic.add("pp", layout.pp, "broadcast", layout.dtype, shard)
        traffic.add("pp", layout.pp, "all_reduce", "f32", shard)
    traffic.add("world", layout.ranks, "all_reduce", "i64", 1)
    traffic.add("world", layout.ranks, "all_reduce", "f64", 2)
    return traffic


def closed_form_of_messages(layout):
    """(count, bytes) of one pipeline in a step: each boundary once in each direction."""
    boundary = layout.microbatch * SEQUENCE // (layout.cp * layout.tp) * WIDTH * SIZES[layout.dtype]
    count = 2 * (layout.pp * layout.chunks - 1) * layout.microbatches if layout.pp > 1 else 0
    return count, count * boundary


def ends_of(folder, layout, steps):
    """By rank the last line of its log."""
    run(["./train", "--data=text", "--init=random", f"--steps={steps}", "--threads=1", "--log=log.jsonl", "--log-all-ranks"], folder, 120)
    ends = []
    for rank in range(layout.ranks):
        with open(os.path.join(folder, f"log.{rank}.jsonl" if rank else "log.jsonl")) as file:
            ends.append(json.loads(file.readlines()[-1]))
    return ends


def axis_of(entry, layout):
    return "pp" if entry["communicator"] >= 16 else name_of(entry["name"], layout)


def counted(folder, layout):
    """By rank the traffic of a step, (count, bytes) of its sends, bytes allocated: a run of three steps less one of one step."""
    traffic, sends, allocated = [], [], []
    for more, less in zip(ends_of(folder, layout, 3), ends_of(folder, layout, 1)):
        rank, messages = Traffic(), [0, 0]
        allocated.append(more["allocated_bytes"])
        for sign, end in ((1, more), (-1, less)):
            for entry in end["communication"]:
                target = rank[axis_of(entry, layout), entry["kind"], entry["dtype"]]
                if entry["kind"] == "receive":
                    continue
                if entry["kind"] == "send":
                    target = messages
                target[0] += sign * entry["count"] / 2
                target[1] += sign * entry["sent"] / 2
        traffic.append({key: tuple(map(int, value)) for key, value in rank.items() if value[0]})
        sends.append(messages)
    return traffic, sends, allocated


def differences(name, got, want, may_be_less):
    faults = []
    for key in sorted(got.keys() | want.keys()):
        a, b = tuple(got.get(key, (0, 0))), tuple(want.get(key, (0, 0)))
        if a != b and not (key in may_be_less and 0 < a[1] < b[1] and a[0] <= b[0]):
            faults.append(f"{name}: {' '.join(key)}: {a[0]} of {a[1]} bytes, expected {b[0]} of {b[1]}")
    return faults


def check(drover, layout, folder):
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCABULARY, "hidden_size": WIDTH,
              "intermediate_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
              "num_key_value_heads": layout.model["kv_heads"], "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 1e4,
              "hidden_act": "silu", "initializer_range": 0.02, "tie_word_embeddings": layout.model["tied"]}
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    with open(os.path.join(folder, "text"), "wb") as file:
        file.write(bytes(i * i % 251 for i in range(4000)))
    printed = subprocess.run([drover, "check", "config.json", *layout.options(), "--json"], cwd=folder, capture_output=True, text=True, timeout=60)
    if printed.returncode:
        return [printed.stderr], {}
    batch = json.loads(printed.stdout)["batches"][0]
    reported = Traffic()
    for row in batch["collectives"]:
        entry = reported[name_of(row["axis"], layout), row["kind"], row["dtype"]]
        entry[0] += row["count"]
        entry[1] += row["bytes_per_rank"]
    run([drover, "compile", "config.json", *layout.options(), "-o", "train"], folder, 120)
    ranks, sends, allocated = counted(folder, layout)
    # Less is right where a bucket stays from one use to the next: zero 3's gathers.
    data = {("dp", "all_gather", layout.dtype), ("cp*dp", "all_gather", layout.dtype)} if layout.zero == 3 else set()
    faults, most = [], {}
    for rank, traffic in enumerate(ranks):
        stage = layout.stage_of(rank)
        faults += differences(f"rank {rank}, stage {stage}, counted", traffic, closed_form(layout, stage), data)
        for key, value in traffic.items():
            most[key] = max(most.get(key, (0, 0)), value, key=lambda pair: pair[1])
    faults += differences("check, against what was counted", reported, most, set())
    for rank, bytes_of_rank in enumerate(allocated):
        expected = batch["peak_memory_bytes"][layout.stage_of(rank)]
        if bytes_of_rank != expected:
            faults.append(f"rank {rank}, stage {layout.stage_of(rank)}, allocated {bytes_of_rank} bytes, check has {expected}")
    pipeline = [rank for rank in range(layout.ranks) if rank % (layout.tp * layout.cp) == 0 and rank < layout.tp * layout.cp * layout.pp]
    messages = tuple(int(sum(sends[rank][i] for rank in pipeline)) for i in (0, 1))
    for name, other in (("check", (batch["sends"]["count"], batch["sends"]["bytes"])), ("the closed form", closed_form_of_messages(layout))):
        if messages != other:
            faults.append(f"messages of a pipeline: counted {messages}, {name} has {other}")
    return faults, most


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drover", required=True)
    parser.add_argument("--list", action="store_true", help="print what was counted")
    arguments = parser.parse_args()
    failed = 0
    for layout in LAYOUTS:
        with tempfile.TemporaryDirectory() as folder:
            faults, most = check(os.path.abspath(arguments.drover), layout, folder)
        print(("FAIL " if faults else "ok   ") + str(layout) + "".join("\n     " + fault for fault in faults[:12]), flush=True)
        if arguments.list:
            print("".join(f"     {' '.join(key):36}{count:6} {sent:9} bytes\n" for key, (count, sent) in sorted(most.items())), end="")
        failed += bool(faults)
    print(f"{len(LAYOUTS) - failed} of {len(LAYOUTS)} layouts: closed form, check and runtime agree")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
