#!/usr/bin/env python3
"""What every kernel of a layer, an embedding, a loss and an update costs: the emulator counts bytes and floating-point operations,
ptxas says registers and spills, nvdisasm the instructions of the inner loop. Prints Markdown, or puts it into the marks of a page.

usage: gpu_kernels [--build build] [--report docs/gpu-kernels.md] [--model NAME..]
       gpu_kernels --attention[=docs/cuda.md]     what ptxas says of attention's kernels by head size, from the test that guards it
"""
import argparse
import collections
import ctypes
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile

from gpu_program import TOP, Launch, Program
from drover.pages import put_between_marks

FLAT = 1 << 18  # elements of flat bodies
ROWS = 128  # positions of a sequence
MODELS = {"llama-3.1-8b": {"num_hidden_layers": 1}, "gpt2": {"n_layer": 1}}
# The embedding's table and its gradient are as large as the vocabulary, and no row more is touched.
VOCABULARY = 2048
SHARED_OF_MULTIPROCESSOR, SHARED_OF_BLOCK, REGISTERS, THREADS = 228 << 10, 1 << 10, 65536, 2048  # compute capability 9.0 (CUDA guide)


# ------------------------------------------------------------------------------------------------------------------------
# The emulator
# ------------------------------------------------------------------------------------------------------------------------

class Dim(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in "xyz"]


TOUCHED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class How(ctypes.Structure):
    _fields_ = [("grid", Dim), ("block", Dim), ("shared", ctypes.c_uint32), ("seed", ctypes.c_uint64), ("touched", TOUCHED), ("context", ctypes.c_void_p)]


class EmulatedKernel(ctypes.Structure):  # drover_emu_kernel
    _fields_ = [("name", ctypes.c_char_p), ("thread", ctypes.c_void_p), ("arguments", ctypes.c_void_p), ("sites", ctypes.c_void_p),
                *((name, ctypes.c_uint32) for name in ("argument_count", "site_count", "static_shared", "shared", "threads", "granule"))]


class Library(ctypes.Structure):  # drover_emu_library
    _fields_ = [("version", ctypes.c_uint32), ("count", ctypes.c_uint32), ("kernels", ctypes.POINTER(EmulatedKernel))]


class Counters(ctypes.Structure):  # drover_emu_counters
    _fields_ = [(name, ctypes.c_uint64) for name in ("read", "written", "switches", "warp_operations", "barriers", "blocks", "flops")]


class Emulator:
    def __init__(self, build, lowered, folder):
        library = os.path.join(folder, "kernels.so")
        subprocess.run([os.path.join(build, "bin/drover-emulate-kernels"), lowered, "-o", library], check=True)
        found = glob.glob(os.path.join(build, "**/libdrover_emulator.so"), recursive=True)
        self.emulator = ctypes.CDLL(found[0], ctypes.RTLD_GLOBAL)
        self.emulator.drover_emu_run.restype = ctypes.c_uint64
        table = Library.in_dll(ctypes.CDLL(library), "drover_emu_library")
        self.kernels = {table.kernels[i].name.decode(): table.kernels[i] for i in range(table.count)}

    def counters(self):
        values = Counters()
        self.emulator.drover_emu_read_counters(ctypes.byref(values))
        return values

    def run(self, launch):
        """(bytes moved, bytes that were touched, floating-point operations). Memory holds numbers that count up: valid indices."""
        kernel, touched, keep, values = self.kernels[launch.kernel], [0], [], []
        for size in launch.sizes + ([("i64", 0), 16] if launch.checks else []):
            if isinstance(size, tuple):
                values.append(ctypes.c_int64(size[1]))
                continue
            count = (size + 7) // 8 + 8
            memory = (ctypes.c_int64 * count)(*([0] * count if size == 16 else range(count)))
            base = (ctypes.addressof(memory) + 63) // 64 * 64
            self.emulator.drover_emu_memory_add(ctypes.c_void_p(base), ctypes.c_size_t(size))
            self.emulator.drover_emu_memory_written(ctypes.c_void_p(base), ctypes.c_size_t(size))
            keep.append((memory, base))
            values.append(ctypes.c_void_p(base))

        @TOUCHED
        def count_touched(context, base, size, written):
            touched[0] += size

        how = How(Dim(launch.blocks, 1, 1), Dim(kernel.threads, 1, 1), kernel.shared - kernel.static_shared, 0, count_touched, None)
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        before = self.counters()
        if self.emulator.drover_emu_run(ctypes.byref(kernel), ctypes.byref(how), pointers):
            raise SystemExit(f"faults of {launch.kernel}")
        after = self.counters()
        for _, base in keep:
            self.emulator.drover_emu_memory_remove(ctypes.c_void_p(base))
        return after.read - before.read + after.written - before.written, touched[0], after.flops - before.flops


# ------------------------------------------------------------------------------------------------------------------------
# ptxas and nvdisasm
# ------------------------------------------------------------------------------------------------------------------------

def find_tool(name):
    wheels = glob.glob(os.path.join(TOP, f".venv/lib/python*/site-packages/nvidia/**/bin/{name}"), recursive=True)
    return shutil.which(name) or next((path for path in (f"/usr/local/cuda/bin/{name}", *wheels) if os.path.exists(path)), None)


def registers_and_spills(ptxas, ptx, cubin):
    text = subprocess.run([ptxas, "-arch=sm_90", "-v", "-o", cubin, ptx], check=True, text=True, stderr=subprocess.PIPE).stderr
    spilled = sum(int(bytes_) for bytes_ in re.findall(r"(\d+) bytes spill", text))
    return int(re.search(r"Used (\d+) registers", text).group(1)), spilled


class Instruction:
    """Bytes of global memory and flops of one thread, at an instruction of SASS."""

    def __init__(self, text):
        words = re.sub(r"^@!?U?P\w+ ", "", text)
        self.name = words.split()[0].rstrip(";")
        self.target = (re.search(r"BRA.*`\((\.L_x_\d+)\)", words) or [None, None])[1]
        parts = self.name.split(".")
        width = next((int(part) // 8 for part in parts if part in ("128", "64", "32")), {"U8": 1, "S8": 1, "U16": 2, "S16": 2}.get(parts[-1], 4))
        self.bytes = width if parts[0] in ("LDG", "STG", "LDGSTS") else 0
        self.flops = {"FFMA": 2, "DFMA": 2, "FADD": 1, "FMUL": 1, "DADD": 1, "DMUL": 1, "HFMA2": 4, "HADD2": 2, "HMUL2": 2}.get(parts[0], 0)
        if parts[0] == "HMMA":
            self.flops = 2 * 16 * 8 * 16 // 32
        if parts[0] == "HGMMA":  # of 64xNx16, by 128 threads
            self.flops = 2 * 64 * int(parts[1].split("x")[1]) * 16 // 128


def inner_loop(nvdisasm, cubin):
    """(instructions, bytes, flops) of a thread in one turn of the loop that does most of the work, or from start to end where nothing loops."""
    text = subprocess.run([nvdisasm, "-c", cubin], check=True, text=True, stdout=subprocess.PIPE).stdout
    code, labels, loops = [], {}, []
    for line in text.split("\n"):
        if label := re.match(r"(\.L_x_\d+):", line):
            labels[label[1]] = len(code)
        elif instruction := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?;)", line):
            code.append(Instruction(instruction[1]))
    for end, instruction in enumerate(code):
        start = labels.get(instruction.target, end + 1)
        if start < end:  # the branch to itself behind the end is no loop
            loops.append((start, end + 1))
    work = lambda loop: max(sum(i.flops for i in code[slice(*loop)]) * (any(i.name.startswith(("HMMA", "HGMMA")) for i in code)), sum(i.bytes for i in code[slice(*loop)]))
    loops = [loop for loop in loops if work(loop)]
    # Of nested ones with as much the innermost.
    most = max(map(work, loops), default=0)
    begin, end = min((loop for loop in loops if 2 * work(loop) >= most), key=lambda loop: loop[1] - loop[0], default=(0, len(code)))
    part = [i for i in code[begin:end] if i.name != "NOP"]
    return len(part), sum(i.bytes for i in part), sum(i.flops for i in part), bool(loops)


def resident_blocks(threads, registers, shared):
    warps = (threads + 31) // 32
    by_registers = REGISTERS // ((registers * 32 + 255) // 256 * 256) // warps
    return min(THREADS // threads, by_registers, SHARED_OF_MULTIPROCESSOR // (shared + SHARED_OF_BLOCK), 32)


# ------------------------------------------------------------------------------------------------------------------------
# The table
# ------------------------------------------------------------------------------------------------------------------------

def write_config(folder, model, changes):
    with open(os.path.join(TOP, "models", model + ".json")) as file:
        config = json.load(file) | changes
    path = os.path.join(folder, "config.json")
    with open(path, "w") as file:
        json.dump(config, file)
    return path


def rows_of(build, model, changes, takes):
    """(bodies, kernel, figures) of the launches of the bodies that `takes` takes, each kernel once."""
    ptxas, nvdisasm = find_tool("ptxas"), find_tool("nvdisasm")
    with tempfile.TemporaryDirectory() as folder:
        config = write_config(folder, model, changes)
        options = [f"--seq-len={ROWS}"]
        program = Program(build, folder, config, options, FLAT)
        subprocess.run([os.path.join(build, "bin/drover"), "compile", config, "--task=train", "--compute-dtype=bf16", "--target=cuda", "--emit=ptx",
                        *options, "-o", os.path.join(folder, "ptx")], check=True)
        emulator = Emulator(build, program.lowered, folder)
        users = collections.defaultdict(list)
        for name, body in program.bodies.items():
            for step in body.steps:
                if takes(name) and isinstance(step, Launch):
                    users[step.kernel].append((name, step))
        for name, uses in users.items():
            kernel, launch = program.kernels[name], uses[0][1]
            moved, touched, flops = emulator.run(launch)
            registers, spilled = registers_and_spills(ptxas, os.path.join(folder, "ptx", name + ".ptx"), os.path.join(folder, "cubin"))
            instructions, bytes_, loop_flops, loops = inner_loop(nvdisasm, os.path.join(folder, "cubin"))
            blocks = resident_blocks(kernel.threads, registers, kernel.shared)
            attention = name.startswith("attention") and "documents" not in name
            per = f"{instructions / loop_flops:.3f} a flop" if attention and loop_flops else f"{instructions / bytes_:.2f} a byte" if bytes_ else "-"
            yield (f"| {', '.join(dict.fromkeys(user for user, _ in uses))} | {name.rsplit('_', 1)[0]} | {launch.blocks} x {kernel.threads} | {moved / 2**20:.2f} |"
                   f" {touched / 2**20:.2f} | {moved / touched:.2f} | {flops / 1e6:.1f} | {registers} | {kernel.shared / 1024:.1f} | {spilled} |"
                   f" {blocks * kernel.threads * 100 // THREADS} | {per}{'' if loops else ', no loop'} |")


def table_of(build, model):
    embeds = lambda name: name.startswith("embed")
    lines = [f"`models/{model}.json`, bf16, one sequence of {ROWS} tokens, one layer; of flat bodies {FLAT} elements; the embedding's kernels at a vocabulary of {VOCABULARY}:", "",
             "| bodies | kernel | blocks x threads | MiB moved | MiB touched | ratio | Mflop | registers | shared KiB | spilled | occupancy % | instructions |",
             "|" + " --- |" * 12]
    lines += rows_of(build, model, MODELS[model], lambda name: not embeds(name))
    lines += rows_of(build, model, MODELS[model] | {"vocab_size": VOCABULARY}, embeds)
    return "\n".join(lines) + "\n"


def attention_table(build):
    """From what CudaTargetTest records of the bodies attention_SIZE_TYPE and attention_grad_SIZE_TYPE."""
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "tests.json")
        subprocess.run([os.path.join(build, "unittests/CudaTargetTest"), "--gtest_filter=*AssembleWithoutSpills/attention_*", f"--gtest_output=json:{output}"],
                       check=True, stdout=subprocess.DEVNULL)
        with open(output) as file:
            tests = [test for suite in json.load(file)["testsuites"] for test in suite["testsuite"]]
    for test in tests:
        body = re.fullmatch(r"AssembleWithoutSpills/attention_(?:grad_)?(\d+)_(f32|bf16)(_wgmma)?", test["name"])
        for key, value in test.items():
            if body and (kernel := re.fullmatch(r"attention_(query_grad_|key_grad_|)[0-9a-f]+_registers", key)):
                shared, threads = (int(test[key.replace("registers", what)]) for what in ("shared_bytes", "threads"))
                row = (int(body[1]), body[2], "wgmma" if body[3] else "mma.sync" if body[2] == "bf16" else "fused multiply-add")
                figures.setdefault(row, {})[kernel[1]] = f"{value}, {shared / 1024:.0f} KiB, {resident_blocks(threads, int(value), shared)} x {threads} threads"
    lines = ["| head size | | products | forward | dQ | dK and dV |", "|" + " --- |" * 6]
    for (size, element, products), kernels in sorted(figures.items(), key=lambda item: (item[0][0], item[0][1], item[0][2])):
        lines.append(f"| {size} | {element} | {products} | " + " | ".join(kernels[which] for which in ("", "query_grad_", "key_grad_")) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(TOP, "build"))
    parser.add_argument("--report")
    parser.add_argument("--model", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--attention", nargs="?", const="")
    arguments = parser.parse_args()
    os.environ.setdefault("DROVER_EMU_QUIET", "1")
    if arguments.attention is not None:
        text = attention_table(os.path.abspath(arguments.build))
        return put_between_marks(arguments.attention, "gpu_kernels.py --attention", text) if arguments.attention else print(text)
    text = "\n".join(table_of(os.path.abspath(arguments.build), model) for model in arguments.model)
    if arguments.report:
        put_between_marks(arguments.report, "gpu_kernels.py", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
