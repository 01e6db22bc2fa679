#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processor time, peak memory and the size of the report for Llama-style decoders over 16 to 16,384 ranks.

Nothing should grow with the number of ranks but with the number of classes of ranks that are alike (docs/Report.md). The last mesh
dimension is tensor-parallel; the batch grows with the data-parallel one. The programs are llama_graphs.py's: with 16 heads over 16 ranks
all ranks are alike; 12 heads over 16 ranks, and 8 over 3, are uneven. Prints a line for each mesh, and the ratio to the smallest one of
its kind; exits with 1 where the report or the time of a larger one is more than twice that.

    .venv/bin/python benchmarks/rank_classes.py
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import llama_graphs
import short

ROOT = Path(__file__).resolve().parent.parent
# By kind: the number of heads, the tensor-parallel ranks, and the data-parallel ones.
KINDS = {"16 heads, tp 16": (16, 16, [1, 16, 128, 1024]), "12 heads, tp 16": (12, 16, [1, 16, 128, 1024]),
         "8 heads, tp 3": (8, 3, [8, 64, 512, 4096])}
MAX_RATIO = 2.0


def measure(tp_opt, config, folder):
    """Processor seconds, MB of memory, bytes of the report, classes of ranks."""
    model, report = folder / "model.mlir", folder / "report.json"
    model.write_text(llama_graphs.get_module(config))
    process = subprocess.Popen([tp_opt, model, f"--tp-parallelize=machine=h100-nvlink report={report}", "-o", os.devnull])
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit("error: tp-opt failed")
    text = report.read_text()
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000, len(text), len(json.loads(text)["rank_classes"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bin", help="of tp-opt (default: %(default)s)")
    parser.add_argument("--layers", type=int, nargs="+", default=[8, 64], help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="the shortest counts (default: %(default)s)")
    short.add_option(parser, layers=[2], rounds=1)
    arguments = parser.parse_args()

    misses = []
    print(f"{'program':<17}{'layers':>7}{'ranks':>7}{'classes':>9}{'seconds':>9}{'ratio':>7}{'MB':>6}{'report':>11}{'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for layers in arguments.layers:
            for name, (heads, tp, dps) in KINDS.items():
                first = None
                for dp in dps:
                    config = llama_graphs.Config(layers, mesh=(("dp", dp), ("tp", tp)), dim=32 * heads, hidden=64 * heads, heads=heads,
                                                 batch=dp, length=16)
                    rounds = [measure(arguments.bin / "tp-opt", config, Path(folder)) for _ in range(arguments.rounds)]
                    seconds, memory, size, classes = map(min, zip(*rounds))
                    first = first or (seconds, size)
                    slower, larger = seconds / first[0], size / first[1]
                    print(f"{name:<17}{layers:>7}{dp * tp:>7}{classes:>9}{seconds:>9.2f}{slower:>7.2f}{memory:>6.0f}{size:>11}"
                          f"{larger:>7.2f}", flush=True)
                    of = f"of {name}, {layers} layers, {dp * tp} ranks"
                    if larger > MAX_RATIO:
                        misses.append(f"the report {of} is {larger:.2f} times as large as that of {dps[0] * tp} ranks")
                    if slower > MAX_RATIO and not arguments.short:
                        misses.append(f"the run {of} takes {slower:.2f} times as long as that of {dps[0] * tp} ranks")
    for line in misses:
        print(f"error: {line}; at most {MAX_RATIO} times are wanted", file=sys.stderr)
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
