"""Holds the #include lines of the sources against the layering of docs/architecture.md.

usage: layers.py PROJECT      prints each fault, or how many files keep the layering; status 1 on a fault
A folder without a rule, a rule without a folder and a pattern that names nothing are faults too: what is renamed does not
slip through.
"""
import os
import re
import sys

NO_MLIR = ["mlir/", "drover/Dialect", "drover/Import", "drover/Interpreter", "drover/Conversion", "drover/Target", "drover/Pipelines", "drover/Registration.h"]
NO_LLVM = ["llvm/"] + NO_MLIR
ABOVE_CONVERSION = ["drover/Import", "drover/Pipelines", "drover/Registration.h", "drover/Target"]
TFM_TRANSFORMS = "drover/Dialect/Tfm/Transforms"

# Of include/drover/AREA and lib/AREA: beginnings of headers that neither may include. The rule of the longest name counts.
AREAS = {
    "Cluster": NO_LLVM + ["drover/Cost", "drover/Planner"],
    "Cluster/Yaml": NO_MLIR + ["drover/Cost", "drover/Planner"],
    "Conversion": ABOVE_CONVERSION + [TFM_TRANSFORMS],
    "Cost": NO_LLVM + ["drover/Nccl", "drover/Planner"],
    "Dialect/Rt": ABOVE_CONVERSION + ["drover/Conversion", "drover/Dialect/Tfm"],
    "Dialect/Tfm/IR": ABOVE_CONVERSION + ["drover/Conversion", TFM_TRANSFORMS],
    "Dialect/Tfm/Transforms": ABOVE_CONVERSION + ["drover/Conversion"],
    "Import": ["drover/Pipelines", "drover/Registration.h", "drover/Target", "drover/Conversion", TFM_TRANSFORMS],
    "Interpreter": ABOVE_CONVERSION + ["drover/Conversion", TFM_TRANSFORMS],
    "Nccl": NO_LLVM + ["drover/Planner"],
    "Pipelines": ["drover/Registration.h"],
    "Planner": NO_LLVM,
    "Registration": ["drover/Pipelines"],
    "Schedule": NO_LLVM + ["drover/Cluster", "drover/Cost", "drover/Planner"],
    "Support": ["mlir/", "drover/Dialect", "drover/Import", "drover/Conversion", "drover/Target", "drover/Pipelines", "drover/Registration.h"],
    "Target": ["drover/Import", "drover/Pipelines", "drover/Registration.h", TFM_TRANSFORMS],
}
# Of the other folders.
FOLDERS = {
    "tools": ["drover/Dialect/Rt", TFM_TRANSFORMS, "drover/Conversion", "drover/Target", "drover/rt"],
    "runtime": NO_LLVM + ["drover/Schedule", "drover/Cluster", "drover/Cost", "drover/Nccl", "drover/Planner", "drover/Support"],
    "emulation": ["drover/Dialect", "drover/Import", "drover/Pipelines", "drover/Conversion", "drover/Schedule"],
    "emulation/emulator/lib": ["mlir/", "llvm/", "drover/"],
}
# What lib/ must not do: end the process, write to a stream that the caller did not give, own command-line options.
FORBIDDEN_CALLS = re.compile(r"llvm::errs\(\)|\bstd::exit\(|(?<![\w.:])exit\(|static\s+(llvm::)?cl::opt")
INCLUDE = re.compile(r'\s*(?:#include|include)\s*[<"]([^>"]+)')
# Headers of both halves: include/ is the compiler's, runtime/include the runtime's.
HEADER_FOLDERS = ["include", "runtime/include"]


def rules():
    """Folder -> beginnings of headers that it may not include."""
    found = dict(FOLDERS)
    for area, patterns in AREAS.items():
        found["include/drover/" + area] = found["lib/" + area] = patterns
    return found


def rule_of(folder, table):
    """The longest folder of the table that has this one."""
    while folder and folder not in table:
        folder = os.path.dirname(folder)
    return folder


def faults_of_table(top, table):
    """Rules that would pass because they name nothing."""
    for folder in table:
        # Headers of the registration stand alone, and not every area has both halves.
        area = folder.split("/", 2)[-1] if folder.startswith("include/") else folder.split("/", 1)[-1]
        halves = ["include/drover/" + area, "lib/" + area] if area in AREAS else [folder]
        if not any(os.path.isdir(os.path.join(top, half)) for half in halves):
            yield f"{folder}: no such folder, but a rule for it"
    for pattern in {pattern for patterns in table.values() for pattern in patterns if pattern.startswith("drover/")}:
        if not any(os.path.exists(os.path.join(top, base, pattern)) for base in HEADER_FOLDERS):
            yield f"{pattern}: no such header or folder, but a rule names it"


def faults_of_file(top, relative, forbidden):
    with open(os.path.join(top, relative)) as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if match and any(match.group(1).startswith(pattern) for pattern in forbidden):
                yield f"{relative}:{number}: includes {match.group(1)}"
            if relative.startswith("lib/") and FORBIDDEN_CALLS.search(line.split("//")[0]):
                yield f"{relative}:{number}: {line.strip()}"


def main():
    top, table, read = sys.argv[1], rules(), 0
    faults = list(faults_of_table(top, table))
    for base in ("include", "lib", "runtime", "tools", "emulation"):
        for folder, _, names in os.walk(os.path.join(top, base)):
            sources = sorted(name for name in names if name.endswith((".h", ".cpp", ".td")))
            relative = os.path.relpath(folder, top)
            rule = rule_of(relative, table)
            # include/drover/Registration.h is the one header outside the areas.
            if sources and not rule and relative != "include/drover":
                faults.append(f"{relative}: no rule for this folder")
            for name in sources:
                read += 1
                faults += faults_of_file(top, os.path.join(relative, name), table.get(rule, []))
    print("\n".join(faults) or f"{read} files keep the layering")
    sys.exit(bool(faults) or read == 0)


main()
