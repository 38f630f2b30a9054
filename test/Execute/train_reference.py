#!/usr/bin/env python3
"""Compiles the model of a recorded training run, trains it with the recorded settings, and holds losses, norms, step-1 gradients
and final weights against what PyTorch got (python/make_reference.py; shared/training has the same layout).

usage: train_reference.py FOLDER [--variant plain|documents|ignore] [--drover PATH] [--steps N] [--tolerance-loss R] [--emulated SCRIPT]
                          [--seeds N,..] [--graphs] [compile options ..]
Prints one line of deviations; exit status 1 where one is larger than DESIGN's "Equality" allows.
With --tolerance-loss only the losses are compared, to that relative tolerance (bf16 against float32).
With --emulated (scripts/with-emulated-gpu) the executable is compiled for a GPU and runs over the stand-ins, which must find nothing wrong;
with --seeds it runs once for each (DROVER_EMU_SEED: when work is done), with --graphs each time also with --cuda-graphs, and all runs
must give the same bits, and issue the same operations.
"""
import argparse
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
from drover.tensors import compare, deviation, read_safetensors
from running import communication_of, emulate, run, steps_of


def run_seeds(script, command, seeds, graphs, folder):
    """Runs the command over the stand-ins once for each seed; what differs or was reported. Files are those of the last seed."""
    faults, results = [], []
    for seed, more in [(seed, more) for seed in seeds for more in ([[], ["--cuda-graphs"]] if graphs else [[]])]:
        faults += emulate(script, command + more, folder, seed)[:3]
        files = [open(os.path.join(folder, name), "rb").read() for name in ("gradients.safetensors", "weights.safetensors")]
        results.append([(row["loss"], row["grad_norm"]) for row in steps_of(folder)] + files + [communication_of(folder)])
        if results[-1] != results[0]:
            faults.append(f"seed {seed} gives other bits than seed {seeds[0]} {' '.join(more)}, or issues other operations")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--variant", choices=["plain", "documents", "ignore"], default="plain")
    parser.add_argument("--drover", default="drover")
    parser.add_argument("--steps", type=int, help="run fewer steps (then the weights are not compared)")
    parser.add_argument("--tolerance-loss", type=float)
    parser.add_argument("--emulated")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--graphs", action="store_true")
    arguments, options = parser.parse_known_args()
    with open(os.path.join(arguments.folder, "reference.json")) as file:
        reference = json.load(file)
    s = reference["settings"]
    steps = arguments.steps or s["steps"]
    if arguments.variant == "documents":
        options.append("--mask=documents")
    run_options = {"plain": [], "documents": [f"--document-separator={s.get('separator', 10)}"],
                   "ignore": [f"--ignore-label={s.get('ignore_label', 32)}"]}[arguments.variant]
    seeds = arguments.seeds.split(",")
    if arguments.emulated:
        options.append("--target=cuda")
        if not any(option.startswith("--compute-dtype=") for option in options):
            options.append("--compute-dtype=f32")
    folder = tempfile.mkdtemp()
    try:
        for name in os.listdir(arguments.folder):
            if name.startswith("model.onnx"):  # only the model: nothing may read the answers
                shutil.copy(os.path.join(arguments.folder, name), folder)
        run([arguments.drover, "compile", "model.onnx", "--task=train", f"--seq-len={s['seq_len']}",
             f"--global-batch={s['global_batch']}", *options, "-o", "train"], folder)
        command = ["./train", f"--data={os.path.abspath(arguments.folder)}/tokens.u16", f"--steps={steps}", f"--lr={s['lr']}",
                   f"--min-lr={s['min_lr']}", f"--warmup-steps={s['warmup_steps']}", f"--weight-decay={s['weight_decay']}",
                   f"--beta1={s['beta1']}", f"--beta2={s['beta2']}", f"--eps={s['eps']}", f"--grad-clip={s['grad_clip']}", "--init=model",
                   "--log=log.jsonl", "--save-gradients=gradients.safetensors", "--save-weights=weights.safetensors", *run_options]
        faults = run_seeds(arguments.emulated, command, seeds, arguments.graphs, folder) if arguments.emulated else run(command, folder) or []
        rows = steps_of(folder)
        want = reference["rows" if arguments.variant == "plain" else "rows_" + arguments.variant][:steps]
        if len(rows) != len(want):
            faults.append(f"{len(rows)} steps, not {len(want)}")
        loss, norm = (max(deviation(a[value], b[value]) for a, b in zip(rows, want)) for value in ("loss", "grad_norm"))
        if not loss <= (arguments.tolerance_loss or 1e-5):
            faults.append(f"loss deviates by {loss:.3g}")
        line = f"loss {loss:.1e} norm {norm:.1e}"
        if not arguments.tolerance_loss:
            if not norm <= 1e-5:
                faults.append(f"norm deviates by {norm:.3g}")
            suffix = "" if arguments.variant == "plain" else "_" + arguments.variant
            worst, bad = compare(read_safetensors(os.path.join(folder, "gradients.safetensors")),
                                 read_safetensors(os.path.join(arguments.folder, f"gradients_step1{suffix}.safetensors")), "gradient")
            faults += bad
            line += f" gradients {worst[0]:.2f} of allowed"
            if arguments.variant == "plain" and steps == s["steps"]:
                worst, bad = compare(read_safetensors(os.path.join(folder, "weights.safetensors")),
                                     read_safetensors(os.path.join(arguments.folder, "weights_after.safetensors")), "weight")
                faults += bad
                line += f" weights {worst[0]:.2f} of allowed"
    finally:
        shutil.rmtree(folder)
    print(line + "".join("\n  " + fault for fault in faults))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
