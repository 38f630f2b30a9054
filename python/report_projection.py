#!/usr/bin/env python3
"""Writes what docs/projection.md says of memory and of runs that no constant was fitted on, or prints it.

usage: report_projection.py RUNS.csv OTHER_RUNS.csv [--report=docs/projection.md] [--drover-project=build/bin/drover-project]

Every run whose peak is off by more than 5 % has a reason in REASONS, by its source and what its id begins with; the script fails
where one is missing.
"""
import argparse
import collections
import json
import os
import statistics
import subprocess

from drover.pages import put_between_marks

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WITHIN = 0.05
GIB = 1 << 30

# What the software of a source holds that its rows do not say, or what its figure counts. The first beginning of an id that fits counts.
REASONS = [
    ("seqsel-", "the paper's figure is its own count with 18 bytes a parameter, gradients in f32; the row has gradients of 2 bytes (4 would give +2 to +4 %)"),
    ("dgxc-mem-", "reserved by the caching allocator; what lasts is the allocated 44.3 and 34.5 GB of the same lines within 1 %"),
    ("titan2412-405b-", "microbatches of the pipeline are not published (1 is assumed), and memory is what the caching allocator reserved"),
    ("titan2412-70b-", "reserved; async TP's symmetric buffers and float8 copies are not modelled"),
    ("titan2412-8b-cp", "reserved by the caching allocator (84 to 85 of 95 GiB whatever the layout), not allocated"),
    ("titan2412-", "reserved by the caching allocator, not allocated"),
    ("titan2506-", "reserved by the caching allocator; parameters are gathered in float8"),
    ("simumax-", "2 to 3 bytes a parameter of one layer are missing at any batch, sequence and DP, as much as gradients of products take on their way into the "
     "accumulators; drover's products add in place"),
]
SKIPPED = [
    ("paper method", "recomputation in parts, chosen by layer"),
    ("host's memory", "activations go to the host's memory"),
    ("LoRA", "frozen weights"),
]


def predict(program, path):
    clusters = os.path.join(TOP, "clusters")
    done = subprocess.run([program, "--clusters", clusters, "--json", path], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def first_of(pairs, text, matches):
    for begin, reason in pairs:
        if matches(text, begin):
            return reason
    raise SystemExit(f"{text}: expected a reason for it in this script")


def table(head, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head)] + rows)


def quantile(values, part):
    values = sorted(values)
    place = part * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


def describe(errors):
    errors = [abs(error) for error in errors]
    return f"{100 * quantile(errors, 0.5):.1f} / {100 * quantile(errors, 0.9):.1f} %"


def memory_section(answer):
    rows = answer["memory"]
    sources = collections.defaultdict(list)
    for row in rows:
        sources[row["source"]].append(row)
    sums = [[source, str(len(members)), describe(row["error"] for row in members), str(sum(abs(row["error"]) <= WITHIN for row in members))]
            for source, members in sorted(sources.items())]
    # Runs that differ in the number of microbatches alone have one peak.
    peaks = collections.defaultdict(list)
    for row in rows:
        if abs(row["error"]) > WITHIN:
            reason = first_of(REASONS, row["id"], str.startswith)
            peaks[row["published_bytes"], row["predicted_bytes"], reason].append(row["id"])
    off = [[ids[0] + (f" and {len(ids) - 1} more" if len(ids) > 1 else ""), f"{published / GIB:.1f}", f"{predicted / GIB:.1f}", f"{100 * (predicted / published - 1):+.1f} %", reason]
           for (published, predicted, reason), ids in peaks.items()]
    left = collections.Counter(first_of(SKIPPED, row["reason"], lambda text, part: part in text) for row in answer["memory_skipped"])
    inside = sum(abs(row["error"]) <= WITHIN for row in rows)
    return "\n\n".join([
        f"{len(rows) + len(answer['memory_skipped'])} rows have a peak: {len(rows)} are compared, {inside} of them within 5 %; not compared: "
        + ", ".join(f"{count} ({reason})" for reason, count in left.items()) + ".",
        table(["source", "rows", "median / p90", "within 5 %"], sums),
        table(["run", "published GiB", "predicted GiB", "error", "why"], off)])


def other_section(answer):
    groups = collections.defaultdict(list)
    for row in answer["rows"]:
        groups[row["source"], row["gpu_kind"], row["precision"]].append(row)
    lines = [[source, kind, precision, str(len(members)), describe(row["error"] for row in members), f"{100 * statistics.mean(row['error'] for row in members):+.1f} %"]
             for (source, kind, precision), members in sorted(groups.items())]
    return table(["source", "GPU kind", "precision", "rows", "median / p90", "mean"], lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs")
    parser.add_argument("other_runs")
    parser.add_argument("--report", help="page whose tables are written")
    parser.add_argument("--drover-project", default=os.path.join(TOP, "build", "bin", "drover-project"))
    options = parser.parse_args()
    sections = {"report_projection.py: memory": memory_section(predict(options.drover_project, options.runs)),
                "report_projection.py: other runs": other_section(predict(options.drover_project, options.other_runs))}
    for mark, text in sections.items():
        print(text + "\n")
        if options.report:
            put_between_marks(options.report, mark, text)


if __name__ == "__main__":
    main()
