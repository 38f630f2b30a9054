#!/usr/bin/env python3
"""Trains recorded models under many layouts and holds every one against the one-rank run of the same global batch.

usage: layouts.py --drover PATH [--array pairwise|threeway|random] [--more] [--count N] [--seed N] [--models DIR,..] [--steps 2] [--jobs 1]
                  [--bf16] [--emulated SCRIPT] [--table FILE.md] [--report NAME] [--results FILE.jsonl] [--shard K/N] [--list]

A layout is a value of each parameter below (tp, its overlap, cp, pp, dp, V, microbatches, run, schedule, zero, reduce-every, recompute, mask,
ignored label, model). `pairwise` and `threeway` are greedy covering arrays: each pair or triple of values that may occur together does.
With --more those of MORE are parameters too: size of a microbatch, batches compiled together, cut of the layers, frozen parameters, optimizer.
A model that is a config.json alone starts from random weights.
Losses, norms, step-1 gradients of every parameter and weights must lie within DESIGN's "Equality" of the one-rank run; with --bf16
losses alone, within 0.2 %, beside how far bf16 takes the one rank from f32. Prints a line per layout and a summary; exit status 1 where one
deviates, hangs or fails.
With --emulated (scripts/with-emulated-gpu) the layouts are compiled for GPUs and run over the stand-ins, which must find nothing wrong.
With --results a run can be cut off: what agreed is appended to the file, and not run again. --report=NAME puts the table into
docs/layouts.md, between the marks of that name, where all agree.
"""
import argparse
import io
import itertools
import json
import os
import random
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(TOP, "python"))
from drover.pages import put_between_marks
from drover.tensors import compare, deviation, read_safetensors
from running import Failed, emulate, run, steps_of

SEQUENCE = 32
PARAMETERS = {
    "tp": [1, 2, 4], "cp": [1, 2, 4], "pp": [1, 2, 4], "dp": [1, 2, 4], "chunks": [1, 2],
    "microbatches": ["below", "equal", "above", "odd"], "run": ["default", "all", "between"],
    "schedule": ["default", "bfs", "zb-h1"], "zero": [0, 1, 2, 3], "reduce": ["step", "run"],
    "overlap": ["none", "bulk", "ring"], "recompute": ["none", "selective", "full"], "mask": ["model", "documents"], "ignore": [False, True], "model": [],
}
# Those of --more; without it each has its first value.
MORE = {
    "microbatch": [1, 2], "batches": ["one", "second", "ramp"], "cut": ["even", "back", "gaps"],
    "freeze": ["", "norm|ln_", "embed|wte|wpe", r"\.0\."], "optimizer": ["adamw", "sgd"],
}


def microbatches(layout):
    """M below, equal to, above and not divisible by PP."""
    pp = layout["pp"]
    return {"below": max(1, pp - 1), "equal": pp, "above": 2 * pp, "odd": 2 * pp + 1}[layout["microbatches"]]


def is_allowed(layout):
    """What drover accepts, of complete and of partial layouts (a missing parameter constrains nothing)."""
    get = layout.get
    ranks = get("tp", 1) * get("cp", 1) * get("pp", 1) * get("dp", 1)
    if ranks > 16:
        return False
    if "microbatches" in layout and "pp" in layout:
        if layout["microbatches"] == "below" and layout["pp"] == 1:
            return False
    if get("chunks", 1) > 1 and get("schedule") == "zb-h1":
        return False
    if get("run") == "between" and get("microbatches", "above") in ("below", "equal"):
        return False
    if get("schedule") in ("bfs", "zb-h1") and get("run", "default") != "default":
        return False
    if get("zero", 1) == 0 and get("reduce") == "run":
        return False
    if get("tp") == 1 and get("overlap", "none") != "none":
        return False
    if get("cut", "even") != "even" and get("pp", 2) * get("chunks", 2) == 1:
        return False
    # The other batch has PP microbatches more.
    if get("batches", "one") != "one" and get("run", "default") == "all" and get("microbatches", "equal") == "below":
        return False
    return True


def complete(rng, base, values):
    """A random allowed layout that extends `base`, or None."""
    for _ in range(60):
        layout = {name: base.get(name, rng.choice(values[name])) for name in values}
        if is_allowed(layout):
            return layout
    return None


def extend(rng, base, values):
    """A random allowed layout that extends `base`; None only where there is none."""
    if not is_allowed(base):
        return None
    name = next((name for name in values if name not in base), None)
    if name is None:
        return {key: base[key] for key in values}
    extensions = (extend(rng, {**base, name: value}, values) for value in rng.sample(values[name], len(values[name])))
    return next(filter(None, extensions), None)


def tuples_of(layout, names, strength):
    return {tuple((name, layout[name]) for name in group) for group in itertools.combinations(names, strength)}


def covering_array(strength, values, seed):
    """Greedy: of fifty random layouts through an uncovered tuple the one that covers most, until none is left."""
    rng = random.Random(seed)
    names = list(values)
    allowed = set()
    for group in itertools.combinations(names, strength):
        for choice in itertools.product(*(values[name] for name in group)):
            part = dict(zip(group, choice))
            if extend(rng, part, values):
                allowed.add(tuple(part.items()))
    open_tuples, result = set(allowed), []
    while open_tuples:
        base = dict(min(open_tuples, key=repr))
        drawn = [extend(rng, base, values) for _ in range(50 if strength == 2 else 12)]
        best = max(drawn, key=lambda layout: len(tuples_of(layout, names, strength) & open_tuples))
        result.append(best)
        open_tuples -= tuples_of(best, names, strength)
    assert allowed <= set().union(*(tuples_of(layout, names, strength) for layout in result)), "a tuple of values is in no layout"
    return result


def compile_options(layout):
    m = microbatches(layout)
    options = [f"--{axis}={layout[axis]}" for axis in ("tp", "cp", "pp", "dp")]
    options += [f"--chunks={layout['chunks']}", f"--zero={layout['zero']}", f"--reduce-every={layout['reduce']}"]
    if layout["tp"] > 1:
        options.append(f"--tp-overlap={layout['overlap']}")
    if layout["schedule"] != "default":
        options.append(f"--schedule={layout['schedule']}")
    if layout["run"] == "all":
        options.append(f"--run={m}")
    elif layout["run"] == "between":
        options.append(f"--run={layout['pp'] + 1 if m > layout['pp'] + 1 else m}")
    if layout["microbatch"] > 1:
        options.append(f"--microbatch={layout['microbatch']}")
    chunks = layout["pp"] * layout["chunks"]
    if layout["cut"] != "even":
        layers, counts = settings_of(layout["model"])["layers"], [0] * chunks
        for layer in range(layers):  # all in the last chunk, or in every other one
            counts[-1 if layout["cut"] == "back" else layer * ((chunks + 1) // 2) // layers * 2] += 1
        options.append("--layers-per-chunk=" + ",".join(map(str, counts)))
    return options


def batches(layout):
    """The global batch that is trained, and the other that is compiled with it."""
    step = layout["dp"] * layout["microbatch"]
    return microbatches(layout) * step, (microbatches(layout) + layout["pp"]) * step


def shared_options(layout):
    """What changes the numbers or the program on one rank too."""
    first, other = batches(layout)
    listed = {"one": [first], "second": [other, first], "ramp": [first, other]}[layout["batches"]]
    options = [f"--mask={layout['mask']}", "--global-batch=" + ",".join(map(str, listed))]
    options += [f"--freeze=.*({layout['freeze']}).*"] if layout["freeze"] else []
    return options + ([f"--optimizer={layout['optimizer']}"] if layout["optimizer"] != "adamw" else [])


def batch_options(layout):
    """Which of the batches the executable takes: the ramp goes to the other at step 2."""
    first, other = batches(layout)
    if layout["batches"] == "one":
        return []
    return [f"--global-batch={first}"] + ([f"--batch-ramp=2:{other}"] if layout["batches"] == "ramp" else [])


def settings_of(model):
    """Of a recorded model its training settings, else those of tiny-llama; `data`: the tokens; `layers`: how many there are."""
    recorded = model if os.path.exists(os.path.join(model, "reference.json")) else os.path.join(TOP, "test/Execute/Inputs/tiny-llama")
    with open(os.path.join(recorded, "reference.json")) as file:
        settings = dict(json.load(file)["settings"], data=os.path.join(recorded, "tokens.u16"))
    with open(os.path.join(model, "config.json")) as file:
        config = json.load(file)
    return dict(settings, layers=config.get("num_hidden_layers") or config["n_layer"])


class Runner:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.baselines = {}

    def train(self, layout, options, name, dtype):
        """Compiles and trains; returns log rows, gradients and weights."""
        model = layout["model"]
        s = settings_of(model)
        file = os.path.join(model, "model.onnx")
        is_recorded = os.path.exists(file)
        folder = os.path.join(self.folder, name)
        shutil.rmtree(folder, ignore_errors=True)  # of a run that failed
        os.makedirs(folder)
        emulated = self.arguments.emulated if options else ""
        target = ["--target=cuda"] if emulated else []
        run([self.arguments.drover, "compile", file if is_recorded else os.path.join(model, "config.json"), "--task=train", f"--seq-len={SEQUENCE}",
             *shared_options(layout), *options, f"--compute-dtype={dtype}", *target, "-o", "train"], folder, self.arguments.deadline)
        extra = [f"--document-separator={s.get('separator', 10)}"] if layout["mask"] == "documents" else []
        extra += [f"--ignore-label={s.get('ignore_label', 32)}"] if layout["ignore"] else []
        steps = self.arguments.steps
        command = [*self.arguments.launcher.format(ranks=layout["tp"] * layout["cp"] * layout["pp"] * layout["dp"] if options else 1).split(),
                   "./train", f"--data={s['data']}", f"--steps={steps}", f"--lr={s['lr']}", f"--warmup-steps={min(2, steps)}",
                   f"--weight-decay={s['weight_decay']}", f"--beta1={s['beta1']}", f"--beta2={s['beta2']}", f"--eps={s['eps']}",
                   f"--grad-clip={s['grad_clip']}", "--init=model" if is_recorded else "--init=random", "--log=log.jsonl", "--save-gradients=g.safetensors",
                   "--save-weights=w.safetensors", "--threads=1", *batch_options(layout), *extra]
        found = emulate(emulated, command, folder, len(name) + int(name[-1])) if emulated else run(command, folder, self.arguments.deadline)
        if found:
            raise Failed("\n".join(found[:3]))
        result = steps_of(folder), read_safetensors(os.path.join(folder, "g.safetensors")), read_safetensors(os.path.join(folder, "w.safetensors"))
        shutil.rmtree(folder)
        return result

    def baseline(self, layout, dtype):
        key = (layout["model"], *shared_options(layout), *batch_options(layout), layout["ignore"], dtype)
        if key not in self.baselines:
            self.baselines[key] = self.train(layout, [], f"base{len(self.baselines)}", dtype)
        return self.baselines[key]

    def check(self, number, layout):
        """(faults, worst deviations by what deviates)"""
        try:
            dtype = "bf16" if self.arguments.bf16 else "f32"
            want_rows, want_gradients, want_weights = self.baseline(layout, dtype)
            rows, gradients, weights = self.train(layout, compile_options(layout) + [f"--recompute={layout['recompute']}"], f"run{number}", dtype)
            rounding = max(deviation(a["loss"], b["loss"]) for a, b in zip(want_rows, self.baseline(layout, "f32")[0])) if self.arguments.bf16 else 0
        except Failed as error:
            return [str(error)], {}
        faults = [] if len(rows) == len(want_rows) else [f"{len(rows)} steps, not {len(want_rows)}"]
        loss, norm = (max(deviation(a[value], b[value]) for a, b in zip(rows, want_rows)) for value in ("loss", "grad_norm"))
        if self.arguments.bf16:
            if not loss <= 2e-3:
                faults.append(f"loss deviates by {loss:.3g}")
            return faults, {"loss": loss, "rounding": rounding}
        if not loss <= 1e-5 or not norm <= 1e-5:
            faults.append(f"loss deviates by {loss:.3g}, norm by {norm:.3g}")
        gradient, bad = compare(gradients, want_gradients, "gradient")
        faults += bad
        weight, bad = compare(weights, want_weights, "weight")
        faults += bad
        return faults, {"loss": loss, "norm": norm, "gradients": gradient[0], "weights": weight[0]}


def describe(layout):
    model = os.path.basename(layout["model"])
    return (f"{model} tp{layout['tp']} {layout['overlap']} cp{layout['cp']} pp{layout['pp']} dp{layout['dp']} V{layout['chunks']} M{microbatches(layout)}"
            f" run={layout['run']} {layout['schedule']} zero{layout['zero']}/{layout['reduce']} recompute={layout['recompute']}"
            f" mask={layout['mask']}{' ignore' if layout['ignore'] else ''}" +
            "".join(f" {name}={layout[name]}" for name, values in MORE.items() if layout[name] != values[0]))


def deviation_text(deviation):
    """Of losses and norms relative ones, of gradients and weights as parts of what is allowed."""
    text = " ".join(f"{name} {value:.1e}" for name, value in deviation.items() if name in ("loss", "norm"))
    if "weights" in deviation:
        text += f" gradients {deviation['gradients']:.2f} weights {deviation['weights']:.2f} of allowed"
    if "rounding" in deviation:
        text += f" (one rank from f32 {deviation['rounding']:.1e})"
    return text or "failed"


def write_table(file, results):
    file.write("| layout | deviation |\n| --- | --- |\n")
    for layout, deviation, faults in results:
        file.write(f"| {describe(layout)} | {deviation_text(deviation)}{': ' + faults[0].splitlines()[0] if faults else ''} |\n")


def write_summary(file, results):
    """A row for each value of each parameter: layouts with it, those that agree, the worst deviations among them."""
    file.write("| parameter | value | layouts | agree | worst deviations |\n| --- | --- | --- | --- | --- |\n")
    for name in [*PARAMETERS, *MORE, "ranks"]:
        def value_of(layout):
            if name == "ranks":
                return layout["tp"] * layout["cp"] * layout["pp"] * layout["dp"]
            return os.path.basename(layout[name]) if name == "model" else layout[name]
        for value in sorted({value_of(layout) for layout, _, _ in results}):
            rows = [(deviation, faults) for layout, deviation, faults in results if value_of(layout) == value]
            worst = {key: max(d[key] for d, _ in rows if key in d) for key in ("loss", "norm", "gradients", "weights", "rounding") if any(key in d for d, _ in rows)}
            file.write(f"| {name} | {value} | {len(rows)} | {sum(not faults for _, faults in rows)} | {deviation_text(worst)} |\n")


def read_results(path):
    """What agreed, by description."""
    if not path or not os.path.exists(path):
        return {}
    with open(path) as file:
        rows = [json.loads(line) for line in file if line.endswith("\n")]
    return {row["layout"]: row["deviation"] for row in rows if not row["faults"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drover", default=os.path.join(TOP, "build/bin/drover"))
    parser.add_argument("--array", choices=["pairwise", "threeway", "random"], default="pairwise")
    parser.add_argument("--count", type=int, help="of random layouts, or at most so many of an array")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--models", default=",".join(os.path.join(TOP, "test/Execute/Inputs", name) for name in ("tiny-llama", "tiny-gpt2")))
    parser.add_argument("--more", action="store_true", help="vary the parameters of MORE too")
    parser.add_argument("--fix", default="", help="NAME=VALUE|VALUE..,..: only layouts with these values")
    parser.add_argument("--launcher", default="", help="put before the executable, {ranks} for their number")
    parser.add_argument("--deadline", type=float, default=300, help="seconds of a compilation and of a run")
    parser.add_argument("--shard", default="0/1", help="K/N: every N-th layout, from K")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--emulated", default="", metavar="SCRIPT")
    parser.add_argument("--table", help="write the results as Markdown; of more than 150 layouts, or 50 random ones, a summary by value")
    parser.add_argument("--report", metavar="NAME", help="put the results into docs/layouts.md, between the marks of this name")
    parser.add_argument("--results", help="append results here; skip what agreed in an earlier run")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    arguments.drover = os.path.abspath(arguments.drover)
    values = dict(PARAMETERS, **(MORE if arguments.more else {}), model=[os.path.abspath(path) for path in arguments.models.split(",")])
    for entry in filter(None, arguments.fix.split(",")):
        name, _, value = entry.partition("=")
        kept = [v for v in values.get(name, []) if {str(v), os.path.basename(str(v))} & set(value.split("|"))]
        if not kept:
            parser.error(f"--fix={entry}: {name} is one of {values.get(name, list(values))}")
        values[name] = kept
    if arguments.array == "random":
        rng = random.Random(arguments.seed)
        drawn = (complete(rng, {}, values) for _ in range(100 * (arguments.count or 500)))
        layouts = list(itertools.islice(filter(None, drawn), arguments.count or 500))
    else:
        layouts = covering_array(2 if arguments.array == "pairwise" else 3, values, arguments.seed)[:arguments.count]
    layouts = [{**{name: of[0] for name, of in MORE.items()}, **layout} for layout in layouts]
    first, step = map(int, arguments.shard.split("/"))
    layouts = layouts[first::step]
    if arguments.list:
        print("\n".join(map(describe, layouts)))
        return
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.jobs) as pool:
        runner = Runner(arguments, folder)
        done = read_results(arguments.results)
        results = [(layout, done[describe(layout)], []) for layout in layouts if describe(layout) in done]
        open_layouts = [layout for layout in layouts if describe(layout) not in done]
        for layout, (faults, deviation) in zip(open_layouts, pool.map(runner.check, range(len(open_layouts)), open_layouts)):
            results.append((layout, deviation, faults))
            if arguments.results:
                with open(arguments.results, "a") as file:
                    file.write(json.dumps({"layout": describe(layout), "deviation": deviation, "faults": faults}) + "\n")
            print(("FAIL " if faults else "ok   ") + describe(layout) + "  " + deviation_text(deviation) +
                  "".join("\n     " + fault for fault in faults), flush=True)
    failed = sum(bool(faults) for _, _, faults in results)
    print(f"{len(results) - failed} of {len(results)} layouts agree with one rank")
    command = f"--array={arguments.array} --seed={arguments.seed} --steps={arguments.steps}" + (f" --fix={arguments.fix!r}" if arguments.fix else "")
    command += (" --more" if arguments.more else "") + (f" --count={arguments.count}" if arguments.count else "") + (" --bf16" if arguments.bf16 else "")
    command += f" --launcher={arguments.launcher!r}" if arguments.launcher else ""
    if arguments.models != parser.get_default("models"):
        command += " --models=" + ",".join(os.path.basename(path) for path in arguments.models.split(","))
    text = io.StringIO(f"`test/Execute/layouts.py {command}`: {len(results) - failed} of {len(results)} agree with one rank.\n\n")
    text.seek(0, io.SEEK_END)
    (write_summary if len(results) > (50 if arguments.array == "random" else 150) else write_table)(text, results)
    if arguments.table:
        with open(arguments.table, "w") as file:
            file.write(text.getvalue())
    if arguments.report and not failed:
        put_between_marks(os.path.join(TOP, "docs/layouts.md"), "layouts.py: " + arguments.report, text.getvalue())
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
