"""Reads the ops of .td files: their names, examples and numbered constraints.

usage: tfm_td.py examples FILE.td..             prints a module with every example, each in a function of its own
       tfm_td.py constraints FOLDER FILE.td..   fails where a constraint Cn of an op has no function @cn.. in
                                                FOLDER/OP-invalid.mlir
       tfm_td.py hostile SEED COUNT FILE.td..   prints COUNT examples with sizes, numbers, types and ranks changed at
                                                random, separated for --split-input-file
"""
import os
import random
import re
import sys


def split_types(text):
    """Splits at commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "<([{":
            depth += 1
        elif c in "])}" or (c == ">" and text[i - 1] != "-"):
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return parts + [last] if last else parts


def read_ops(paths):
    """(mnemonic, description) of every op, in order."""
    for path in paths:
        with open(path) as file:
            text = file.read()
        starts = [(m.start(), m.group(2)) for m in re.finditer(r'^def (Tfm_\w+Op)\b[^"]*?"(\w+)"', text, re.M)]
        for (start, mnemonic), end in zip(starts, [s for s, _ in starts[1:]] + [len(text)]):
            found = re.search(r"let description = \[\{(.*?)\}\];", text[start:end], re.S)
            yield mnemonic, found.group(1) if found else ""


def example_lines(description):
    block = re.search(r"```mlir\n(.*?)```", description, re.S)
    return [line.strip() for line in block.group(1).splitlines() if line.strip()] if block else []


# What the ops that know the rank look up.
GRID = "tfm.grid = {tp = 4, cp = 2}"


def function_of(name, line):
    """A function around one op: its operands become arguments, typed by the op's signature."""
    operation = line.split("=", 1)[1]
    head = re.sub(r"\{.*\}", "", operation.split(" : ")[0])
    operands = re.findall(r"%\w+", head)
    signature = operation.rsplit(" : ", 1)[1]
    types = signature.split("->")[0].strip() if "->" in signature else ""
    types = split_types(types[1:-1] if types.startswith("(") else types)
    arguments = {}
    for operand, kind in zip(operands, types if operands else []):
        arguments.setdefault(operand, kind)
    assert len(operands) == len(types) or not operands, f"{name}: {operands} against {types}"
    listed = ", ".join(f"{operand}: {kind}" for operand, kind in arguments.items())
    return f"func.func @{name}({listed}) attributes {{{GRID}}} {{\n  {line}\n  return\n}}\n"


SIZES = ["0", "1", "2", "3", "8", "?", "4611686018427387904", "9223372036854775807"]
NUMBERS = ["0", "1", "-1", "2", "3", "9223372036854775807", "-9223372036854775808"]
ELEMENTS = ["f32", "f64", "bf16", "f16", "i1", "i8", "i32", "i64", "index"]


def changed(line):
    """The line with one part changed; sometimes that gives a valid program."""
    def pick(pattern, make):
        found = list(re.finditer(pattern, line))
        if not found:
            return line
        match = random.choice(found)
        return line[:match.start()] + make(match.group()) + line[match.end():]

    def resized(tensor):
        sizes, element = tensor[len("tensor<"):-1].split("x")[:-1], tensor[:-1].split("x")[-1].split("<")[-1]
        choice = random.randrange(4)
        if choice == 0 and sizes:
            sizes[random.randrange(len(sizes))] = random.choice(SIZES)
        elif choice == 1 and sizes:
            del sizes[random.randrange(len(sizes))]
        elif choice == 2:
            sizes.insert(random.randint(0, len(sizes)), random.choice(SIZES))
        else:
            element = random.choice(ELEMENTS)
        return "tensor<" + "".join(size + "x" for size in sizes) + element + ">"

    if random.random() < 0.6:
        return pick(r"tensor<[^<>]*>", resized)
    return pick(r"(?<=[ ,:])-?\d+(?= : i64|,|>)", lambda number: random.choice(NUMBERS))


def main():
    mode, rest = sys.argv[1], sys.argv[2:]
    failures = []
    if mode == "examples":
        for mnemonic, description in read_ops(rest):
            lines = [line for line in example_lines(description) if f"tfm.{mnemonic} " in line]
            if not lines:
                failures.append(f"tfm.{mnemonic} has no example")
            for i, line in enumerate(lines):
                print(function_of(f"{mnemonic}_{i}", line))
    elif mode == "hostile":
        random.seed(int(rest[0]))
        lines = [line for _, description in read_ops(rest[2:]) for line in example_lines(description)]
        programs = []
        while len(programs) < int(rest[1]):
            line = random.choice(lines)
            for _ in range(random.randint(1, 3)):
                line = changed(line)
            programs.append(function_of("hostile", line))
        print("\n// -----\n\n".join(programs))
    else:
        for mnemonic, description in read_ops(rest[1:]):
            path = os.path.join(rest[0], mnemonic.replace("_", "-") + "-invalid.mlir")
            tests = open(path).read() if os.path.exists(path) else ""
            constraints = re.findall(r"^\s*C(\d+):", description, re.M)
            if not constraints:
                failures.append(f"tfm.{mnemonic} has no numbered constraint")
            failures += [f"C{n} of tfm.{mnemonic} has no negative test in {os.path.basename(path)}"
                         for n in constraints if not re.search(rf"@c{n}\b|@c{n}_", tests)]
    if failures:
        sys.exit("\n".join(failures))


main()
