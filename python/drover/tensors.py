"""safetensors files, and DESIGN's "Equality" between two of them."""
import json
import struct

import numpy as np

_KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1", "U8": "<u1", "BOOL": "?"}


def read_safetensors(path):
    """Name -> array of every tensor of one file; bf16 is widened to float32."""
    with open(path, "rb") as file:
        raw = file.read()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    result = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = np.frombuffer(raw[8 + length + begin:8 + length + end], dtype=_KINDS[entry["dtype"]])
        if entry["dtype"] == "BF16":
            values = (values.astype(np.uint32) << 16).view(np.float32)
        result[name] = values.reshape(entry["shape"])
    return result


def write_safetensors(path, tensors):
    """One file of float32 tensors, names sorted."""
    header, offset = {}, 0
    for name in sorted(tensors):
        count = tensors[name].size * 4
        header[name] = {"dtype": "F32", "shape": list(tensors[name].shape), "data_offsets": [offset, offset + count]}
        offset += count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(tensors):
            file.write(np.ascontiguousarray(tensors[name], dtype="<f4").tobytes())


def deviation(got, want):
    """|got - want| as a part of |want|; infinite where either is no number."""
    ratio = abs(got - want) / max(abs(want), 1e-30)
    return ratio if np.isfinite(ratio) else float("inf")


def _norm(x):
    return float(np.linalg.norm(np.asarray(x, np.float64).ravel()))


def compare(got, want, kind):
    """Worst deviation over all tensors as a multiple of what is allowed, with its name, and a list of faults.

    kind "gradient": |d| <= 2e-5 |g| + 1e-7 |G|, G all gradients; kind "weight": 2e-5 relative, 2e-4 for biases.
    """
    faults = [f"{kind} {name} is missing" for name in sorted(set(want) - set(got))]
    faults += [f"{kind} {name} is unknown" for name in sorted(set(got) - set(want))]
    whole = np.sqrt(sum(_norm(value) ** 2 for value in want.values()))
    worst = (0.0, "")
    for name in sorted(set(want) & set(got)):
        if got[name].shape != want[name].shape:
            faults.append(f"{kind} {name} has shape {got[name].shape}, not {want[name].shape}")
            continue
        difference = _norm(np.asarray(got[name], np.float64) - want[name])
        if kind == "gradient":
            allowed = 2e-5 * _norm(want[name]) + 1e-7 * whole
        else:
            allowed = (2e-4 if name.endswith("bias") else 2e-5) * _norm(want[name])
        ratio = difference / max(allowed, 1e-30)
        if not np.isfinite(ratio):  # NaN would lose every comparison
            ratio = float("inf")
        if ratio > worst[0]:
            worst = (ratio, name)
    if worst[0] > 1:
        faults.append(f"{kind} {worst[1]} deviates by {worst[0]:.3g} times what is allowed")
    return worst, faults
