"""usage: every_phase.py DROVER DROVER-OPT MODEL.mlir
Stops after every phase that the help names, of both tasks, prints after it, and holds what is written against what the help says:
MLIR is what drover-opt reads, and what --print-after prints."""
import os
import re
import subprocess
import sys
import tempfile


def phases(drover):
    """Name -> (of training only, what is handed on), in order."""
    text = subprocess.run([drover, "compile", "--help"], capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^  ([a-z-]+) {2,}(.*)$", text.split("phases, in order")[1], re.M)
    return {name: ("(train)" in rest, rest.rsplit(": ", 1)[1] if ";" not in rest else re.search(r": (an [^;]*);", rest).group(1))
            for name, rest in rows}


def check(drover, opt, model, task, phase, result, folder):
    out = os.path.join(folder, "out")
    command = [drover, "compile", model, f"--task={task}", "--seq-len=8", f"--stop-after={phase}", f"--print-after={phase}", "-o", out]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return f"status {done.returncode}: {done.stderr}"
    with open(out, "rb") as file:
        written = file.read()
    if result in ("MLIR", "the step program as text") and written.decode() != done.stderr:
        return "what is written is not what is printed"
    if result == "MLIR" and subprocess.run([opt, out, "-o", os.devnull], capture_output=True).returncode:
        return "drover-opt does not read it"
    if result == "the step program as text" and not written.startswith(b"step program: " + task.encode()):
        return f"no step program: {written[:80]}"
    if result.startswith("an ") and not (written.startswith(b"\x7fELF") and "define " in done.stderr):
        return "no machine code, or no LLVM IR printed"
    os.remove(out)
    return ""


def main():
    drover, opt, model = sys.argv[1:]
    table, faults, checked = phases(drover), [], 0
    with tempfile.TemporaryDirectory() as folder:
        for task in ("train", "forward"):
            for phase, (train_only, result) in table.items():
                if train_only and task == "forward":
                    continue
                checked += 1
                fault = check(drover, opt, model, task, phase, result, folder)
                faults += [f"{task} {phase}: {fault}"] if fault else []
    print("\n".join(faults) or f"{checked} phases")
    sys.exit(bool(faults) or checked < 20)


main()
