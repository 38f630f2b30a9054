#!/usr/bin/env python3
"""Adds up the results of all test runners: GoogleTest's and lit's JSON files in a folder.

usage: summarize.py FOLDER      prints what failed, then "N passed, N failed, N skipped"; exit status 1 when anything failed
"""
import glob
import json
import os
import sys


def entries(path, key, report, fault):
    """The list `key` of a result file; an empty or unreadable one is a fault of the runner itself."""
    try:
        with open(path) as file:
            return json.load(file)[key]
    except (ValueError, KeyError):
        report["failed"].append(f"{os.path.basename(path)[:-5]} ({fault})")
        return []


def googletest(path, report):
    """Counts one GoogleTest result file."""
    for suite in entries(path, "testsuites", report, "crashed"):
        for test in suite["testsuite"]:
            name = f"{os.path.basename(path)[:-5]}: {suite['name']}.{test['name']}"
            if test.get("failures"):
                report["failed"].append(name)
            elif test.get("result") == "SKIPPED" or test.get("skipped") or test.get("status") == "NOTRUN":
                report["skipped"].append(name)
            else:
                report["passed"].append(name)


def lit(path, report):
    """Counts one lit result file."""
    kinds = {"PASS": "passed", "XFAIL": "passed", "UNSUPPORTED": "skipped", "EXCLUDED": "skipped", "SKIPPED": "skipped"}
    for test in entries(path, "tests", report, "lit did not finish"):
        report[kinds.get(test["code"], "failed")].append(test["name"])


def main():
    report = {"passed": [], "failed": [], "skipped": []}
    files = sorted(glob.glob(os.path.join(sys.argv[1], "*.json")))
    for path in files:
        (lit if os.path.basename(path).startswith("lit") else googletest)(path, report)
    for kind in ("skipped", "failed"):
        for name in report[kind]:
            print(f"{kind.upper()}: {name}")
    print(f"{len(report['passed'])} passed, {len(report['failed'])} failed, {len(report['skipped'])} skipped")
    return 1 if report["failed"] or not report["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
