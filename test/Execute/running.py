"""What the scripts beside this one share: commands that must succeed, and the steps of a training log."""
import json
import os
import subprocess


class Failed(SystemExit):
    """A command that failed or did not end; uncaught it ends the script with its text."""


def run(command, folder=None, seconds=550):
    """Runs a command in `folder`; raises Failed with the end of what it printed."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Failed(f"still running after {seconds} s: {' '.join(command)}")
    if done.returncode:
        raise Failed(f"status {done.returncode} of {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def steps_of(folder):
    """The step objects of the run whose log is log.jsonl in `folder`."""
    with open(os.path.join(folder, "log.jsonl")) as file:
        return [row for row in map(json.loads, file) if "loss" in row]
