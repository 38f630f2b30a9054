"""Trains one step at sequence lengths S and 2S and compares peaks: what the executable reports, and the process's resident size.

usage: memory_growth.py DROVER CONFIG.json S      exit status 1 where a peak grows more than 2.2-fold
"""
import json
import os
import subprocess
import sys
import tempfile


def peaks(drover, config, length, folder):
    exe, log, data = (os.path.join(folder, f"{name}{length}") for name in ("train", "log", "data.u16"))
    subprocess.run([drover, "compile", config, "--task=train", f"--seq-len={length}", "-o", exe], check=True)
    with open(data, "wb") as file:
        file.write(bytes(i % 7 if i % 2 == 0 else 0 for i in range(4 * length + 2)))
    process = subprocess.Popen([exe, f"--data={data}", "--steps=1", "--lr=1e-3", "--init=random", f"--log={log}"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"training at {length} ended with status {status}")
    with open(log) as file:
        row = next(row for row in map(json.loads, file) if "loss" in row)
    return row["peak_bytes"], usage.ru_maxrss * 1024


def main():
    drover, config, length = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with tempfile.TemporaryDirectory() as folder:
        small, large = (peaks(drover, config, size, folder) for size in (length, 2 * length))
    ratios = [b / a for a, b in zip(small, large)]
    print(f"reported {small[0]} -> {large[0]} bytes ({ratios[0]:.2f}), resident {small[1]} -> {large[1]} ({ratios[1]:.2f})")
    sys.exit(max(ratios) > 2.2)


main()
