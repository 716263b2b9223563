#!/usr/bin/env python3
"""Counts the instructions of pieces of the pure core, and compares them with benches/instructions.txt.

Times on a shared machine differ by tens of percent from run to run; instructions hardly do. Each piece runs twice
under callgrind, with different numbers of rounds: the difference is what a round takes, without start-up.

Exit code 1 if a piece needs more than 10% more than recorded. The record holds for one release of rustc, one target,
and CPUs with AVX2 or without (memchr and libc choose at run time): elsewhere the table is printed, with what differs,
and nothing fails. `--record` writes the file anew: do so after a change that is worth its instructions, and say why.

Needs valgrind; `tests/setup.sh instructions` installs it.
"""

import argparse
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
RECORD = os.path.join(HERE, "instructions.txt")
TOLERANCE = 0.10
# Rounds of the two runs: the first is warm-up for both, buffers have grown by then.
FEW, MANY = 100, 600


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the figures found to benches/instructions.txt")
    parser.add_argument("pieces", nargs="*", help="only these (all)")
    options = parser.parse_args()
    if options.record and options.pieces:
        parser.error("--record records all of them")
    program, here = build(), conditions()
    known = run([program, "--list"]).split()
    unknown = [piece for piece in options.pieces if piece not in known]
    if unknown:
        parser.error(f"no piece {unknown[0]}; there are {', '.join(known)}")
    there, recorded = ({}, {}) if options.record else read_record()
    worse = report(program, options.pieces or known, recorded, options.record and here)
    differing = [f"{name} {here[name]} instead of {value}" for name, value in there.items() if here[name] != value]
    if differing and worse:
        print(f"Not compared: the record was made elsewhere ({', '.join(differing)}).")
    elif worse:
        print(f"More than {TOLERANCE:.0%} above the record: {', '.join(worse)}. (`make instructions-record` if it is worth it.)")
    return 1 if worse and not differing else 0


def report(program, pieces, recorded, record_under):
    """Prints the table; writes the record if told under which conditions. The pieces that need too much."""
    print(f"{'instructions per round':<28}{'recorded':>12}{'now':>12}{'change':>9}")
    found, worse = {}, []
    for piece in pieces:
        now = found[piece] = (count(program, piece, MANY) - count(program, piece, FEW)) / (MANY - FEW)
        before = recorded.get(piece)
        change = f"{now / before - 1:+.1%}" if before else "–"
        print(f"{piece:<28}{before or '–':>12}{now:>12.1f}{change:>9}", flush=True)
        if not record_under and (before is None or now > before * (1 + TOLERANCE)):
            worse.append(piece)
    if record_under:
        write_record(record_under, found)
    return worse


def build():
    """Builds the loops as benches are built; the path of the program."""
    output = run(["cargo", "bench", "--locked", "--no-run", "--bench", "instructions", "--message-format=json-render-diagnostics"])
    made = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    # The program itself may be built along with it, and be named last.
    benches = [message for message in made if message.get("executable") and message["target"]["name"] == "instructions"]
    return benches[0]["executable"]


def count(program, piece, rounds):
    """Instructions of a whole run."""
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, piece, str(rounds)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={"PATH": os.environ["PATH"]})
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not collected:
        sys.exit(f"callgrind on {piece}:\n{done.stderr}")
    return int(collected[1])


def conditions():
    """What the figures depend on beside the sources."""
    version = dict(line.split(": ", 1) for line in run(["rustc", "-vV"]).splitlines() if ": " in line)
    with open("/proc/cpuinfo") as cpus:
        avx2 = re.search(r"^flags\s*:.*\bavx2\b", cpus.read(), re.MULTILINE)
    return {"rustc": version["release"], "target": version["host"], "avx2": "yes" if avx2 else "no"}


def read_record():
    """Conditions and figures of the record."""
    with open(RECORD) as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    pairs = {name: value for name, value in lines}
    conditions = {name: pairs.pop(name) for name in ("rustc", "target", "avx2")}
    return conditions, {name: float(value) for name, value in pairs.items()}


def write_record(conditions, figures):
    with open(RECORD, "w") as file:
        file.write("# Instructions per round of pieces of the pure core: `make instructions` compares, "
                   "`make instructions-record` writes.\n")
        file.writelines(f"{name:<28}{value:>26}\n" for name, value in conditions.items())
        file.writelines(f"{name:<28}{figure:>26.1f}\n" for name, figure in figures.items())


def run(command):
    done = subprocess.run(command, cwd=os.path.dirname(HERE), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
