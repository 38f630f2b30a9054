#!/usr/bin/env python3
"""Exit status 1 where the layouts of published sweeps are not ranked as they were measured.

usage: check_ranking.py FIT_PROJECTION_FOLDER RUNS.csv PREDICTIONS.json --share=0.85 --place=3
"""
import argparse
import csv
import json
import sys

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("runs")
parser.add_argument("predictions")
parser.add_argument("--share", type=float, help="of the pairs that differ by more than 3 %%, at least in the right order")
parser.add_argument("--place", type=int, help="of the best published layout among the predicted, at most")
options = parser.parse_args()
sys.path.insert(0, options.folder)
import fit_projection  # noqa: E402

with open(options.runs, newline="") as file:
    rows = list(csv.DictReader(file))
with open(options.predictions) as file:
    predictions = {row["id"]: row for row in json.load(file)["rows"]}
sweeps = fit_projection.sweeps_of(rows, predictions)
right, pairs = fit_projection.ranking(sweeps)
places = list(fit_projection.places_of_best(sweeps))
print(f"{right} of {pairs} pairs in the right order ({100 * right / pairs:.1f} %); {len(places)} sweeps")
for name, place, size in places:
    print(f"{name}: place {place} of {size}")
late = [name for name, place, _ in places if place > options.place]
sys.exit(right < options.share * pairs or pairs < 400 or len(places) < 10 or bool(late))
