"""Holds the variables that runtime/ and lib/ name in string literals against docs/running.md.

usage: variables.py SOURCE
"""
import os
import re
import sys

PATTERN = re.compile(r'"((?:DROVER|NCCL|CUDA|NVTX|SLURM|OMPI|PMI|PMIX|MASTER|MPI|LOCAL)_[A-Z0-9_]+)"')


def main():
    source, found = sys.argv[1], {}
    with open(os.path.join(source, "docs/running.md")) as file:
        page = set(re.findall(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+", file.read()))
    for top in ("runtime", "lib"):
        for folder, _, names in sorted(os.walk(os.path.join(source, top))):
            for name in sorted(names):
                if name.endswith((".cpp", ".h")):
                    path = os.path.join(folder, name)
                    with open(path) as file:
                        for variable in PATTERN.findall(file.read()):
                            found.setdefault(variable, os.path.relpath(path, source))
    faults = [f"{name}: in {place}, not on docs/running.md" for name, place in sorted(found.items()) if name not in page]
    faults += [f"{name}: on docs/running.md, but nothing reads it" for name in sorted(page) if name.startswith("DROVER_") and name not in found]
    print("\n".join(faults) if faults else f"{len(found)} variables, all on the page")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
