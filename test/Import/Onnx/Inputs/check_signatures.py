"""usage: check_signatures.py PROJECT DROVER. Holds the table of lib/Import/Onnx/Signatures.cpp against the schemas of the
onnx package, and leaves out each required input once: one error that names it."""
import glob
import os
import re
import subprocess
import sys
import tempfile

from onnx import TensorProto, defs, helper

OLDEST, NEWEST = 11, 28
MANY = 1 << 30


def table_of(project):
    """Operator -> (required inputs, inputs, outputs, attributes), and the operators that have a handler."""
    with open(os.path.join(project, "lib/Import/Onnx/Signatures.cpp")) as file:
        rows = re.findall(r'\{"(\w+)", (\w+), (\w+), (\w+),\s*((?:"[^"]*"\s*)+)\}', file.read())
    number = lambda text: MANY if text == "any" else int(text)
    table = {name: (number(least), number(most), number(outputs), set(" ".join(re.findall(r'"([^"]*)"', names)).split()))
             for name, least, most, outputs, names in rows}
    handled = set()
    for path in glob.glob(os.path.join(project, "lib/Import/Onnx/*.cpp")):
        with open(path) as file:
            handled |= set(re.findall(r'table\.add\("", "(\w+)"', file.read()))
    return table, handled


def schemas_of():
    """Operator -> the schemas of ai.onnx that opsets 11 to 28 mean."""
    found = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= NEWEST:
            found.setdefault(schema.name, []).append(schema)
    for name, schemas in found.items():
        newest_before = max((s.since_version for s in schemas if s.since_version <= OLDEST), default=OLDEST)
        found[name] = [s for s in schemas if s.since_version >= newest_before]
    return found


def signature_of(schemas):
    many = lambda count: count if count < 1000 else MANY
    return (min(s.min_input for s in schemas), many(max(s.max_input for s in schemas)),
            many(max(s.max_output for s in schemas)), set().union(*(s.attributes for s in schemas)))


def expects_missing(drover, path, name, inputs, index):
    """Whether a node with these inputs gives one error, that its input `index` is missing."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node(name, inputs, ["y"], name="odd")], "g", [x], [y])
    with open(path, "wb") as file:
        file.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10).SerializeToString())
    done = subprocess.run([drover, "import", path, "-o", os.devnull], capture_output=True, text=True)
    if done.returncode == 1 and done.stderr.count("error: ") == 1 and f"{name}: input {index} is missing" in done.stderr:
        return True
    print(f"{name} without input {index}: status {done.returncode}, {done.stderr}")
    return False


def main():
    project, drover = sys.argv[1:]
    table, handled = table_of(project)
    # ONNX Runtime writes this one into the standard's domain, which has no such operator.
    faults = [f"{name}: handled, but without a signature" for name in sorted(handled - set(table) - {"SimplifiedLayerNormalization"})]
    if defs.onnx_opset_version() >= NEWEST:
        schemas = schemas_of()
        faults += [f"{name}: {row} where the standard has {signature_of(schemas[name])}" for name, row in table.items()
                   if name not in schemas or row != signature_of(schemas[name])]
    print("\n".join(faults) or f"{len(table)} signatures, {len(handled)} handlers")
    good = len(table) > 80 and len(handled) > 60
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "odd.onnx")
        for name, (required, *_) in table.items():
            if required:
                good &= expects_missing(drover, path, name, ["x"] * (required - 1), required - 1)
            if required > 1:
                good &= expects_missing(drover, path, name, [""] + ["x"] * (required - 1), 0)
    return not good or bool(faults)


sys.exit(main())
