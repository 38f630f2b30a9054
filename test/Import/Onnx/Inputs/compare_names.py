"""usage: compare_names.py DROVER SHARED. Imports every export that has a parameters.json beside it and compares parameter
names, orientation and the added constant with it."""
import glob
import json
import os
import re
import subprocess
import sys

drover, shared = sys.argv[1:]
differ = 0
folders = sorted(glob.glob(os.path.join(shared, "onnx/exports/*")) + glob.glob(os.path.join(shared, "training/*")))
for folder in folders:
    answer = os.path.join(folder, "parameters.json")
    if not os.path.exists(answer):
        continue
    run = subprocess.run([drover, "import", os.path.join(folder, "model.onnx")], capture_output=True, text=True)
    found = {}
    for name, source in re.findall(r'tfm\.parameter = "([^"]*)"(?:, tfm\.source = #tfm\.source<([^>]*)>)?', run.stdout):
        plus = re.search(r"plus = ([-+.\de]+)", source)
        found[name] = ("transposed = true" in source, float(plus.group(1)) if plus else 0.0)
    wanted = {}
    with open(answer) as f:
        for entry in json.load(f).values():
            wanted.setdefault(entry["parameter"], set()).add((entry["transposed"], float(entry.get("plus", 0))))
    problems = [name for name in sorted(set(found) | set(wanted))
                if name not in found or name not in wanted or found[name] not in wanted[name]]
    if run.returncode or problems:
        differ += 1
        print(os.path.basename(folder), run.stderr[:300], problems[:8])
print(f"{len(folders)} exports, {differ} differ")
