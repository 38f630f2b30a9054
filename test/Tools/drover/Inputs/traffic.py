"""Prints the axes and kinds of a report of `drover check --json`; of two, whether a rank sends as much over each axis in
each dtype and multiplies as much, where the second has shifts."""
import json
import sys
from collections import Counter


def read(path):
    with open(path) as file:
        return json.load(file)["batches"][0]


def bytes_of(report):
    sums = Counter()
    for entry in report["collectives"]:
        sums[entry["axis"], entry["dtype"]] += entry["bytes_per_rank"]
    return sums


reports = [read(path) for path in sys.argv[1:]]
if len(reports) == 1:
    for entry in reports[0]["collectives"]:
        print(entry["axis"], entry["kind"])
else:
    assert any(entry["kind"] == "shift" for entry in reports[1]["collectives"]), reports[1]
    bytes_of_none, bytes_of_rings = map(bytes_of, reports)
    print("bytes", "equal" if bytes_of_none == bytes_of_rings else f"{bytes_of_none} {bytes_of_rings}")
    flops = [report["flops_per_rank"] for report in reports]
    print("flops", "equal" if flops[0] == flops[1] else flops)
