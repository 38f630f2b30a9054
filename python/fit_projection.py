#!/usr/bin/env python3
"""Fits the constants of clusters/devices/*.yaml on a table of published runs, and validates them on sources left out.

usage: fit_projection.py RUNS.csv [--write] [--validate] [--report=docs/projection.md] [--drover-project=build/bin/drover-project]

One set of constants a family of GPUs, at most a dozen, none of a row or a source. Residuals are log(predicted / published) of the rows of
quality A and B in bf16 and fp16, weighed so that no source counts more than the square root of its rows; large ones count linearly (Huber),
and every constant is drawn to its published or measured prior, so that what the rows do not determine stays there. fp8's rate is fitted
after the rest, alone. Gauss-Newton with finite differences from the priors: deterministic. Validation, which starts at the constants of all, leaves out each source (repository or
paper) in turn, refits on the others and predicts its rows. --write puts the constants into the device files; --report writes the tables
between the marks of the page. Needs numpy.
"""
import argparse
import collections
import csv
import json
import os
import re
import subprocess
import tempfile

import numpy as np

from drover.pages import put_between_marks

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HUBER = 0.04  # residuals beyond count linearly
PRIOR_WEIGHT = 0.012  # a constant one width from its prior costs as a row that is off by this

# name: (prior, width of its logarithm, bounds)
ATTENTION_WIDTH = 0.25
FAMILIES = {
    "A100": {
        "kinds": ["A100"],
        "files": ["a100-80gb", "a100-40gb"],
        "constants": {
            "matmul.fraction": (0.80, 0.15, (0.4, 0.95)),
            "matmul.half_k": (120, 0.7, (1, 1000)),
            "memory.achieved": (0.80, 0.2, (0.3, 0.95)),
            "attention.unfused": (0.30, ATTENTION_WIDTH, (0.05, 0.9)),
            "attention.triton": (0.41, ATTENTION_WIDTH, (0.05, 0.9)),
            "attention.flash2": (0.66, ATTENTION_WIDTH, (0.05, 0.9)),
            "eager_traffic": (1.5, 0.3, (0.5, 5)),
            "contention": (0.2, 0.7, (0.001, 1)),
            "spread": (0.01, 0.5, (0.001, 0.05)),
        },
    },
    "H100": {
        "kinds": ["H100", "H800", "H200"],
        "files": ["h100-sxm", "h800", "h200"],
        "constants": {
            "matmul.fraction": (0.72, 0.15, (0.4, 0.95)),
            "matmul.half_k": (300, 0.7, (1, 2000)),
            "memory.achieved": (0.80, 0.2, (0.3, 0.95)),
            "attention.triton": (0.22, ATTENTION_WIDTH, (0.05, 0.9)),
            "attention.flash2": (0.32, ATTENTION_WIDTH, (0.05, 0.9)),
            "attention.flash3": (0.61, ATTENTION_WIDTH, (0.05, 0.9)),
            "eager_traffic": (1.5, 0.3, (0.5, 5)),
            "ring_hidden": (0.8, 0.2, (0.1, 1)),
            "contention": (0.2, 0.7, (0.001, 1)),
            "spread": (0.01, 0.5, (0.001, 0.05)),
            "clock_boost": (0.04, 0.3, (0.001, 0.1)),
            "fp8.fraction": (0.62, 0.2, (0.2, 0.95)),
        },
    },
    "H100-500W": {
        "kinds": ["H100-500W"],
        "files": ["h100-500w"],
        "constants": {
            "matmul.fraction": (0.59, 0.1, (0.3, 0.95)),
            "fp8.fraction": (0.5, 0.2, (0.2, 0.95)),
        },
        "follows": "H100",
    },
    "B200": {
        "kinds": ["B200"],
        "files": ["b200"],
        "constants": {
            "matmul.fraction": (0.60, 0.15, (0.3, 0.95)),
            "matmul.half_k": (500, 0.5, (1, 2000)),
            "memory.achieved": (0.80, 0.2, (0.3, 0.95)),
            "attention.flash3": (0.45, ATTENTION_WIDTH, (0.05, 0.9)),
            "contention": (0.2, 0.7, (0.001, 1)),
        },
        "follows": "H100",
    },
}
ATTENTION_FOLLOWS = ["memory.achieved", "eager_traffic", "ring_hidden", "contention", "clock_boost", "spread", "attention.triton", "attention.flash2", "attention.flash3"]


def edit(text, constants):
    """The text of a device file with these constants in it."""

    def put(pattern, value, flags=re.M):
        nonlocal text
        text, count = re.subn(pattern, lambda m: m.group(1) + value + m.group(2), text, flags=flags)
        assert count == 1, (pattern, count)

    def number(value):
        return f"{value:.3g}"

    for name, value in constants.items():
        if name in ("matmul.fraction", "matmul.half_k"):
            put(rf"(^  bf16: \{{.*{name[7:]}: )[\d.e+]+(.*)$", number(value))
        elif name == "fp8.fraction":
            put(r"(^  fp8: \{.*fraction: )[\d.e+]+(.*)$", number(value))
        elif name == "memory.achieved":
            put(r"(^  achieved: )[\d.]+(.*)$", number(value))
        elif name.startswith("attention."):
            if f"kernel: {name[10:]}," in text:
                put(rf"(kernel: {name[10:]}, forward: )[\d.]+(,)", number(value))
        elif re.search(rf"^{name}: ", text, re.M):
            put(rf"(^{name}: )[\d.e-]+(.*)$", f"{value:.3g}")
        else:
            text += f"{name}: {value:.3g}\n"
    return text


class Fitter:
    def __init__(self, program, table, exclude=()):
        self.program = program
        with open(table, newline="") as file:
            reader = csv.DictReader(file)
            self.columns, rows = reader.fieldnames, list(reader)
        base = self.predict(rows, {})
        self.meta = {row["id"]: row for row in base}
        self.rows = [row for row in rows if row["id"] in self.meta]

    def predict(self, rows, files):
        """Rows of drover-project with these texts of device files (file: text) in place of the shipped ones."""
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "devices"))
            for name in os.listdir(os.path.join(TOP, "clusters")):
                if name.endswith(".yaml"):
                    os.symlink(os.path.join(TOP, "clusters", name), os.path.join(folder, name))
            for name in os.listdir(os.path.join(TOP, "clusters", "devices")):
                with open(os.path.join(TOP, "clusters", "devices", name)) as file:
                    text = files.get(name[:-5], file.read())
                with open(os.path.join(folder, "devices", name), "w") as file:
                    file.write(text)
            table = os.path.join(folder, "rows.csv")
            with open(table, "w", newline="") as file:
                writer = csv.DictWriter(file, self.columns)
                writer.writeheader()
                writer.writerows(rows)
            out = subprocess.run([self.program, "--clusters", folder, "--json", table], capture_output=True, text=True, check=True)
            return json.loads(out.stdout)["rows"]

    def device_texts(self, family, constants):
        texts = {}
        for name in FAMILIES[family]["files"]:
            with open(os.path.join(TOP, "clusters", "devices", name + ".yaml")) as file:
                texts[name] = edit(file.read(), constants)
        return texts

    def residuals(self, rows, family, constants):
        predicted = {row["id"]: row for row in self.predict(rows, self.device_texts(family, constants))}
        return np.array([np.log1p(predicted[row["id"]]["error"]) for row in rows])

    def select(self, family, fp8=False, without=None):
        return [row for row in self.rows if self.meta[row["id"]]["gpu_kind"] in FAMILIES[family]["kinds"]
                and (row["precision"] == "fp8") == fp8 and self.meta[row["id"]]["source"] != without]

    def solve(self, rows, family, names, constants, rounds=8):
        """Gauss-Newton on the logarithms of `names`, residuals reweighed for the Huber norm."""
        constants = dict(constants)
        if not rows:
            return constants
        sources = collections.Counter(self.meta[row["id"]]["source"] for row in rows)
        weight = np.array([sources[self.meta[row["id"]]["source"]] ** -0.25 * (1 if row["quality"] == "A" else 0.5) for row in rows])
        known = FAMILIES[family]["constants"]
        prior = np.array([np.log(known[name][0]) for name in names])
        width = np.array([known[name][1] for name in names])
        point = np.array([np.log(constants[name]) for name in names])
        strength = PRIOR_WEIGHT * np.sqrt(len(rows)) / 3

        def at(values):
            return self.residuals(rows, family, constants | dict(zip(names, np.exp(values))))

        def cost(residual, values):
            scaled = np.abs(residual)
            huber = np.where(scaled < HUBER, scaled**2 / 2, HUBER * (scaled - HUBER / 2))
            return np.sum(weight**2 * huber) + np.sum((strength * (values - prior) / width) ** 2) / 2

        residual = at(point)
        for _ in range(rounds):
            jacobian = np.stack([(at(point + step) - residual) / 0.02 for step in 0.02 * np.eye(len(names))], axis=1)
            robust = weight * np.sqrt(np.minimum(1, HUBER / np.maximum(np.abs(residual), 1e-9)))
            left = np.vstack([robust[:, None] * jacobian, np.diag(strength / width)])
            right = np.concatenate([-robust * residual, -strength * (point - prior) / width])
            move = np.linalg.lstsq(left, right, rcond=None)[0]
            best = cost(residual, point)
            for scale in (1, 0.5, 0.25):
                trial = point + scale * np.clip(move, -0.4, 0.4)
                trial = np.array([np.clip(value, *np.log(known[name][2])) for value, name in zip(trial, names)])
                if cost(there := at(trial), trial) < best:
                    break
            else:
                break
            done = np.max(np.abs(trial - point)) < 2e-3
            point, residual = trial, there
            if done:
                break
        return constants | dict(zip(names, [float(value) for value in np.exp(point)]))

    def fit(self, family, without=None, leaders=None, start=None, rounds=8):
        """`start`: constants to begin at, in place of the priors; the optimum is the same."""
        known = FAMILIES[family]["constants"]
        constants = {name: value[0] for name, value in known.items()}
        if leaders:
            constants = {name: value for name, value in leaders.items() if name in ATTENTION_FOLLOWS} | constants
            constants |= {name: leaders[name] for name in ATTENTION_FOLLOWS if name in leaders and name not in known}
        constants |= {name: value for name, value in (start or {}).items() if name in known}
        names = [name for name in known if name != "fp8.fraction"]
        constants = self.solve(self.select(family, False, without), family, names, constants, rounds)
        if "fp8.fraction" in known and not start:
            constants = self.solve(self.select(family, True, without), family, ["fp8.fraction"], constants)
        return constants


def describe(errors):
    errors = np.abs(np.array(errors))
    return f"{100 * np.median(errors):.1f} / {100 * np.quantile(errors, 0.9):.1f} %"


# A sweep: one model on one cluster, one job. What is left to choose are the layout's options, recompute among them.
SWEEP = ("source", "model", "gpu_type", "gpus", "global_batch_seqs", "seq_len", "precision", "layers")


def sweeps_of(rows, predictions):
    """Predictions of the rows of a table, sweep by sweep."""
    sweeps = collections.defaultdict(list)
    for row in rows:
        if row["id"] in predictions:
            sweeps[tuple(row[name] for name in SWEEP)].append(predictions[row["id"]])
    return list(sweeps.values())


def ranking(sweeps):
    """How many pairs of a sweep whose times differ by more than 3 % are in the right order, and how many there are."""
    pairs = right = 0
    for sweep in sweeps:
        for i, a in enumerate(sweep):
            for b in sweep[:i]:
                if abs(np.log(a["published_s"] / b["published_s"])) > np.log(1.03):
                    pairs += 1
                    right += (a["published_s"] > b["published_s"]) == (a["predicted_s"] > b["predicted_s"])
    return right, pairs


def places_of_best(sweeps):
    """Of each sweep of two or more: the published best, and its place among the predicted."""
    for sweep in sweeps:
        if len(sweep) > 1:
            best = min(sweep, key=lambda row: row["published_s"])
            yield best["id"], 1 + sum(row["predicted_s"] < best["predicted_s"] for row in sweep), len(sweep)


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "| " + " | ".join(["---"] * len(head)) + " |"] + ["| " + " | ".join(row) + " |" for row in rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("table")
    parser.add_argument("--write", action="store_true", help="put the constants into clusters/devices")
    parser.add_argument("--validate", action="store_true", help="leave out each source in turn")
    parser.add_argument("--report", help="page whose tables are written")
    parser.add_argument("--drover-project", default=os.path.join(TOP, "build", "bin", "drover-project"))
    options = parser.parse_args()
    fitter = Fitter(options.drover_project, options.table)
    fitted, final = {}, {}
    for family in FAMILIES:
        fitted[family] = fitter.fit(family, leaders=fitted.get(FAMILIES[family].get("follows")))
        print(family, {name: float(f"{value:.3g}") for name, value in fitted[family].items()}, flush=True)
        final |= fitter.device_texts(family, fitted[family])
    predictions = {row["id"]: row for row in fitter.predict(fitter.rows, final)}
    left_out = {}
    if options.validate:
        for family in FAMILIES:
            sources = sorted({fitter.meta[row["id"]]["source"] for row in fitter.select(family)})
            for source in sources if len(sources) > 1 else []:
                leader = FAMILIES[family].get("follows")
                leaders = fitter.fit(leader, source, start=fitted[leader], rounds=3) if leader else None
                constants = fitter.fit(family, source, leaders, start=fitted[family], rounds=3)
                rows = [row for row in fitter.select(family) if fitter.meta[row["id"]]["source"] == source]
                for row in fitter.predict(rows, fitter.device_texts(family, constants)):
                    left_out[row["id"]] = row
                print(f"without {source} on {family}: {describe([left_out[row['id']]['error'] for row in rows])} over {len(rows)}", flush=True)

    plain = [row for row in predictions.values() if row["precision"] != "fp8"]
    tables = []

    def section(name, key):
        groups = collections.defaultdict(list)
        for row in plain:
            groups[key(row)].append(row)
        lines = []
        for group, members in sorted(groups.items()):
            out = [left_out[row["id"]]["error"] for row in members if row["id"] in left_out]
            lines.append([group, str(len(members)), describe([row["error"] for row in members]), f"{100 * np.mean([row['error'] for row in members]):+.1f} %",
                          describe(out) if out else "-", str(len(out))])
        tables.append(table([name, "rows", "fitted, median / p90", "mean", "left out, median / p90", "rows"], lines))

    section("quality", lambda row: row["quality"])
    section("source", lambda row: row["source"])
    section("GPU kind", lambda row: row["gpu_kind"])
    fp8 = [row["error"] for row in predictions.values() if row["precision"] == "fp8"]
    sweeps = sweeps_of(fitter.rows, predictions)
    right, pairs = ranking(sweeps)
    places = [place for _, place, _ in places_of_best(sweeps)]
    tables.append(f"fp8, an extra: {describe(fp8)} over {len(fp8)} rows. Ranking: {right} of {pairs} pairs of one sweep that differ by more than 3 % "
                  f"are in the right order ({100 * right / max(pairs, 1):.1f} %); of {len(places)} sweeps the best published layout is the first "
                  f"predicted in {places.count(1)}, place {max(places)} at worst.")
    names = sorted({name for constants in fitted.values() for name in constants})
    tables.append(table(["constant"] + list(FAMILIES), [[name] + [f"{fitted[family][name]:.3g}" + ("" if name in FAMILIES[family]["constants"] else " (of H100)")
                                                                 if name in fitted[family] else "-" for family in FAMILIES] for name in names]))
    text = "\n\n".join(tables)
    print(text)
    if options.write:
        for name, content in final.items():
            with open(os.path.join(TOP, "clusters", "devices", name + ".yaml"), "w") as file:
                file.write(content)
    if options.report:
        put_between_marks(options.report, "fit_projection.py", text)


if __name__ == "__main__":
    main()
