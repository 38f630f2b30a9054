"""Runs the commands of a page's console blocks and puts what they print in place of what stands there.
usage: update_pages.py [--check] DROVER PAGE..

A block begins with ```console and holds `$ drover ..` and other commands, each followed by what it printed; a command may go on over
lines that end in a backslash. They run in the project's folder. A line `...` that ends a block's output, and spaces before
it, stand for what follows and is left out. --check changes nothing: it fails where a command does, or prints something else
than the page shows, figures included; only what a clock says (TIMES) may differ."""
import difflib
import os
import re
import subprocess
import sys

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Lines that a cut block shows of an output.
CUT = "...\n"
# What a command prints of its own time.
TIMES = r"(layouts? searched in) [\d.]+ m?s"


def run(drover, command):
    words = command.replace("\\\n", " ")
    words = re.sub(r"^\s*drover ", f"{drover} ", words)
    done = subprocess.run(words, shell=True, cwd=PROJECT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command}\n{done.stderr}")
    return done.stdout


def update_block(drover, block):
    parts = re.split(r"(?m)^\$ ((?:.*\\\n)*.*\n)", block)
    result = parts[0]
    for command, old in zip(parts[1::2], parts[2::2]):
        new = run(drover, command)
        if old.endswith(CUT):
            new = "".join(line + "\n" for line in new.split("\n")[:old.count("\n") - 1]) + CUT
        result += f"$ {command}{new}"
    return result


def without_times(text):
    return re.sub(TIMES, r"\1 a while", text)


def main():
    arguments = sys.argv[1:]
    check = arguments[0] == "--check"
    drover, *pages = arguments[check:]
    drover = os.path.abspath(drover)
    for page in pages:
        with open(page) as file:
            old = file.read()
        new = re.sub(r"(?ms)(^```console\n)(.*?)(^```)", lambda m: m[1] + update_block(drover, m[2]) + m[3], old)
        if not check:
            with open(page, "w") as file:
                file.write(new)
        elif without_times(new) != without_times(old):
            lines = difflib.unified_diff(without_times(old).split("\n"), without_times(new).split("\n"), page, "what the commands print", n=0, lineterm="")
            sys.exit("\n".join(lines))
    print(f"{len(pages)} pages {'hold' if check else 'updated'}")


main()
