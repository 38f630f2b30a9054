"""Holds `bubble_ratio` of zb-h1 on compiled bodies against [(PP-1) + max(0, PP-M)] / (3M), and their proof.

usage: zero_bubble.py DROVER MODEL OPTIONS..
"""
import json
import subprocess
import sys

drover, model, *options = sys.argv[1:]
for pp, m in [(1, 1), (1, 3), (2, 1), (2, 2), (2, 5), (4, 1), (4, 3), (4, 4), (4, 9), (6, 4), (6, 12)]:
    for recompute in ("none", "full"):
        done = subprocess.run([drover, "check", model, "--task=train", "--schedule=zb-h1", f"--pp={pp}", f"--global-batch={m}",
                               f"--recompute={recompute}", "--json", *options], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"pp {pp}, {m} microbatches, recompute {recompute}: {done.stderr}{done.stdout}")
        batch = json.loads(done.stdout)["batches"][0]
        expected = ((pp - 1) + max(0, pp - m)) / (3 * m)
        if batch["proof"] != "ok" or batch["microbatches"] != m or abs(batch["bubble_ratio"] - expected) > 1e-9:
            sys.exit(f"pp {pp}, {m} microbatches, recompute {recompute}: {batch['bubble_ratio']}, not {expected}; {batch['proof']}")
