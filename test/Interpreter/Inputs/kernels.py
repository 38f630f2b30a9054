"""Compares what drover-interpret --random=SEED --exact printed for kernels.mlir with the formulas, spelled out.

usage: kernels.py SEED PRINTED [MUTANT]     with MUTANT one expected number is off by 1e-4, which must be noticed
"""
import math
import sys

MASK = (1 << 64) - 1


def mix(value):
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
    return value ^ (value >> 31)


def bits(seed, name, count):
    for c in name.encode():
        seed = mix(seed ^ c)
    return [mix((seed + i) & MASK) for i in range(count)]


def single(value):
    """Rounded to f32, whose range no value here leaves."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * 2**24), exponent - 24)


def floats(seed, name, count):
    return [single((b >> 11) / 2**53 - 0.5) for b in bits(seed, name, count)]


def rows(values, width):
    return [values[i:i + width] for i in range(0, len(values), width)]


def rope(row, position, head, rotary, theta, interleaved):
    out = list(row)
    for start in range(0, len(row), head):
        for c in range(rotary // 2):
            a, b = (2 * c, 2 * c + 1) if interleaved else (c, c + rotary // 2)
            angle = position * theta**(-2 * c / rotary)
            x, y = row[start + a], row[start + b]
            out[start + a] = x * math.cos(angle) - y * math.sin(angle)
            out[start + b] = y * math.cos(angle) + x * math.sin(angle)
    return out


def attend(q, k, v, scale, allowed, capped=lambda s: s, bias=lambda h, j: 0.0):
    """[S][8], [T][4], [T][6] with four query heads on two kv heads: outputs by row, log-sum-exp by head and row."""
    outputs, sums = [[0.0] * 12 for _ in q], [[-math.inf] * len(q) for _ in range(4)]
    for h in range(4):
        for i, query in enumerate(q):
            scores = {}
            for j, key in enumerate(k):
                if allowed(i, j):
                    product = sum(query[2 * h + c] * key[2 * (h // 2) + c] for c in range(2))
                    scores[j] = capped(scale * product) + bias(h, j)
            if not scores:
                continue
            total = sum(math.exp(s) for s in scores.values())
            sums[h][i] = math.log(total)
            for j, s in scores.items():
                for c in range(3):
                    outputs[i][3 * h + c] += math.exp(s) / total * v[j][3 * (h // 2) + c]
    return sum(outputs, []), sum(sums, [])


def expectations(seed):
    x, y = rows(floats(seed, "x", 48), 8), floats(seed, "y", 48)
    w, b, moment = (floats(seed, name, 8) for name in ("w", "b", "moment"))
    p = [value & 15 for value in bits(seed, "p", 6)]
    labels = [(value & 15) - 8 for value in bits(seed, "labels", 6)]
    k, v = rows(rows(floats(seed, "k", 32), 4), 4), rows(rows(floats(seed, "v", 48), 6), 4)
    flat = sum(x, [])
    result = {"rms_norm": [], "layer_norm": []}
    for row in x:
        mean = sum(row) / 8
        variance = sum((value - mean)**2 for value in row) / 8
        squares = sum(value * value for value in row) / 8
        result["rms_norm"] += [value / math.sqrt(squares + 0.01) * (1 + w[c]) for c, value in enumerate(row)]
        result["layer_norm"] += [(value - mean) / math.sqrt(variance + 0.01) * w[c] + b[c]
                                 for c, value in enumerate(row)]
    result["gelu_erf"] = [0.5 * a * (1 + math.erf(a / math.sqrt(2))) for a in flat]
    result["gelu_tanh"] = [0.5 * a * (1 + math.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))) for a in flat]
    result["swiglu"] = [a / (1 + math.exp(-a)) * u for a, u in zip(flat, y)]
    result["rope"] = sum((rope(row, p[i], 4, 4, 100.0, False) for i, row in enumerate(x)), [])
    result["rope_interleaved"] = sum((rope(row, p[i], 8, 6, 1000.0, True) for i, row in enumerate(x)), [])
    for name in ("attention", "log_sum_exp", "attention_window", "attention_documents", "softmax"):
        result[name] = []
    for n in range(2):
        q = x[3 * n:3 * n + 3]
        out, sums = attend(q, k[n], v[n], 3.0, lambda i, j: j <= i + 1, lambda s: 2 * math.tanh(s / 2),
                           lambda h, j: 2.0**-(h + 1) * j)
        result["attention"] += out
        result["log_sum_exp"] += sums
        result["attention_window"] += attend(q, k[n], v[n], 3.0, lambda i, j: abs(i - j) < 2)[0]
        ids = [position // 2 for position in p[3 * n:3 * n + 3]]
        result["attention_documents"] += attend(q, k[n][1:], v[n][1:], 3.0,
                                                lambda i, j: j <= i and ids[i] == ids[j])[0]
        for i in range(3):
            for c in range(8):
                total = sum(math.exp(q[r][c]) for r in range(3))
                result["softmax"].append(math.exp(q[i][c]) / total)
    result["loss"] = [sum(math.log(sum(math.exp(value) for value in row)) - row[label]
                          for row, label in zip(x, labels) if label >= 0)]
    result["parameter"], result["moment1"], result["moment2"] = [], [], []
    for weight, first, gradient in zip(w, moment, b):
        gradient *= 2.0
        m = 0.75 * first + 0.25 * gradient
        s = 0.5 * first * first + 0.5 * gradient * gradient
        result["moment1"].append(m)
        result["moment2"].append(s)
        result["parameter"].append(weight * (1 - 0.125 * 0.25) -
                                   0.125 / 0.25 * m / (math.sqrt(s) / math.sqrt(0.5) + 0.0625))
    return result


def main():
    expected = expectations(int(sys.argv[1]))
    if len(sys.argv) > 3:
        expected[sys.argv[3]][0] += 1e-4
    with open(sys.argv[2]) as file:
        printed = {line.split()[0]: [float(value) for value in line.split(":")[1].split()] for line in file}
    assert printed.keys() == expected.keys(), printed.keys() ^ expected.keys()
    for name, values in expected.items():
        worst = max(abs(a - b) for a, b in zip(values, printed[name]))
        # rope's angles are f32 by definition.
        if len(values) != len(printed[name]) or not worst < (1e-5 if name.startswith("rope") else 1e-8):
            sys.exit(f"{name}: off by {worst}")


main()
