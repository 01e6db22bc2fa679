#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call from Python costs beside the run, and how long a first result takes.

The cost of a call is its time, less the time of the run as the runtime measures it (what tp-run prints): for a module of one
product, and for MiniLM, whose call looks at more parameters. It is the median over rounds of each round's median. Where
gradients are enabled, no parameter requires one.

The first result is that of MiniLM in a new process, from its first import: with this package, whose caches are empty, and with
torch.compile (inductor, whose cache is off)."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import short

ROOT = Path(__file__).resolve().parent.parent
GOAL = 20e-6  # seconds
PLAN = {
    "bert.encoder.layer.*.attention.self.query": "ColwiseParallel",
    "bert.encoder.layer.*.attention.self.key": "ColwiseParallel",
    "bert.encoder.layer.*.attention.self.value": "ColwiseParallel",
    "bert.encoder.layer.*.attention.output.dense": "RowwiseParallel",
    "bert.encoder.layer.*.intermediate.dense": "ColwiseParallel",
    "bert.encoder.layer.*.output.dense": "RowwiseParallel",
    "bert.embeddings.word_embeddings.weight": ["Replicate"],
}


def make_minilm(length):
    sys.path.insert(0, str(ROOT / "examples"))
    import torch
    from minilm import model
    ids = torch.randint(1000, 30000, (1, length), generator=torch.Generator().manual_seed(0))
    return model.build("sdpa"), {"ids": ids, "mask": torch.ones_like(ids)}


def measure_call(module, inputs, runs):
    """Seconds of a call, and of its run; medians."""
    session = module.__dict__["_tp_mlir"].get_last().bundle.weights.session
    calls, inside = [], []
    for _ in range(runs):
        start = time.perf_counter()
        module(**inputs)
        calls.append(time.perf_counter() - start)
        inside.append(session.last_run.seconds)
    return statistics.median(calls), statistics.median(inside), statistics.median(a - b for a, b in zip(calls, inside))


def measure_calls(arguments):
    import torch
    import tp_mlir as tp
    encoder, inputs = make_minilm(arguments.length)
    modules = {"one product": (tp.parallelize_module(torch.nn.Linear(64, 64), {"tp": 2}, tp.ColwiseParallel()),
                               {"input": torch.zeros(4, 64)}),
               "MiniLM": (tp.parallelize_module(encoder, {"tp": 2}, PLAN), inputs)}
    print(f"{'':<12} {'':<14} {'call us':>10} {'run us':>10} {'beside us':>10}  goal {GOAL * 1e6:.0f}")
    missed = False
    for mode, context in (("inference mode", torch.inference_mode), ("gradients", torch.enable_grad)):
        for name, (module, inputs) in modules.items():
            module.requires_grad_(False)
            with context():
                module(**inputs)
                rounds = [measure_call(module, inputs, arguments.runs) for _ in range(arguments.rounds)]
            call, run, beside = map(statistics.median, zip(*rounds))
            print(f"{name:<12} {mode:<14} {call * 1e6:>10.1f} {run * 1e6:>10.1f} {beside * 1e6:>10.1f}")
            missed |= beside > GOAL
    return missed


def get_first_result(kind, length):
    """Seconds from here, before anything is imported, to a result; printed by a process of its own."""
    start = time.perf_counter()
    import torch
    encoder, inputs = make_minilm(length)
    with torch.inference_mode():
        if kind == "tp_mlir":
            import tp_mlir as tp
            compiled = tp.parallelize_module(encoder, {"tp": 2}, PLAN)
        else:
            torch.set_num_threads(2)
            compiled = torch.compile(encoder)
        compiled(**inputs)
    return time.perf_counter() - start


def measure_first_results(arguments):
    print(f"{'first result':<28} {'median s':>9} {'min':>7} {'max':>7}")
    kinds = (("tp_mlir", "tp-mlir, 2 ranks"), ("torch", "torch.compile, 2 threads"))
    for kind, name in kinds[:1] if arguments.short else kinds:  # torch.compile takes a minute
        seconds = []
        for _ in range(arguments.rounds):
            with tempfile.TemporaryDirectory() as cache:
                environment = os.environ | {"XDG_CACHE_HOME": cache, "TORCHINDUCTOR_CACHE_DIR": cache,
                                            "PYTHONPATH": str(arguments.build / "python")}
                done = subprocess.run([sys.executable, __file__, "--first", kind, "--length", str(arguments.length)], check=True,
                                      capture_output=True, text=True, env=environment)
            seconds.append(json.loads(done.stdout.splitlines()[-1]))
        print(f"{name:<28} {statistics.median(seconds):>9.2f} {min(seconds):>7.2f} {max(seconds):>7.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build tree (default: %(default)s)")
    parser.add_argument("--length", type=int, default=64, help="tokens (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="turns (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=200, help="calls in a turn (default: %(default)s)")
    parser.add_argument("--first", choices=["tp_mlir", "torch"], help=argparse.SUPPRESS)
    short.add_option(parser, length=16, rounds=1, runs=5)
    arguments = parser.parse_args()
    if arguments.first:
        print(json.dumps(get_first_result(arguments.first, arguments.length)))
        return 0
    sys.path.insert(0, str(arguments.build / "python"))
    missed = measure_calls(arguments)
    measure_first_results(arguments)
    return 1 if missed and not arguments.short else 0


if __name__ == "__main__":
    sys.exit(main())
