#!/usr/bin/env python3
"""Exit status 1 where the errors of quality A rows in bf16 and fp16 are above the bounds."""
import argparse
import json

parser = argparse.ArgumentParser()
parser.add_argument("rows")
parser.add_argument("--median", type=float)
parser.add_argument("--p90", type=float)
options = parser.parse_args()
with open(options.rows) as file:
    rows = json.load(file)["rows"]
errors = sorted(abs(row["error"]) for row in rows if row["quality"] == "A" and row["precision"] != "fp8")
median, p90 = errors[len(errors) // 2], errors[len(errors) * 9 // 10]
print(f"median {median:.4f} p90 {p90:.4f} over {len(errors)} rows")
raise SystemExit(not (len(errors) > 200 and median <= options.median and p90 <= options.p90))
