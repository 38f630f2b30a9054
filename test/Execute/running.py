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


def emulate(script, command, folder, seed=0, seconds=1000):
    """Runs a command over the stand-ins of GPUs (scripts/with-emulated-gpu), its work done as the seed has it; lines of what they found wrong."""
    try:
        done = subprocess.run([os.path.abspath(script), *command], cwd=folder, capture_output=True, text=True, timeout=seconds,
                              env={**os.environ, "DROVER_EMU_SEED": str(seed)})
    except subprocess.TimeoutExpired:
        raise Failed(f"seed {seed}: still running after {seconds} s: {' '.join(command)}")
    if done.returncode:
        raise Failed(f"seed {seed}: status {done.returncode} of {' '.join(command)}\n{done.stderr[-2000:]}")
    return [f"seed {seed}: {line}" for line in done.stderr.splitlines() if line.startswith("drover-emu: ")]


def steps_of(folder):
    """The step objects of the run whose log is log.jsonl in `folder`."""
    with open(os.path.join(folder, "log.jsonl")) as file:
        return [row for row in map(json.loads, file) if "loss" in row]


def communication_of(folder):
    """What rank 0 of that run issued, as its log's last line has it."""
    with open(os.path.join(folder, "log.jsonl")) as file:
        return json.loads(file.readlines()[-1])["communication"]
