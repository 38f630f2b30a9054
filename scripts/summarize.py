#!/usr/bin/env python3
"""Adds up the results of all test runners: GoogleTest's and lit's JSON files in a folder.

usage: summarize.py FOLDER      prints what failed, then "N passed, N failed, N skipped"; exit status 1 when anything failed
"""
import glob
import json
import os
import sys


def googletest(path, report):
    """Counts one GoogleTest result file; an empty or unreadable one is a crash of the whole binary."""
    try:
        with open(path) as file:
            suites = json.load(file)["testsuites"]
    except (ValueError, KeyError):
        report["failed"].append(os.path.basename(path)[:-5] + " (crashed)")
        return
    for suite in suites:
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
    try:
        with open(path) as file:
            tests = json.load(file)["tests"]
    except (ValueError, KeyError):
        report["failed"].append(os.path.basename(path)[:-5] + " (lit did not finish)")
        return
    for test in tests:
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
