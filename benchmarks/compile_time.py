#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile time of the passes from shardings to collectives, ours beside Shardy's, on Llama-style decoders.

Ours is all of `tp-opt --tp-parallelize` on the text of llama_graphs.py, from 64 layers to a million ops; Shardy's are
propagation, explicit reshards and collectives on jax's StableHLO of the same decoder. Reading and printing the IR is
excluded on both sides, verifiers are off. The runs take turns, and the fastest of each counts. Prints seconds and
microseconds per op of every pass, the ratio and the peak memory; exits with 1 when ours takes more than a tenth of
Shardy's time per op, 10 s or 4 GiB.

    python3 -m venv build/peers && build/peers/bin/pip install -r requirements-peers.txt
    .venv/bin/python benchmarks/compile_time.py
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import llama_graphs
import short

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MAX_RATIO, MAX_SECONDS, MAX_GIB = 0.1, 10, 4
# What isn't a pass in the list of --mlir-timing.
NOT_PASSES = {"root", "Parser", "Output", "Rest", "Total"}

Result = collections.namedtuple("Result", "ops seconds gib")


def run(command):
    """Standard output and error, and the peak of resident memory in GiB."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(list(map(str, command)), stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        output.seek(0)
        errors.seek(0)
        if os.waitstatus_to_exitcode(status):
            sys.exit(f"error: {Path(command[0]).name} failed: {errors.read()[-2000:]}")
        return output.read(), errors.read(), usage.ru_maxrss / 2**20


def time_ours(tp_opt, layers, folder):
    model = Path(folder) / f"{layers}.mlir"
    if not model.exists():
        model.write_text(llama_graphs.get_module(llama_graphs.Config(layers)))
    _, timing, gib = run([tp_opt, model, "--tp-parallelize", "--verify-each=false", "-o", "/dev/null", "--mlir-timing",
                          "--mlir-timing-display=list", "--mlir-output-format=json"])
    seconds = {item["name"]: item["wall"]["duration"] for item in json.loads(timing)}
    return Result(layers * llama_graphs.OPS_PER_LAYER,
                  {name: value for name, value in seconds.items() if name not in NOT_PASSES}, gib)


def time_shardy(python, layers):
    config = {"layers": layers, "mesh": llama_graphs.Config(layers).mesh, "sequence": False}
    output, _, gib = run([python, HERE / "shardy_llama.py", json.dumps(config)])
    line = json.loads(output.splitlines()[-1])
    return Result(line["ops"], line["seconds"], gib)


def print_result(name, layers, result):
    total = sum(result.seconds.values())
    print(f"{name:<8} {layers:>6} {result.ops:>9} {total:>9.3f} {1e6 * total / result.ops:>9.3f} {result.gib:>7.2f}")
    for passes, seconds in result.seconds.items():
        print(f"{'':>26}{seconds:>8.3f} {1e6 * seconds / result.ops:>9.3f}          {passes}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tp-opt", type=Path, default=ROOT / "build/bin/tp-opt")
    parser.add_argument("--jax-python", type=Path, default=ROOT / "build/peers/bin/python",
                        help="the Python with requirements-peers.txt (default: %(default)s)")
    parser.add_argument("--layers", type=int, nargs="+", default=[64, 1024, 20480], help="of ours (default: %(default)s)")
    parser.add_argument("--shardy-layers", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    short.add_option(parser, layers=[2], shardy_layers=2, rounds=1)
    arguments = parser.parse_args()

    best = {}

    def keep(key, result):
        if key not in best or sum(result.seconds.values()) < sum(best[key].seconds.values()):
            best[key] = result

    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            keep(("Shardy", arguments.shardy_layers), time_shardy(arguments.jax_python, arguments.shardy_layers))
            for layers in arguments.layers:
                keep(("tp-mlir", layers), time_ours(arguments.tp_opt, layers, folder))

    print(f"{'':<8} {'layers':>6} {'ops':>9} {'seconds':>9} {'us per op':>9} {'GiB':>7}")
    for (name, layers), result in best.items():
        print_result(name, layers, result)
    get_per_op = lambda result: sum(result.seconds.values()) / result.ops
    theirs = get_per_op(best["Shardy", arguments.shardy_layers])
    misses = []
    for layers in arguments.layers:
        result = best["tp-mlir", layers]
        ratio, seconds = get_per_op(result) / theirs, sum(result.seconds.values())
        print(f"{layers} layers: {ratio:.3f} of Shardy's time per op")
        if ratio > MAX_RATIO or seconds > MAX_SECONDS or result.gib > MAX_GIB:
            misses.append(f"{layers} layers take {ratio:.3f} of Shardy's time per op, {seconds:.2f} s and {result.gib:.2f} GiB;"
                          f" at most {MAX_RATIO}, {MAX_SECONDS} s and {MAX_GIB} GiB are wanted")
    for line in misses:
        print(f"error: {line}", file=sys.stderr)
    return 1 if misses and not arguments.short else 0


if __name__ == "__main__":
    sys.exit(main())
