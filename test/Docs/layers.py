"""Holds the #include lines of the sources against the layering of docs/architecture.md. usage: layers.py PROJECT"""
import os
import re
import sys

NO_IR = ["mlir/", "llvm/", "drover/Dialect", "drover/Import", "drover/Pipelines"]
# Folder -> patterns of project headers it must not include; "mlir/" and "llvm/" likewise.
FORBIDDEN = {
    "include/drover/Dialect/Tfm/IR": ["drover/Dialect/Tfm/Transforms", "drover/Import", "drover/Pipelines", "drover/Interpreter", "drover/Target", "drover/Conversion"],
    "lib/Dialect/Tfm/IR": ["drover/Dialect/Tfm/Transforms", "drover/Import", "drover/Pipelines", "drover/Target", "drover/Conversion"],
    "lib/Dialect/Tfm/Transforms": ["drover/Import", "drover/Pipelines", "drover/Target", "drover/Conversion"],
    "include/drover/Dialect/Rt": ["drover/Dialect/Tfm", "drover/Import", "drover/Pipelines", "drover/Target", "drover/Conversion"],
    "lib/Dialect/Rt": ["drover/Dialect/Tfm", "drover/Import", "drover/Pipelines", "drover/Target", "drover/Conversion"],
    "lib/Conversion": ["drover/Dialect/Tfm/Transforms", "drover/Import", "drover/Pipelines", "drover/Target"],
    "lib/Target": ["drover/Dialect/Tfm/Transforms", "drover/Import", "drover/Pipelines"],
    "lib/Import": ["drover/Pipelines", "drover/Target", "drover/Conversion"],
    "lib/Interpreter": ["drover/Import", "drover/Pipelines", "drover/Target", "drover/Conversion", "drover/Dialect/Tfm/Transforms"],
    "include/drover/Cluster": NO_IR + ["drover/Cost", "drover/Planner"],
    "lib/Cluster/Yaml": ["mlir/", "drover/Dialect", "drover/Import", "drover/Pipelines", "drover/Cost", "drover/Planner"],
    "include/drover/Cost": NO_IR + ["drover/Planner"],
    "lib/Cost": NO_IR + ["drover/Planner"],
    "include/drover/Planner": NO_IR,
    "lib/Planner": NO_IR,
    "include/drover/Schedule": ["mlir/", "llvm/", "drover/Dialect", "drover/Import", "drover/Pipelines"],
    "lib/Schedule": ["mlir/", "llvm/", "drover/Dialect", "drover/Import", "drover/Pipelines"],
    "runtime": ["mlir/", "llvm/", "drover/Dialect", "drover/Import", "drover/Pipelines", "drover/Schedule"],
    "emulation": ["drover/Dialect", "drover/Import", "drover/Pipelines", "drover/Conversion", "drover/Schedule"],
    "emulation/emulator/lib": ["mlir/", "llvm/", "drover/"],
    "emulation/standins": ["mlir/", "llvm/", "drover/Target"],
}
# What lib/ must not do: end the process, write to a stream that the caller did not give, own command-line options.
FORBIDDEN_CALLS = re.compile(r"llvm::errs\(\)|\bstd::exit\(|(?<![\w.:])exit\(|static\s+(llvm::)?cl::opt")


def main():
    top, faults, read = sys.argv[1], [], 0
    for folder in ("include", "lib", "runtime", "emulation"):
        for base, _, names in os.walk(os.path.join(top, folder)):
            for name in names:
                if not name.endswith((".h", ".cpp", ".td")):
                    continue
                path = os.path.join(base, name)
                relative = os.path.relpath(path, top)
                read += 1
                with open(path) as file:
                    for number, line in enumerate(file, 1):
                        match = re.match(r'\s*(?:#include|include)\s*[<"]([^>"]+)', line)
                        for prefix, patterns in FORBIDDEN.items():
                            if match and relative.startswith(prefix + "/") and any(match.group(1).startswith(p) for p in patterns):
                                faults.append(f"{relative}:{number}: includes {match.group(1)}")
                        if relative.startswith("lib/") and FORBIDDEN_CALLS.search(line.split("//")[0]):
                            faults.append(f"{relative}:{number}: {line.strip()}")
    print("\n".join(faults) or f"{read} files keep the layering")
    sys.exit(bool(faults) or read == 0)


main()
