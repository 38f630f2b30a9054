"""usage: config_logits.py DROVER
The program of a config.json computes what Hugging Face transformers does: logits of unusual small configurations of every architecture,
recorded by python/make_config_reference.py.
"""
import json
import os
import sys
import tempfile

import numpy as np

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "../../python"))
from drover.tensors import write_safetensors
from make_config_reference import BATCH, LENGTH, POSITIONS, random_ids, random_values
from running import run


def main():
    drover = sys.argv[1]
    with open(os.path.join(FOLDER, "Inputs/config_logits.json")) as file:
        cases = json.load(file)
    faults = 0
    for case in cases:
        config, want = case["config"], np.array(case["logits"])
        with tempfile.TemporaryDirectory() as work:
            with open(os.path.join(work, "config.json"), "w") as file:
                json.dump(config, file)
            write_safetensors(os.path.join(work, "w.safetensors"),
                              {name: random_values(name, shape) for name, shape in case["parameters"].items()})
            np.save(os.path.join(work, "ids.npy"), random_ids(config["vocab_size"]))
            run([drover, "compile", "config.json", "--task=forward", f"--seq-len={LENGTH}", f"--microbatch={BATCH}", "-o", "forward"], work)
            run(["./forward", "--init=w.safetensors", "--input", "input_ids=ids.npy", "--output-dir=out", "--threads=1"], work)
            got = np.load(os.path.join(work, "out/logits.npy"))[:, POSITIONS].reshape(want.shape)
        worst = np.abs(got - want).max() / np.abs(want).max()
        if not worst < 1e-5:
            faults += 1
            print(f"{config}: logits are {worst:.1e} away")
    print(f"{len(cases)} configurations, {faults} faults")
    sys.exit(bool(faults) or len({case['config']['model_type'] for case in cases}) != 8)


main()
