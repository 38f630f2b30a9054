"""The kernels of a model's program for the cuda target, as the compiler makes them: what its bodies launch and multiply, and
what every kernel promises of its arguments. Read off the IR behind cuda-name-kernels."""
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "python"))
BYTES = {"i8": 1, "i1": 1, "bf16": 2, "f16": 2, "i32": 4, "f32": 4, "i64": 8, "f64": 8}


class Kernel:
    """One kernel: threads of a block, bytes of shared memory, and for each argument its extent (0: a number; None: not known
    before the run) and whether it is only read."""

    def __init__(self, signature):
        self.threads = int(re.search(r"nvvm.reqntid = array<i32: (\d+)", signature).group(1))
        self.shared = int(re.search(r"drover.shared_bytes = (\d+)", signature).group(1))
        self.arguments = []
        for argument in re.findall(r"%arg\d+: ([^%]*)", signature.split(") attributes")[0]):
            extent = re.search(r"dereferenceable = (\d+)", argument)
            self.arguments.append(0 if argument.startswith("i64") else int(extent.group(1)) if extent else None)
        self.reads_only = ["readonly" in argument for argument in re.findall(r"%arg\d+: ([^%]*)", signature)]


class Launch:
    def __init__(self, kernel, blocks, sizes, checks, elements):
        self.kernel, self.blocks, self.checks = kernel, blocks, checks
        self.sizes = sizes  # bytes of pointers, values of numbers as ("i64", value)
        self.elements = elements  # their types


class Matmul:
    def __init__(self, types, store, flags):
        shapes = [type[:-1] for type in types]
        self.batch = shapes[2][0] if len(shapes[2]) == 3 else 1
        self.m, self.n = shapes[2][-2:]
        self.k = shapes[0][-2] if "trans_lhs" in flags else shapes[0][-1]
        self.store, self.types = store, [type[-1] for type in types]

    def flops(self):
        return 2 * self.batch * self.m * self.n * self.k

    def bytes(self):
        sizes = (self.m * self.k, self.k * self.n, self.m * self.n * (1 if self.store == "overwrite" else 2))
        return self.batch * sum(size * BYTES[type] for size, type in zip(sizes, self.types))


class Collective:
    def __init__(self, kind, communicator, ranks, sizes):
        self.kind, self.communicator, self.ranks, self.sizes = kind, communicator, ranks, sizes

    def sent(self):
        """Bytes that a rank sends by the ring algorithm."""
        part = (self.ranks - 1) / self.ranks
        return {"all_reduce": 2 * part * self.sizes[0], "reduce_scatter": part * self.sizes[0], "all_gather": part * self.sizes[1],
                "shift": self.sizes[0]}[self.kind]


def shape_of(text, flat):
    """(sizes.., element) of a memref's text; a size that is known at run time only is `flat`."""
    *sizes, element = re.match(r"memref<([^,>]*)", text).group(1).split("x")
    return [flat if size == "?" else int(size) for size in sizes] + [element]


def bytes_of(text, flat):
    *sizes, element = shape_of(text, flat)
    total = BYTES[element]
    for size in sizes:
        total *= size
    return total


def split_types(text):
    """Types between commas, those within < > aside."""
    types, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            types.append(text[start:i].strip())
            start = i + 1
    return types + [text[start:].strip()]


class Body:
    """What a body does, in order, and its flops as the dialect counts them."""

    def __init__(self, signature, flat):
        self.flat = flat
        self.flops = int(re.search(r"drover.flops = (\d+)", signature).group(1))
        self.kind = re.search(r'tfm.body = "(\w+)"', signature).group(1)
        self.steps = []
        self.values = {}  # what is known of numbers

    def number(self, name):
        return self.values.get(name, 0)

    def read(self, line):
        if constant := re.search(r"(%\w+) = arith.constant (\d+) :", line):
            self.values[constant[1]] = int(constant[2])
        elif size := re.search(r"(%\w+) = rt.call_size", line):
            self.values[size[1]] = self.flat
        elif cast := re.search(r"(%\w+) = arith.index_cast (%\w+)", line):
            self.values[cast[1]] = self.number(cast[2])
        elif sum_ := re.search(r"(%\w+) = arith.(addi|divui) (%\w+), (%\w+) :", line):
            a, x = self.number(sum_[3]), self.number(sum_[4])
            self.values[sum_[1]] = a + x if sum_[2] == "addi" else a // x
        elif launch := re.search(r"rt.gpu_launch %\w+ @(\w+)::@\w+ blocks (%\w+) ?\((.*?)\)(.*?)(?: : (.*))?$", line):
            operands, types = [operand.strip() for operand in launch[3].split(",")], split_types(launch[5])
            sizes = [("i64", self.number(operand)) if type == "i64" else bytes_of(type, self.flat) for operand, type in zip(operands, types)]
            elements = [type if type == "i64" else shape_of(type, self.flat)[-1] for type in types]
            self.steps.append(Launch(launch[1], self.number(launch[2]), sizes, "check" in launch[4], elements))
        elif matmul := re.search(r"rt.matmul .* (overwrite|add|accumulate) ?(\{.*?\})? : (.*)$", line):
            self.steps.append(Matmul([shape_of(type, self.flat) for type in split_types(matmul[3])], matmul[1], matmul[2] or ""))
        elif start := re.search(r"rt.collective_start %\w+ (\w+) (?:op \w+ )?(\w+) slot .* ranks = (\d+) .*?\} : (.*)$", line):
            self.steps.append(Collective(start[1], start[2], int(start[3]), [bytes_of(type, self.flat) for type in split_types(start[4])]))
        elif "rt.collective_start" in line or "rt.gpu_launch" in line or "rt.matmul" in line:
            raise SystemExit(f"not understood: {line}")


class Program:
    """`config` compiled with `options`; `folder` gets lowered.mlir, which has the kernels. Flat bodies have `flat` elements: a rank's
    share of the optimizer, or of the parameters."""

    def __init__(self, build, folder, config, options, flat):
        bodies, self.lowered = (os.path.join(folder, name) for name in ("bodies.mlir", "lowered.mlir"))
        binary = lambda name: os.path.join(build, "bin", name)
        subprocess.run([binary("drover"), "compile", config, "--task=train", "--compute-dtype=bf16", "--target=cuda",
                        "--emit=mlir", "--stop-after=partition", *options, "-o", bodies], check=True)
        done = subprocess.run([binary("drover-opt"), bodies, "--tfm-erase-distributions", "--cuda-lowering",
                               "--mlir-print-ir-after=cuda-name-kernels", "-o", self.lowered], check=True, text=True, stderr=subprocess.PIPE)
        self.kernels, self.bodies, body = {}, {}, None
        for line in done.stderr.split("\n"):
            if kernel := re.match(r"    llvm.func @(\w+)\(.*nvvm.kernel", line):
                self.kernels[kernel[1]] = Kernel(line)
            elif function := re.match(r"  func.func private @(\w+)\(.*drover.flops", line):
                body = self.bodies[function[1]] = Body(line, flat)
            elif line == "  }":
                body = None
            elif body:
                body.read(line)
