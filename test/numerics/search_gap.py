"""Decoders of 6 layers on meshes of three and four dimensions: the search for placements finds the optimum, or states a gap of
at most 5 %, within its default budget; with none, the remark says what is missing.

The programs are those of benchmarks/llama_graphs.py with weights split over one or two mesh dimensions, and the residual
stream over others."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import llama_graphs
from llama_graphs import sharding

MAX_PERCENT = 5
MESHES = [(("dp", 2), ("fs", 2), ("cp", 4), ("tp", 4)), (("dp", 4), ("fs", 4), ("tp", 4))]
# Columns and rows of weights, and the batch and the sequence of the residual stream.
WEIGHTS = [(("tp", ""), ("", "tp")), (("tp", "fs"), ("fs", "tp")), (("fs", "tp"), ("tp", "fs")),
           (("tp, fs", ""), ("", "tp, fs"))]
STREAMS = [("dp", ""), ("dp, fs", ""), ("dp", "fs")]


def get_program(mesh, weights, stream, sequence):
    config = llama_graphs.Config(6, mesh, sequence, dim=1024, hidden=4096, heads=16, batch=16, length=256)
    text = llama_graphs.get_module(config)
    tp = "tp" if sequence else ""
    parts = [part for part in (stream[1], tp) if part]
    changes = {sharding("tp", ""): sharding(*weights[0]), sharding("", "tp"): sharding(*weights[1]),
               sharding("dp", tp, ""): sharding(stream[0], ", ".join(parts), "")}
    return re.sub("|".join(map(re.escape, changes)), lambda match: changes[match[0]], text)


def get_remarks(tp_opt, program, *options):
    run = subprocess.run([tp_opt, "-", f"--tp-propagate={' '.join(options)}", "--remarks-filter=tp-propagate", "-o", "/dev/null"],
                         input=program, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    return run.stderr


def main():
    tp_opt, part = sys.argv[1], int(sys.argv[2])
    failed = bounded = 0
    cases = list(itertools.product(MESHES, WEIGHTS, STREAMS, (False, True)))[part::4]
    for case in cases:
        remarks = get_remarks(tp_opt, get_program(*case))
        if "the search was bounded" not in remarks:
            continue
        found = re.search(r"at least \d+; ([0-9.]+) %", remarks)
        print(case, remarks)
        bounded += 1
        failed += not found or float(found[1]) > MAX_PERCENT
    # Without a budget there is something to state.
    if "the search was bounded" not in get_remarks(tp_opt, get_program(*cases[1]), "search-budget=0"):
        sys.exit("error: the programs are too easy")
    if failed:
        sys.exit(f"error: {failed} of {len(cases)} programs have a larger gap than {MAX_PERCENT} %")
    print(f"{len(cases)} programs, {bounded} of them bounded")


main()
