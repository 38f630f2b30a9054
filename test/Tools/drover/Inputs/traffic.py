"""Prints the axes and kinds of a report of `drover check --json`; of two, whether a rank sends as much over each axis in
each dtype, and the second has shifts."""
import json
import sys
from collections import Counter


def read(path):
    with open(path) as file:
        return json.load(file)["batches"][0]["collectives"]


def bytes_of(entries):
    sums = Counter()
    for entry in entries:
        sums[entry["axis"], entry["dtype"]] += entry["bytes_per_rank"]
    return sums


reports = [read(path) for path in sys.argv[1:]]
if len(reports) == 1:
    for entry in reports[0]:
        print(entry["axis"], entry["kind"])
else:
    assert any(entry["kind"] == "shift" for entry in reports[1]), reports[1]
    assert not any(entry["kind"] == "reduce_scatter" and entry["axis"] == "tp" and entry["count"] > 1 for entry in reports[1])
    print("equal" if bytes_of(reports[0]) == bytes_of(reports[1]) else f"{bytes_of(reports[0])} {bytes_of(reports[1])}")
