# Part of drover, under the Apache License v2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0
"""mutate_mlir.py SEED COUNT FILES: COUNT programs, apart by `// -----`, each one of the files' with a few random changes."""
import random
import re
import sys

NUMBERS = ["0", "1", "2", "3", "4", "5", "7", "8", "100", "-1", "2147483648", "4611686018427387904", "9223372036854775807"]
WORDS = [
    ["tp", "cp", "dp", "kv", "replica"],
    ["S0", "S1", "S2", "S3", "S0x2", "S1x2", "V", "P sum f32", "P sum bf16", "P max f32"],
    ["f32", "bf16", "f64", "f16", "i64", "i32", "i1"],
]


def change(rng, text):
    kind = rng.randrange(6)
    if kind <= 1:  # a number, but none that counts results: the parser makes room for as many
        places = list(re.finditer(r"(?<![\w%@#.:])\d+(?=[^\w]|x)", text))
        new = rng.choice(NUMBERS)
        if new == "0":  # upstream's verifier of slices divides by the sizes of a grid
            places = [place for place in places if not text[:place.start()].endswith("(shape = ")]
    elif kind <= 3:  # a word of its kind
        words = rng.choice(WORDS)
        places = list(re.finditer(r"(?<![\w.])(?:" + "|".join(words) + r")(?!\w)", text))
        new = rng.choice(words)
    elif kind == 4:  # an encoding left out
        places, new = list(re.finditer(r", #tfm\.dist<[^<>]*>", text)), ""
    else:  # a line left out
        places, new = list(re.finditer(r"\n  +%[^\n]*", text)), ""
    if not places:
        return text
    place = rng.choice(places)
    text = text[:place.start()] + new + text[place.end():]
    # A type stands at the definition and at each use: often all of them change.
    if kind != 5 and rng.random() < 0.5 and place.group(0).strip():
        return re.sub(r"(?<![\w%@#.:])" + re.escape(place.group(0)) + r"(?![\w.])", lambda _: new, text)
    return text


def main():
    rng = random.Random(int(sys.argv[1]))
    programs = []
    for path in sys.argv[3:]:
        with open(path) as file:
            programs += [p for p in re.split(r"(?m)^// -----\n", re.sub(r"(?m)^ *//(?! -----).*\n", "", file.read())) if p.strip()]
    for _ in range(int(sys.argv[2])):
        text = rng.choice(programs)
        for _ in range(rng.randint(1, 4)):
            text = change(rng, text)
        print("// -----\n" + text)


main()
