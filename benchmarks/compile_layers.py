#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processor time that tp-compile takes for Llama-style decoders of 4 and of 64 equal layers over 2 ranks: a forward pass, and a
training step with AdamW.

Equal layers are compiled once, so 64 layers should take at most 1.3 times as long as 4. The programs are
llama_graphs.py's. The runs take turns, and the shortest of each counts. Prints seconds and the ratio of the larger to the
smaller model; exits with 1 where the larger one takes more than a goal.

    .venv/bin/python benchmarks/compile_layers.py
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import llama_graphs
import short

ROOT = Path(__file__).resolve().parent.parent
TRAINING = """loss: {name: mse}
optimizer: {name: AdamW, lr: 1.0e-4}
"""
MAX_RATIO = 1.3
MAX_SECONDS = {"forward pass": 2.0, "training step": 5.0}


def run(command):
    """Processor seconds."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"error: {Path(command[0]).name} failed")
    return usage.ru_utime + usage.ru_stime


def build_ranks(tp_opt, layers, folder):
    """The per-rank programs of a model, by their names."""
    model, training = folder / f"{layers}.mlir", folder / "train.yaml"
    model.write_text(llama_graphs.get_module(llama_graphs.Config(layers, mesh=(("tp", 2),), batch=2, length=256)))
    training.write_text(TRAINING)
    paths = {}
    for name, options in (("forward pass", ""), ("training step", f"=train={training}")):
        paths[name] = folder / f"{name.split()[0]}{layers}.mlir"
        run([tp_opt, model, f"--tp-parallelize{options}", "-o", paths[name]])
    return paths


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bin", help="of tp-opt and tp-compile (default: %(default)s)")
    parser.add_argument("--layers", type=int, nargs=2, default=[4, 64], help="of the two models (default: %(default)s)")
    parser.add_argument("--target", help="of tp-compile, such as cuda:sm_90 (default: this CPU)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    short.add_option(parser, layers=[1, 4], rounds=1)
    arguments = parser.parse_args()

    target = [f"--target={arguments.target}"] if arguments.target else []
    best = {}
    with tempfile.TemporaryDirectory() as folder:
        ranks = {layers: build_ranks(arguments.bin / "tp-opt", layers, Path(folder)) for layers in arguments.layers}
        for _ in range(arguments.rounds):
            for layers, paths in ranks.items():
                for name, path in paths.items():
                    seconds = run([arguments.bin / "tp-compile", path, *target, "-o", Path(folder) / "model.tpx"])
                    best[name, layers] = min(seconds, best.get((name, layers), seconds))

    few, many = arguments.layers
    print(f"{'processor seconds':<20}{f'{few} layers':>12}{f'{many} layers':>12}{'ratio':>8}")
    misses = []
    for name, goal in MAX_SECONDS.items():
        seconds = best[name, many]
        ratio = seconds / best[name, few]
        print(f"{name:<20}{best[name, few]:>12.2f}{seconds:>12.2f}{ratio:>8.2f}")
        if ratio > MAX_RATIO or seconds > goal:
            misses.append(f"the {name} of {many} layers takes {seconds:.2f} s, {ratio:.2f} times as long as that of {few};"
                          f" at most {goal} s and {MAX_RATIO} times are wanted")
    for line in misses:
        print(f"error: {line}", file=sys.stderr)
    return 1 if misses and not arguments.short else 0


if __name__ == "__main__":
    sys.exit(main())
