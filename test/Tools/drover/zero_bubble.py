"""Holds `bubble_ratio` of zb-h1 on compiled bodies against [(PP-1) + max(0, PP-M)] / (3M), the stash of each stage against
(PP-r) M_B + r M_W (arXiv 2401.10241, table 2) and what one input part hands over, and their proof.

usage: zero_bubble.py DROVER MODEL OPTIONS..
"""
import json
import re
import subprocess
import sys

drover, model, *options = sys.argv[1:]


def run(*command):
    done = subprocess.run([drover, *command, *options], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}{done.stdout}")
    return done.stdout


def expected_stash(chunk, pp, stage, m):
    """The largest over the microbatch whose input part runs: those before their backward, those before their weight part."""
    for_backward, for_weights = chunk["stash"] + chunk["kept"], chunk["kept"] + chunk["handed"]
    if m >= pp:
        return (pp - stage) * for_backward + stage * for_weights + chunk["handed"]
    return max((min(m, i + pp - stage) - i) * for_backward + min(i, stage) * for_weights for i in range(m)) + chunk["handed"]


for pp, m in [(1, 1), (1, 3), (2, 1), (2, 2), (2, 5), (4, 1), (4, 3), (4, 4), (4, 9), (6, 4), (6, 12)]:
    for recompute in ("none", "selective", "full"):
        plan = [model, "--task=train", "--schedule=zb-h1", f"--pp={pp}", f"--global-batch={m}", f"--recompute={recompute}"]
        where = f"pp {pp}, {m} microbatches, recompute {recompute}"
        batch = json.loads(run("check", *plan, "--json"))["batches"][0]
        bubble = ((pp - 1) + max(0, pp - m)) / (3 * m)
        if batch["proof"] != "ok" or batch["microbatches"] != m or abs(batch["bubble_ratio"] - bubble) > 1e-9:
            sys.exit(f"{where}: {batch['bubble_ratio']}, not {bubble}; {batch['proof']}")
        program = run("compile", *plan, "--stop-after=schedule", "-o", "-")
        chunks = [{name: int(size) for name, size in re.findall(r"(\w+) (\d+)", line)}
                  for line in re.findall(r"^chunk \d+: bytes of a microbatch: (.*)", program, re.MULTILINE)]
        stashes = [int(size) for size in re.findall(r"^  memory: .* stash (\d+)", program, re.MULTILINE)]
        expected = [expected_stash(chunk, pp, stage, m) for stage, chunk in enumerate(chunks)]
        if len(stashes) != pp or stashes != expected:
            sys.exit(f"{where}: stashes {stashes}, not {expected}")
