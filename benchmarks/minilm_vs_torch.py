#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time MiniLM sharded over ranks beside PyTorch eager with as many threads.

Both run the same batch in one process of this script, in turns: so many rounds of
so many runs each. The table has the median over the rounds of each round's median."""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
import transformers

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))
import short
import tp_tools
from minilm import model


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tp_tools.add_arguments(parser, "benchmark", ranks=(2,))
    parser.add_argument("--batch", type=int, default=8, help="sentences (default: %(default)s)")
    parser.add_argument("--length", type=int, default=128,
                        help="tokens in each sentence (default: %(default)s)")
    parser.add_argument("--attn", choices=["eager", "sdpa"], default="sdpa",
                        help="attention written out, or as one op (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="turns (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=10,
                        help="runs of each side in a turn (default: %(default)s)")
    short.add_option(parser, batch=1, length=16, rounds=1, runs=1)
    return parser.parse_args()


def batch(size, length):
    """Random tokens without padding, the same for each call."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(1000, 30000, (size, length), generator=generator)
    return {"ids": ids, "mask": torch.ones_like(ids)}


def time_torch(encoder, inputs, runs):
    """Median seconds of `runs` runs, after two that don't count."""
    seconds = []
    with torch.inference_mode():
        for _ in range(runs + 2):
            start = time.perf_counter()
            encoder(**inputs)
            seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[2:])


def time_ranks(artifact, runs):
    """Median seconds of `runs` runs, as tp-run measures them, after two that don't count."""
    artifact.run("--warmup", "2", "--repeat", str(runs))
    return artifact.executed["seconds"]["median"]


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def print_environment():
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"],
                            capture_output=True, text=True).stdout.strip()
    print(f"{cpu_name()}, {len(os.sched_getaffinity(0))} cores; tp-mlir {commit},"
          f" torch {torch.__version__}, transformers {transformers.__version__},"
          f" Python {platform.python_version()}")


def measure(encoder, inputs, artifact, ranks, arguments):
    """Print the table for one number of ranks."""
    torch.set_num_threads(ranks)
    theirs, ours = [], []
    for _ in range(arguments.rounds):
        theirs.append(time_torch(encoder, inputs, arguments.runs))
        ours.append(time_ranks(artifact, arguments.runs))
    reference = statistics.median(theirs)
    print(f"{'':<28} {'median ms':>10} {'min':>8} {'max':>8} {'ratio':>6}")
    for name, seconds in ((f"PyTorch eager, {ranks} threads", theirs),
                          (f"tp-mlir, {ranks} ranks", ours)):
        median = statistics.median(seconds)
        print(f"{name:<28} {median * 1e3:>10.2f} {min(seconds) * 1e3:>8.2f}"
              f" {max(seconds) * 1e3:>8.2f} {median / reference:>6.2f}")


def main():
    arguments = parse_arguments()
    encoder = model.build(arguments.attn)
    inputs = batch(arguments.batch, arguments.length)
    tools = tp_tools.Tools(arguments.bin, arguments.out, echo=False)
    archive = arguments.out / "model.pt"
    tp_tools.save_torchscript(encoder, inputs, archive)
    imported = tools.import_model(archive, inputs)
    print_environment()
    print(f"MiniLM, {arguments.batch} × {arguments.length} tokens, {arguments.attn} attention,"
          f" {arguments.rounds} rounds of {arguments.runs} runs")
    for ranks in arguments.ranks:
        artifact = imported.shard(ROOT / "examples/minilm/plan.yaml", ranks)
        measure(encoder, inputs, artifact, ranks, arguments)


if __name__ == "__main__":
    main()
