"""Makes wrong programs, and puts the tables of what became of them into docs/proof.md.
usage: update_proof.py [--build build] [types] [programs] [collectives]

types: mutate-types, minutes of a core. programs: mutate-programs 1 1, a quarter of an hour of a core that does nothing else,
since its deadlines are short. collectives: test/Execute/mutate_collectives.py with MPI, minutes. All three where none is named.
A part stays as it is, and the run ends, where a mutant is neither reported nor equal."""
import argparse
import os
import subprocess
import sys

from drover.pages import put_between_marks

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(PROJECT, "build"))
    parser.add_argument("--page", default=os.path.join(PROJECT, "docs/proof.md"))
    parser.add_argument("parts", nargs="*", metavar="PART")
    arguments = parser.parse_args()
    programs = os.path.join(os.path.abspath(arguments.build), "bin")
    mutants = os.path.join(PROJECT, "test/Execute/mutate_collectives.py")
    commands = {"types": [f"{programs}/mutate-types"], "programs": [f"{programs}/mutate-programs", "1", "1"],
                "collectives": [sys.executable, mutants, f"--drover={programs}/drover", f"--drover-opt={programs}/drover-opt", "--mpi"]}
    if unknown := set(arguments.parts) - set(commands):
        parser.error(f"{', '.join(sorted(unknown))}: expected some of {', '.join(commands)}")
    for part in arguments.parts or commands:
        done = subprocess.run(commands[part], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"{part}: {done.stdout}status {done.returncode}, {arguments.page} keeps what it has")
        put_between_marks(arguments.page, f"mutants of {part}", done.stdout)


main()
