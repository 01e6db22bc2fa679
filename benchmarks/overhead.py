#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the run-time costs per op beside the kernels, and what DTensor's dispatch costs.

A chain of matrix products of 4 × 4 is so many ops; the same products as one batched op are so many calls of the same kernel.
The difference of both per product is what an op costs: the call of the runtime with its checks and its mark, and the reading
of its arguments. Both are slopes between two lengths, so that starting a run doesn't count. DTensor's is `torch.mm` on
replicated 4 × 4 DTensors, less the same on plain tensors. Exits with 1 where an op costs more than the goal."""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import short

ROOT = Path(__file__).resolve().parent.parent
LENGTHS = (100, 1100)
SIZE = 4
GOAL = 0.2e-6  # seconds


def get_chain(length):
    lines = [f"  %{i + 1} = nn.matmul %{i}, %w : (tensor<{SIZE}x{SIZE}xf32>, tensor<{SIZE}x{SIZE}xf32>)"
             f" -> tensor<{SIZE}x{SIZE}xf32>" for i in range(length)]
    type = f"tensor<{SIZE}x{SIZE}xf32>"
    body = "\n".join(lines).replace("%0,", "%x,")
    return f"func.func @main(%x: {type}, %w: {type}) -> {type} {{\n{body}\n  return %{length} : {type}\n}}\n", (SIZE, SIZE)


def get_batch(length):
    type = f"tensor<{length}x{SIZE}x{SIZE}xf32>"
    return (f"func.func @main(%x: {type}, %w: {type}) -> {type} {{\n"
            f"  %0 = nn.matmul %x, %w : ({type}, {type}) -> {type}\n  return %0 : {type}\n}}\n", (length, SIZE, SIZE))


class Overhead:
    """The programs that are timed, compiled in `folder` by the tools in `tools`."""

    def __init__(self, folder, tools):
        self.folder, self.tools = folder, tools
        folder.mkdir(parents=True, exist_ok=True)
        for make in (get_chain, get_batch):
            for length in LENGTHS:
                name = f"{make.__name__}_{length}"
                text, shape = make(length)
                (folder / f"{name}.mlir").write_text(text)
                subprocess.run([tools / "tp-compile", folder / f"{name}.mlir", "-o", folder / f"{name}.tpx"], check=True)
                np.save(folder / f"{name}.npy", np.broadcast_to(np.eye(SIZE, dtype=np.float32), shape))

    def time_run(self, name):
        path = self.folder / f"{name}.npy"
        done = subprocess.run([self.tools / "tp-run", self.folder / f"{name}.tpx", "--input", f"arg0={path}",
                               "--input", f"arg1={path}", "--warmup", "50", "--repeat", "400", "--json", "-"],
                              check=True, capture_output=True, text=True)
        return json.loads(done.stdout)["seconds"]["median"]

    def measure(self):
        """Seconds that an op costs beside its kernel."""
        slopes = []
        for make in (get_chain, get_batch):
            short, long = (self.time_run(f"{make.__name__}_{length}") for length in LENGTHS)
            slopes.append((long - short) / (LENGTHS[1] - LENGTHS[0]))
        return slopes[0] - slopes[1]

    def measure_dtensor(self):
        done = subprocess.run([sys.executable, __file__, "--dtensor"], check=True, capture_output=True, text=True)
        return float(done.stdout)


def run_dtensor():
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, distribute_tensor
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    mesh = init_device_mesh("cpu", (1,))
    plain = torch.eye(SIZE)
    sharded = distribute_tensor(plain, mesh, [Replicate()])

    def time_products(x, w, calls=2000):
        with torch.no_grad():
            times = []
            for _ in range(7):
                start = time.perf_counter()
                for _ in range(calls):
                    x = torch.mm(x, w)
                times.append((time.perf_counter() - start) / calls)
        return statistics.median(times)

    print(time_products(sharded, sharded) - time_products(plain, plain))
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build tree (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="turns (default: %(default)s)")
    parser.add_argument("--dtensor", action="store_true", help=argparse.SUPPRESS)
    short.add_option(parser, rounds=1)
    arguments = parser.parse_args()
    if arguments.dtensor:
        return run_dtensor()
    programs = Overhead(arguments.build / "benchmarks/overhead", arguments.build / "bin")
    ours, theirs = [], []
    for _ in range(arguments.rounds):
        ours.append(programs.measure())
        theirs.append(programs.measure_dtensor())
    median = statistics.median(ours)
    print(f"{'':<20} {'median us':>10} {'min':>9} {'max':>9} {'goal':>6}")
    for name, values, goal in (("tp-mlir", ours, f"{GOAL * 1e6:.1f}"), ("PyTorch DTensor", theirs, "")):
        print(f"{name:<20} {statistics.median(values) * 1e6:>10.3f} {min(values) * 1e6:>9.3f} {max(values) * 1e6:>9.3f}"
              f" {goal:>6}")
    return 1 if median > GOAL and not arguments.short else 0


if __name__ == "__main__":
    sys.exit(main())
