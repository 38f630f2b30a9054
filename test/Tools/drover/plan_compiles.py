"""Compiles plans as they are printed, and holds their memory against what check says.
usage: plan_compiles.py DROVER FOLDER MODEL CLUSTER: PLAN-OPTIONS is a line of standard input each"""
import json
import os
import shlex
import subprocess
import sys

drover, folder, model, cluster = sys.argv[1:]


def run(words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    return done.stdout


worst = 0
for number, line in enumerate(sys.stdin):
    options = shlex.split(line)
    answer = run([drover, "plan", model, f"--cluster={cluster}", "--json"] + options)
    plans = json.loads(answer)
    path = os.path.join(folder, f"plans-{number}.json")
    with open(path, "w") as file:
        file.write(answer)
    # The command as a user copies it, but for the program's name and where it writes.
    words = shlex.split(plans["compile"])
    assert words[:2] == ["drover", "compile"] and words[-2:] == ["-o", "train"], plans["compile"]
    by_options = json.loads(run([drover, "check"] + words[2:-2] + ["--json"]))
    by_file = json.loads(run([drover, "check", model, "--task=train", f"--plan={path}", "--json"]))
    best = plans["plans"][0]
    for report in (by_options, by_file):
        # What a plan leaves to its defaults is the same.
        for key, value in best["plan"].items():
            same = key in ("hash", "layers_per_chunk") or report["plan"][key] in (value, []) or key == "run"
            assert same, (line, key, value, report["plan"][key])
        batch = report["batches"][0]
        assert batch["proof"] == "ok", line
        for stage, (expected, planned) in enumerate(zip(batch["peak_memory_bytes"], best["peak_memory_bytes"])):
            error = planned / expected - 1
            worst = max(worst, abs(error))
            assert abs(error) < 0.02, f"{line.strip()}: stage {stage} has {expected} bytes, planned are {planned}"
    executable = os.path.join(folder, f"train-{number}")
    run([drover] + words[1:-1] + [executable])
    assert os.access(executable, os.X_OK)
    os.remove(executable)
    print(f"{number}: {plans['compile']}")
print(f"largest deviation of memory {100 * worst:.2f} %")
